import CSQLite
import CofferCrypto

/// What the files of one SQLite connection share: the store, the ciphers, and what went wrong last.
///
/// Unchecked: a connection is used by one thread at a time, and everything here with it; the table only hands a context
/// to `xOpen`, on the thread that opens the connection.
final class ConnectionContext: @unchecked Sendable {
  let store: Store
  let codec: PageCodec
  /// True while a new store is filled under its temporary name; only then may the file hold no page yet.
  let isCreating: Bool
  /// The sequence of the envelope whose epochs the codec holds.
  private var envelopeSequence: UInt64
  /// What SQLite's result code cannot say; taken by whoever turns the code into an error.
  private(set) var failure: StorageError?
  /// What a recovery had to leave out of the log.
  var logLoss: LogLoss?

  private let token: UInt64
  /// Those that are being opened.
  private static let table = Lock<(next: UInt64, contexts: [ConnectionContext])>((1, []))

  init(store: Store, isCreating: Bool) throws {
    self.store = store
    self.isCreating = isCreating
    let (sequence, keys) = store.keys
    envelopeSequence = sequence
    codec = try PageCodec(keys: keys)
    token = Self.table.withLock { table in
      defer { table.next += 1 }
      return table.next
    }
  }

  /// Runs `body` with the value of the URI parameter `coffer` that leads `xOpen` here.
  func whileListed<Result>(_ body: (String) throws -> Result) rethrows -> Result {
    Self.table.withLock { $0.contexts.append(self) }
    defer { Self.table.withLock { table in table.contexts.removeAll { $0 === self } } }
    return try body(String(token))
  }

  static func find(_ parameter: UnsafePointer<CChar>?) -> ConnectionContext? {
    guard let parameter, let token = UInt64(String(cString: parameter)) else { return nil }
    return table.withLock { table in table.contexts.first { $0.token == token } }
  }

  /// Runs `body`, in which a file of the store is found by its name, under the rights of the store's owner.
  func acting(_ body: () -> Int32) -> Int32 {
    do {
      return try store.owner.acting(body)
    } catch {
      fail(error as? StorageError ?? .unsupported(reason: "\(error)"))
      return SQLITE_CANTOPEN
    }
  }

  // MARK: Failures

  func fail(_ error: StorageError) {
    failure = error
  }

  func fail(_ error: CryptoError, part: String) {
    guard error == .authenticationFailed else { return failure = .unsupported(reason: "\(error)") }
    failure =
      store.isOverwritten
      ? .replaced(path: store.path) : .damaged(part: part, reason: "it does not authenticate")
  }

  /// Remembers why the VFS below failed: by the time SQLite asks for it, other calls have overwritten the system's error.
  ///
  /// - Returns: The code that is given.
  @inline(__always)
  func checked(_ code: Int32) -> Int32 {
    if code != SQLITE_OK { noteSystemError(code) }
    return code
  }

  private func noteSystemError(_ code: Int32) {
    let error = errno
    // The end of a file is no error of the system, nor is a lock that others have.
    guard code & 0xff == SQLITE_IOERR, code != COFFER_IOERR_SHORT_READ, error != 0, failure == nil else { return }
    failure =
      switch StorageError(errno: error, path: store.path) {
      case .diskFull(let path): .diskFull(path: path)
      // Whatever it is: the file is there, and was opened.
      default: .inputOutput(path: store.path, reason: systemErrorText(error))
      }
  }

  /// Forgets what an operation whose failure SQLite swallowed left behind.
  func clearFailure() {
    failure = nil
  }

  func takeFailure() -> StorageError? {
    defer { failure = nil }
    return failure
  }

  // MARK: Envelope

  /// Takes over what another process changed in the envelope.
  ///
  /// Called with a lock held that a change needs too.
  func synchronizeEnvelope() throws {
    guard let (sequence, keys) = try store.keys(changedSince: envelopeSequence) else { return }
    try codec.use(keys)
    envelopeSequence = sequence
  }

  /// Whether all is there to try a sealed page with.
  ///
  /// Readers hold no lock that a change of the envelope needs: they meet a page of a new epoch before they know its key,
  /// and look for it. When that fails, `failure` says why.
  @inline(__always)
  func canOpen(_ sealedPage: UnsafeRawPointer) -> Bool {
    codec.knowsEpoch(ofSealedPage: sealedPage) || learnEpochs()
  }

  private func learnEpochs() -> Bool {
    do {
      try synchronizeEnvelope()
      return true
    } catch {
      fail(error as? StorageError ?? .unsupported(reason: "\(error)"))
      return false
    }
  }
}
