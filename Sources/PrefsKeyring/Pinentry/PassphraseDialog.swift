#if COFFER_BUS
  import Coffer
  import Dispatch
  import PrefsCommands
  import Synchronization

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  /// A run of pinentry, which asks for the passphrase of the vault until that is unlocked or the user gives up.
  ///
  /// It has a thread of its own, so that the bus is answered meanwhile.
  final class PassphraseDialog: Sendable {
    enum End {
      case unlocked
      /// The user has given up, or ``stop()`` was called.
      case dismissed
      /// - Parameter reason: Without a full stop.
      case failed(_ reason: String)
    }

    private struct State {
      var end: End?
      /// Nil once it may be gone, and its number another's.
      var child: pid_t?
    }

    private let kept: KeptVault
    private let connection: AssuanConnection
    private let state: Mutex<State>
    private let ended: @Sendable () -> Void

    /// How often a passphrase may be wrong.
    private static let attempts = 3

    /// Those whose pinentry has not ended, of which all but one were stopped.
    private static let running = DispatchGroup()
    private static let runningCount = Atomic<Int>(0)
    private static let runningLimit = 8
    /// How long pinentry has to give the terminal back once it is to end, in seconds.
    private static let patience = 2

    // MARK: - Starting

    /// What to run: `PREFS_PINENTRY`, or `pinentry` of the `PATH`; nil if there is none.
    static var program: String? {
      ChildProcess.candidates(named ?? "pinentry").first { path in
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
      }
    }

    /// The program that the user has named instead of `pinentry`.
    static var named: String? { Environment.variable("PREFS_PINENTRY") }

    /// - Parameters:
    ///   - program: The path of pinentry.
    ///   - question: What the user reads.
    ///   - window: The window that it is to be shown above, as the client names it.
    ///   - ended: Is called when ``end`` is there.
    /// - Throws: ``Failure`` if it cannot be started.
    init(
      _ program: String, _ kept: KeptVault, question: String, window: String, ended: @escaping @Sendable () -> Void
    ) throws {
      guard Self.runningCount.load(ordering: .relaxed) < Self.runningLimit else {
        throw Failure(.busy, "\(Self.runningLimit) earlier ones have not ended yet.")
      }
      let (input, output) = (try PipePair(), try PipePair())
      defer {
        input.closeReading()
        output.closeWriting()
      }
      do {
        let child = try Self.start(program, input: input.reading, output: output.writing)
        state = Mutex(State(child: child))
      } catch {
        input.closeWriting()
        output.closeReading()
        throw error
      }
      (self.kept, self.ended) = (kept, ended)
      connection = AssuanConnection(reader: output.reading, writer: input.writing)
      let options = Self.options(window)
      Self.running.enter()
      Self.runningCount.add(1, ordering: .relaxed)
      DispatchQueue(label: "prefs-keyring.pinentry").async { self.run(question, options) }
    }

    private static func start(_ program: String, input: Int32, output: Int32) throws -> pid_t {
      try ChildProcess.start(program, ["pinentry"]) { actions, attributes in
        posix_spawn_file_actions_adddup2(&actions, input, 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        // Of a session of its own, no terminal stops it in the background.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        ChildProcess.restore([SIGPIPE], &attributes, flags: AgentProcess.newSession | Int32(POSIX_SPAWN_SETSIGMASK))
      }
    }

    /// Where and how it is to show itself.
    private static func options(_ window: String) -> [String] {
      var options: [String] = []
      if let terminal = Environment.variable("GPG_TTY") {
        options.append("ttyname=\(terminal)")
        if let type = Environment.variable("TERM") { options.append("ttytype=\(type)") }
      }
      for (option, category) in [("lc-ctype", "LC_CTYPE"), ("lc-messages", "LC_MESSAGES")] {
        let locale = ["LC_ALL", category, "LANG"].lazy.compactMap { Environment.variable($0) }.first
        if let locale { options.append("\(option)=\(locale)") }
      }
      if !window.isEmpty, window.utf8.count < 20, window.utf8.allSatisfy({ (48...57).contains($0) }) {
        options.append("parent-wid=\(window)")
      }
      return options
    }

    // MARK: - Ending

    /// How it has ended; nil while the user is asked.
    var end: End? { state.withLock { $0.end } }

    /// Ends pinentry, without waiting for that.
    func stop() {
      let isFirst = state.withLock { state in
        guard state.end == nil else { return false }
        state.end = .dismissed
        if let child = state.child { kill(child, SIGTERM) }
        return true
      }
      if isFirst { killLater() }
    }

    /// Kills pinentry if it has not ended in time.
    private func killLater() {
      DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Self.patience)) {
        self.state.withLock { if let child = $0.child { kill(child, SIGKILL) } }
      }
    }

    /// Waits until no pinentry is left, once all are stopped.
    static func waitForAll() { _ = running.wait(timeout: .now() + .seconds(2 * patience)) }

    // MARK: - The conversation

    private func run(_ question: String, _ options: [String]) {
      let end = converse(question, options)
      state.withLock { if $0.end == nil { $0.end = end } }
      ended()
      try? FileDescriptor.writeAll("BYE\n".utf8, to: connection.writer, named: "a pipe")
      close(connection.writer)
      close(connection.reader)
      killLater()
      waitForChild()
      Self.runningCount.subtract(1, ordering: .relaxed)
      Self.running.leave()
    }

    private func waitForChild() {
      guard let child = state.withLock({ $0.child }) else { return }
      // Its number stays its own until it is waited for.
      var information = siginfo_t()
      while waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
      state.withLock { $0.child = nil }
      waitpid(child, nil, 0)
    }

    private func converse(_ question: String, _ options: [String]) -> End {
      do {
        try connection.answer()
        for option in options {
          // One that it does not know does no harm.
          do { try connection.ask("OPTION", option) } catch is AssuanConnection.Refusal {}
        }
        try connection.ask("SETTITLE", "Keyring")
        try connection.ask("SETDESC", question)
        try connection.ask("SETPROMPT", "Passphrase:")
        for _ in 0..<Self.attempts {
          if try unlock(with: connection.ask("GETPIN")) { return .unlocked }
          try connection.ask("SETERROR", "That is not the passphrase of the vault.")
        }
        return .failed("the passphrase was wrong \(Self.attempts) times")
      } catch let refusal as AssuanConnection.Refusal {
        return refusal.isOfUser ? .dismissed : .failed("pinentry says: \(refusal.text)")
      } catch CofferError.vaultLocked {
        return .failed("the vault was locked after the passphrase was typed")
      } catch let failure as Failure {
        return .failed(Self.withoutFullStop(failure.message))
      } catch let error as CofferError {
        return .failed(Self.withoutFullStop(error.description))
      } catch {
        return .failed("pinentry has ended, or does not speak its protocol")
      }
    }

    private static func withoutFullStop(_ sentence: String) -> String {
      sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
    }

    /// Unlocks the vault, unless the dialog has been ended meanwhile.
    ///
    /// - Returns: Whether the passphrase opens the vault.
    private func unlock(with passphrase: SecretBytes) throws -> Bool {
      guard passphrase.count > 0 else { return false }
      do {
        let opening = try kept.opening(passphrase)
        try state.withLock { state in
          guard state.end == nil else { return }
          try kept.unlock(opening)
          state.end = .unlocked
        }
        return true
      } catch CofferError.wrongKey {
        return false
      }
    }
  }
#endif
