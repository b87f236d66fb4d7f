import CSQLite
import CofferCrypto

/// State shared by the files of one SQLite connection: the store, the ciphers, and the last failure.
///
/// Unchecked: a connection and its context are used by one thread at a time; the table only passes a context to
/// `xOpen`, on the thread that opens the connection.
final class ConnectionContext: @unchecked Sendable {
  let store: Store
  let codec: PageCodec
  private let epochs: StoreCodec
  /// True while a new store is filled under its temporary name; only then may the file have no pages yet.
  let isCreating: Bool
  /// Whether there may be room for a log and shared memory.
  let hasRoom: Bool
  /// The error behind SQLite's result code, taken when the code is turned into an error.
  private(set) var failure: StorageError?
  /// How often the write lock was given back because the wal-index must be recovered first.
  var outdatedIndexCount = 0
  /// The part of the log lost in a recovery.
  var logLoss: LogLoss?

  private let token: UInt64
  /// The contexts of connections being opened.
  private static let table = Lock<(next: UInt64, contexts: [ConnectionContext])>((1, []))

  init(store: Store, isCreating: Bool, hasRoom: Bool = true) throws {
    self.store = store
    self.isCreating = isCreating
    self.hasRoom = hasRoom
    epochs = try StoreCodec(store)
    codec = epochs.pages
    token = Self.table.withLock { table in
      defer { table.next += 1 }
      return table.next
    }
  }

  /// Runs `body` with the value of the URI parameter `coffer` by which `xOpen` finds this context.
  func whileListed<Result>(_ body: (String) throws -> Result) rethrows -> Result {
    Self.table.withLock { $0.contexts.append(self) }
    defer { Self.table.withLock { table in table.contexts.removeAll { $0 === self } } }
    return try body(String(token))
  }

  static func find(_ parameter: UnsafePointer<CChar>?) -> ConnectionContext? {
    guard let parameter, let token = UInt64(String(cString: parameter)) else { return nil }
    return table.withLock { table in table.contexts.first { $0.token == token } }
  }

  /// Runs `body`, which looks up a file of the store by name, with the rights of the store's owner.
  func acting(_ body: () -> Int32) -> Int32 {
    do {
      return try store.owner.acting(body)
    } catch {
      fail(error)
      return SQLITE_CANTOPEN
    }
  }

  /// Held while a file of a store is opened by its name.
  private static let opening = Lock<Void>(())

  /// Runs `open`, which opens a file of the store by its name, unless another store has the store's name by then: runs
  /// `close` in that case, since the file may be the other store's.
  ///
  /// What has a log's or an index's name belongs to the store that has the store's name, before and after a
  /// replacement; so it is this store's if this store has its name afterwards. One thread at a time: closing an index
  /// drops all locks of this process on it, which another thread may have taken on it meanwhile, as that store's.
  func openingByName(_ open: () -> Int32, close: () -> Void) -> Int32 {
    Self.opening.withLock { _ in
      guard !store.isReplaced else { return failReplaced() }
      let code = open()
      guard code == SQLITE_OK || code == SQLITE_READONLY, store.isReplaced else { return code }
      close()
      return failReplaced()
    }
  }

  private func failReplaced() -> Int32 {
    fail(.replaced(path: store.path))
    return SQLITE_CANTOPEN
  }

  // MARK: Failures

  func fail(_ error: StorageError) {
    failure = error
  }

  func fail(_ error: any Error) {
    failure = error as? StorageError ?? .unsupported(reason: "\(error)")
  }

  func fail(_ error: CryptoError, part: String) {
    guard error == .authenticationFailed else { return failure = .unsupported(reason: "\(error)") }
    failure =
      store.isOverwritten
      ? .replaced(path: store.path) : .damaged(part: part, reason: "it does not authenticate")
  }

  /// Records why the VFS below failed: by the time SQLite asks, other calls have overwritten errno.
  ///
  /// - Returns: The given code.
  @inline(__always)
  func checked(_ code: Int32) -> Int32 {
    if code != SQLITE_OK { noteSystemError(code) }
    return code
  }

  private func noteSystemError(_ code: Int32) {
    let error = errno
    // The end of a file is not a system error, nor is a lock held by others.
    guard code & 0xff == SQLITE_IOERR, code != COFFER_IOERR_SHORT_READ, error != 0, failure == nil else { return }
    failure =
      switch StorageError(errno: error, path: store.path) {
      case .diskFull(let path): .diskFull(path: path)
      // Whatever the error, the file exists and was opened.
      default: .inputOutput(path: store.path, reason: systemErrorText(error))
      }
  }

  /// Clears the failure of an operation whose error SQLite ignored.
  func clearFailure() {
    failure = nil
  }

  func takeFailure() -> StorageError? {
    defer { failure = nil }
    return failure
  }

  // MARK: Envelope

  /// Loads the envelope's changes by other processes.
  ///
  /// Call with a lock held that a change needs, too.
  func synchronizeEnvelope() throws { try epochs.synchronize() }

  /// Deciphers the header of the log, 32 bytes in place; nil if it is not known whether an epoch makes its checksum valid, and
  /// `failure` says why.
  func decipherLogHeader(_ header: UnsafeMutableRawPointer) -> Bool? {
    do {
      return try epochs.decipherLogHeader(header)
    } catch {
      fail(error)
      return nil
    }
  }

  /// Whether the epoch's key is present to open a sealed page.
  ///
  /// Readers hold no lock that blocks changes of the envelope: they may read a page of a new epoch before they know
  /// its key, and then load it. If that fails, `failure` says why.
  @inline(__always)
  func canOpen(_ sealedPage: UnsafeRawPointer) -> Bool {
    do {
      try epochs.learnEpoch(ofSealedPage: sealedPage)
      return true
    } catch {
      fail(error)
      return false
    }
  }
}
