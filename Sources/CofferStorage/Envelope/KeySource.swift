import CofferCrypto

/// A secret that opens a store, or its vault.
public enum KeySource: Sendable {
  /// The path of a file that holds a random key, as made by `KeyFile.create(at:)`; or of a pipe that delivers one
  /// within two minutes.
  case keyFile(String)
  /// A random key itself: 32 bytes, or the text of a key file.
  case key(SecretBytes)
  /// A passphrase, as UTF-8 bytes.
  case passphrase(SecretBytes)
  /// A recovery key as it was written down; spaces, dashes and case do not matter.
  case recoveryKey(SecretBytes)
  /// A command line for `/bin/sh -c` that prints a random key, 32 bytes or the text of a key file, within two minutes.
  case keyCommand(String)
  /// The name of a systemd credential that holds a random key: a file in `$CREDENTIALS_DIRECTORY`.
  ///
  /// See https://systemd.io/CREDENTIALS/.
  case credential(String)

  var kind: Slot.Kind {
    switch self {
    case .keyFile, .key: .keyFile
    case .passphrase: .passphrase
    case .recoveryKey: .recoveryKey
    case .keyCommand: .keyCommand
    case .credential: .credential
    }
  }

  /// Whether it may open a slot of this kind.
  ///
  /// A random key opens its slot wherever the key is stored.
  func opens(_ kind: Slot.Kind) -> Bool {
    switch self {
    case .passphrase, .recoveryKey: kind == self.kind
    case .keyFile, .key, .keyCommand, .credential: kind != .passphrase && kind != .recoveryKey
    }
  }

  /// The secret bytes to try on a slot; for a key file, its 32 random bytes.
  func secret() throws -> SecretBytes {
    switch self {
    case .keyFile(let path): return try KeyFile.read(at: path)
    case .key(let bytes): return try KeyFile.decode(bytes)
    case .passphrase(let bytes):
      guard bytes.count > 0 else { throw StorageError.keyUnavailable(reason: "the passphrase is empty") }
      return bytes
    case .recoveryKey(let text): return try RecoveryKey.decode(text)
    case .keyCommand(let command): return try KeyFile.decode(KeyCommand.output(of: command))
    case .credential(let name): return try KeyFile.read(at: Self.path(ofCredential: name))
    }
  }

  /// Whether the secret can be read again later, without waiting for a person, a program or a pipe.
  var isReadAtOnce: Bool {
    switch self {
    case .keyFile(let path): FilePath.isRegularFile(path)
    case .credential: true
    case .key, .passphrase, .recoveryKey, .keyCommand: false
    }
  }

  /// How long a key command or a pipe may take to deliver its key: enough to find a token and type its PIN.
  package static let timeLimit = Duration.seconds(120)

  /// Waits until `descriptor` is readable, which includes its end and errors.
  ///
  /// - Returns: false on timeout.
  package static func waitForInput(_ descriptor: Int32, until deadline: ContinuousClock.Instant) -> Bool {
    while true {
      // In steps, because this clock runs while the machine sleeps and poll(2)'s does not.
      let left = min(max(deadline - .now, .zero), .seconds(10))
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let code = poll(&waiting, 1, Int32((left / .milliseconds(1)).rounded(.up)))
      if code > 0 || code < 0 && errno != EINTR { return true }
      if ContinuousClock.now >= deadline { return false }
    }
  }

  private static func path(ofCredential name: String) throws -> String {
    guard let folder = getenv("CREDENTIALS_DIRECTORY"), folder.pointee != 0 else {
      throw StorageError.keyUnavailable(
        reason: "there are no credentials: CREDENTIALS_DIRECTORY, which systemd sets for a service, is not set")
    }
    guard !name.isEmpty, !name.contains("/"), !name.utf8.contains(0) else {
      throw StorageError.keyUnavailable(reason: "\"\(name)\" is not a valid name of a credential")
    }
    return "\(String(cString: folder))/\(name)"
  }
}
