import Coffer

/// Prompts for a passphrase or a recovery key, depending on the slots.
struct KeyPrompt {
  private let takesPassphrase: Bool
  private let takesRecoveryKey: Bool
  private let subject: String
  private let options: SessionOptions
  /// The prefix of the options that supply the answer without a terminal.
  private let prefix: String

  /// - Parameters:
  ///   - slots: The slots to open.
  ///   - subject: Their owner, as named in the prompt.
  init(_ slots: [SlotInfo], of subject: String, options: SessionOptions, prefix: String = "--") {
    takesPassphrase = slots.contains { $0.kind == .passphrase }
    takesRecoveryKey = slots.contains { $0.kind == .recoveryKey }
    self.subject = DisplayText.escapingControls(subject)
    self.options = options
    self.prefix = prefix
  }

  /// Whether to prompt after a key did not work.
  ///
  /// A recovery key is a last resort: without a terminal, the earlier error is more useful.
  var stands: Bool {
    !options.noInput && (takesPassphrase || (takesRecoveryKey && Terminal.isThere))
  }

  /// Prompts, and opens with the answer.
  func open<R>(_ open: (KeySource) throws -> R) throws -> R {
    let answer = try ask()
    guard takesRecoveryKey else { return try open(.passphrase(answer)) }
    do {
      return try open(.recoveryKey(answer))
    } catch let error as CofferError {
      guard takesPassphrase, error.exitStatus == .keyUnavailable || error == .wrongKey else { throw error }
      do {
        return try open(.passphrase(answer))
      } catch CofferError.wrongKey where answer.count >= Self.recoveryKeyLength {
        // It was meant as a recovery key, and the error names the mistyped group.
        throw error
      }
    }
  }

  /// The characters of a recovery key without its dashes.
  private static let recoveryKeyLength = 40

  private var question: String {
    switch (takesPassphrase, takesRecoveryKey) {
    case (true, true): "Passphrase or recovery key for \(subject): "
    case (false, true): "Recovery key for \(subject): "
    default: "Passphrase for \(subject): "
    }
  }

  private func ask() throws -> SecretBytes {
    let wantsRecoveryKey = takesRecoveryKey && !takesPassphrase
    let needed = wantsRecoveryKey ? "its recovery key" : "a passphrase"
    let way = "Give it with \(prefix)\(wantsRecoveryKey ? "recovery-key-fd" : "passphrase-fd")."
    if options.noInput {
      throw Failure(.keyUnavailable, "\(subject) needs \(needed), and --no-input forbids asking. \(way)")
    }
    do {
      return try Terminal.secret(question)
    } catch let failure as Failure {
      throw Failure(.keyUnavailable, "\(subject) needs \(needed): \(failure.message) \(way)")
    }
  }
}
