#if COFFER_BUS
  import Coffer
  import PrefsCommands

  /// Prompts: the vault is to be unlocked, with a key at hand, or by pinentry.
  extension SecretService {
    /// How many a client may have that are not completed.
    private static let promptLimit = 64

    func addPrompt(
      _ call: BusMessage, dismissed: PropertyResult, _ action: @escaping () throws -> PropertyResult
    ) throws -> String {
      guard prompts.values.count(where: { $0.owner == call.sender }) < Self.promptLimit else {
        throw BusFailure.limits("a client can have \(Self.promptLimit) prompts")
      }
      lastPrompt += 1
      let path = "\(ServicePlace.root)/prompt/p\(lastPrompt)"
      prompts[path] = Prompt(owner: call.sender, action: action, dismissed: dismissed)
      return path
    }

    func answerPrompt(_ call: BusMessage) throws {
      guard let prompt = prompts[call.path], prompt.owner == call.sender else { throw BusFailure.noObject(call.path) }
      switch call.member {
      case "Prompt":
        try call.requireTypes("s")
        guard !prompt.isShown else { throw BusFailure.failed("this prompt is shown already") }
        let window = try call.text()
        prompts[call.path]?.isShown = true
        try bus.answer(call) { _ in }
        if unlockIfAtHand() || !showDialog(call, window) { completePrompts() }
      case "Dismiss":
        try call.requireTypes("")
        try bus.answer(call) { _ in }
        prompts[call.path] = nil
        endUnneededDialog()
        try complete(call.path, isDismissed: true, prompt.dismissed)
      case let name: throw BusFailure.unknownMethod(name)
      }
    }

    /// Unlocks the vault with a named key, or that of `prefs unlock`.
    ///
    /// - Returns: Whether it is unlocked now.
    func unlockIfAtHand() -> Bool {
      try? store.kept.unlockIfAtHand()
      return store.isUnlocked
    }

    // MARK: - Pinentry

    /// Asks the user; one dialog serves all prompts, since there is one vault.
    ///
    /// - Returns: Whether it does.
    private func showDialog(_ call: BusMessage, _ window: String) -> Bool {
      if dialog != nil { return true }
      let options = store.session.options
      guard !options.noInput, let slots = try? store.database.vault.slots(),
        slots.contains(where: { $0.kind == .passphrase })
      else { return false }
      guard let program = PassphraseDialog.program else {
        if let named = PassphraseDialog.named {
          options.note("PREFS_PINENTRY names no program: \(DisplayText.escapingControls(named))")
        }
        return false
      }
      let question =
        "\(caller(call)) asks for the keyring.\nEnter the passphrase of the vault of "
        + "\(DisplayText.escapingControls(store.session.path))."
      do {
        dialog = try PassphraseDialog(program, store.kept, question: question, window: window, ended: wake)
        return true
      } catch {
        options.note("pinentry cannot ask for the passphrase: \(error)")
        return false
      }
    }

    /// Completes prompts when their dialog has ended, or the vault was unlocked meanwhile by other means.
    func settlePrompts() {
      guard let shown = dialog, store.isUnlocked || shown.end != nil else { return }
      if !store.isUnlocked, case .failed(let reason)? = shown.end {
        store.session.options.note("pinentry did not unlock the keyring: \(reason).")
      }
      endDialog()
      completePrompts()
    }

    /// Ends the dialog if no prompt waits for it.
    func endUnneededDialog() {
      if !prompts.values.contains(where: \.isShown) { endDialog() }
    }

    func endDialog() {
      dialog?.stop()
      dialog = nil
    }

    // MARK: - Completing

    /// Completes all prompts that are shown, by whether the vault is unlocked now.
    private func completePrompts() {
      let shown = prompts.filter(\.value.isShown).sorted { $0.key < $1.key }
      let isUnlocked = store.isUnlocked
      if !shown.isEmpty, !isUnlocked {
        let unlock = CommandHint.text("unlock")
        store.session.options.note("a program asks for the keyring, which is locked: run `\(unlock)`")
      }
      for (path, prompt) in shown {
        prompts[path] = nil
        if isUnlocked, let result = result(of: prompt) {
          // The client has to be able to use the object at once.
          report()
          try? complete(path, isDismissed: false, result)
        } else {
          try? complete(path, isDismissed: true, prompt.dismissed)
        }
      }
    }

    /// - Returns: nil if it has failed, for which the protocol has no word but dismissed.
    private func result(of prompt: Prompt) -> PropertyResult? {
      do { return try prompt.action() } catch {
        store.session.options.note("what a program has prompted for has failed: \(error)")
        return nil
      }
    }

    private func complete(_ path: String, isDismissed: Bool, _ result: PropertyResult) throws {
      try bus.signal(path, Interface.prompt, "Completed") { signal in
        try signal.write(isDismissed)
        try result.write(to: signal)
      }
    }
  }
#endif
