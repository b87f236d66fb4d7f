import Coffer
import Dispatch

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Keeps the key of a store's vault from `prefs unlock` to `prefs lock`, or until it expires: in the kernel's keyring
/// if available, else in an agent.
///
/// It is found by the store's id, which is readable without a key, so locking never prompts.
package struct UnlockState {
  let storeID: String
  private let options: SessionOptions

  package init(storeID: String, options: SessionOptions) {
    self.storeID = storeID
    self.options = options
  }

  private var agent: AgentClient { AgentClient(storeID: storeID) }

  /// Keeps the key for `ttl`, and notifies processes that wait for it.
  func keep(_ key: SecretBytes, for ttl: TimeToLive) throws {
    do {
      try store(key, for: ttl)
      try announce(at: AgentSocket.unlockMarkPath(storeID: storeID))
    } catch {
      try? forget()
      throw error
    }
  }

  private func store(_ key: SecretBytes, for ttl: TimeToLive) throws {
    #if os(Linux)
      if let problem = KernelKeyring(storeID: storeID).keep(key, seconds: ttl.seconds) {
        options.detail("the kernel keyring refused (\(Failure.systemMessage(problem))); starting an agent")
        noteLackOfRoom(problem)
        KernelKeyring(storeID: storeID).forget()
      } else {
        options.detail("the key of the vault is in the kernel keyring")
        // Only now: a process that looks meanwhile finds one of the two.
        return try agent.stop()
      }
    #endif
    try agent.stop()
    try agent.start(with: key, for: ttl)
  }

  /// The key, if it is kept.
  package func key() -> SecretBytes? {
    #if os(Linux)
      if let key = KernelKeyring(storeID: storeID).key() { return key }
    #endif
    return agent.key()
  }

  /// When the kept key expires; nil if none is kept.
  package func end() -> Date? {
    #if os(Linux)
      if let end = KernelKeyring(storeID: storeID).end() { return end }
    #endif
    return agent.end()
  }

  /// Wipes the key wherever it is kept.
  func forget() throws {
    #if os(Linux)
      KernelKeyring(storeID: storeID).forget()
    #endif
    try agent.stop()
  }

  // MARK: - Processes that keep a vault open

  /// The marks of the last `prefs lock`.
  package var lockMark: LockMark {
    #if os(Linux)
      let inKeyring = KernelKeyring.ofLocks(storeID: storeID).mark
    #else
      let inKeyring: [UInt8]? = nil
    #endif
    return LockMark(file: MarkFile(AgentSocket.lockMarkPath(storeID: storeID)), inKeyring: inKeyring)
  }

  /// The paths of the marks, of which `prefs lock` and `prefs unlock` replace those that are there.
  private var marks: [String] {
    [AgentSocket.lockMarkPath(storeID: storeID), AgentSocket.unlockMarkPath(storeID: storeID)]
  }

  /// Leaves marks for `prefs lock` to replace: from now on ``lockMark`` changes with each.
  ///
  /// - Throws: ``Failure`` when it would not change.
  package func watchLocks() throws -> LockMark {
    let files = Result { try leaveMarks() }
    #if os(Linux)
      if let problem = try KernelKeyring.ofLocks(storeID: storeID).leaveMark() {
        try files.get()
        noteLackOfRoom(problem)
      }
    #else
      try files.get()
    #endif
    return lockMark
  }

  #if os(Linux)
    /// Elsewhere, as in a container, there is no keyring to speak of.
    private func noteLackOfRoom(_ problem: Int32) {
      guard problem == EDQUOT else { return }
      options.note(
        "the kernel's keyring has no room for this user: `prefs lock` of another session does not lock what this unlocks."
      )
    }
  #endif

  /// Leaves the marks that are missing.
  func leaveMarks() throws {
    try AgentSocket.prepareFolder()
    for path in marks where MarkFile(path) == nil {
      do { try FileDescriptor.writeNewFile([], to: path) } catch {
        // Another process may have left it at the same time.
        guard MarkFile(path) != nil else { throw error }
      }
    }
  }

  /// Leaves the marks that are missing, and calls `handler` when one is replaced or removed.
  func watchMarks(_ queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) throws -> FileWatcher {
    try leaveMarks()
    return try AgentSocket.watchMarks(storeID: storeID, queue: queue, handler)
  }

  /// Whether each mark is there.
  var hasMarks: Bool { marks.allSatisfy { MarkFile($0) != nil } }

  /// Wipes the key wherever it is kept, and makes processes that keep the vault unlocked lock it.
  func lock() throws {
    // In this order: a process that is notified must not find the key again.
    try? forget()
    #if os(Linux)
      let replaced = Result { try KernelKeyring.ofLocks(storeID: storeID).replaceMark() }
    #else
      let replaced = Result<Void, any Error>.success(())
    #endif
    let announced = Result { try announceLock() }
    // A `prefs unlock` may have kept the key in between, and have seen no mark.
    try forget()
    try replaced.get()
    try announced.get()
  }

  /// Locks the vault of a store that is gone, which no `prefs lock` finds any more.
  ///
  /// - Parameter done: What was done before and stays so, as a clause.
  func lockFormer(after done: String) throws {
    do { try lock() } catch {
      let failure = error as? Failure ?? Failure(.other, "\(error)")
      throw Failure(
        failure.status,
        "\(done), but what `prefs unlock` keeps of its vault may stay until its time is up: \(failure.message)",
        details: failure.details)
    }
  }

  private func announceLock() throws {
    let path = AgentSocket.lockMarkPath(storeID: storeID)
    guard MarkFile(path) != nil else { return }
    // In a folder that others can enter, no mark is looked for.
    try AgentSocket.prepareFolder()
    do { try announce(at: path) } catch {
      // There may be no room. One that is gone counts as a lock, too.
      guard unlink(path) == 0 else { throw error }
    }
  }

  private func announce(at path: String) throws {
    // Without a mark, none is watching.
    guard AgentSocket.isFolderPrivate, MarkFile(path) != nil else { return }
    let new = "\(path).\(getpid())"
    unlink(new)
    try FileDescriptor.writeNewFile([], to: new)
    guard rename(new, path) == 0 else { throw Failure.system(path, errno: errno) }
  }
}

/// One run of `prefs lock`, identified by what it left.
package struct LockMark: Sendable, Equatable {
  /// In a folder that can be watched, and which a session without `XDG_RUNTIME_DIR` does not find.
  fileprivate let file: MarkFile?
  /// In the kernel's keyring, which all sessions of the user have.
  fileprivate let inKeyring: [UInt8]?

  /// Whether `prefs lock` was run since; also if a mark is gone, which may have been replaced.
  package func isLater(than earlier: Self) -> Bool { self != earlier }
}

/// A file that is replaced as a whole.
private struct MarkFile: Equatable {
  private let inode: ino_t
  private let seconds: Int
  private let nanoseconds: Int

  init?(_ path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    #if canImport(Darwin)
      let time = status.st_ctimespec
    #else
      let time = status.st_ctim
    #endif
    (inode, seconds, nanoseconds) = (status.st_ino, Int(time.tv_sec), Int(time.tv_nsec))
  }
}
