import CSQLite

/// The part of a log lost in a recovery.
package struct LogLoss: Sendable {
  /// The first frame of the log that is missing or does not authenticate; 0 for the log's header.
  package let firstFrame: UInt32
  /// Whether a later frame says that the first lost one had been synced.
  ///
  /// Otherwise a power cut, which may leave any part of unsynced frames, explains the loss.
  package let wasSynced: Bool
  /// nil if the log is not about to be overwritten, or nothing synced is lost.
  package let copy: Copy?

  /// A copy of the damaged log, kept beside the store for what can still be recovered from it.
  package enum Copy: Sendable {
    case kept(path: String)
    /// No copy could be made, for example on a full disk. The store continues without one, because it could not be
    /// written at all otherwise, and frames after a damaged one can hardly be recovered except by hand.
    case missing(reason: String)
  }
}

extension LogLoss.Copy {
  /// The most copies to keep, so that a disk that keeps damaging logs does not fill up with them.
  static let maximumCount = 4
  private static let chunkByteCount = 1 << 20
  /// No real log has a longer run of zeros; a longer one means that the file was extended beyond any disk.
  private static let longestHole = 64 << 20

  static func path(ofCopy number: Int, of storePath: String) -> String { "\(storePath)-damaged-log-\(number)" }

  /// Copies the log as it is on the disk, for the store's owner, unless a copy of it exists already.
  init(of log: RealFile, store: Store) {
    do {
      for number in 1...Self.maximumCount {
        let path = Self.path(ofCopy: number, of: store.path)
        if try Self.copy(log, to: path, store) {
          self = .kept(path: path)
          return
        }
      }
      self = .missing(reason: "there are \(Self.maximumCount) copies already; move or remove them")
    } catch {
      self = .missing(reason: (error as? StorageError)?.reason ?? "\(error)")
    }
  }

  /// - Returns: false when `path` is taken by another file.
  private static func copy(_ log: RealFile, to path: String, _ store: Store) throws -> Bool {
    var (original, status) = (stat(), stat())
    guard lstat(store.path + "-wal", &original) == 0 else { throw StorageError(errno: errno, path: path) }
    if lstat(path, &status) == 0 {
      // The log has not changed since it was copied: its readers were interrupted before they wrote.
      return status.st_size == original.st_size && status.st_uid == original.st_uid
        && FileVersion.isSameTime(status, original)
    }
    let file = try NewFile(besides: path, owner: store.owner, observer: store.vfs.fileCallObserver)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunkByteCount, alignment: 16)
    defer { buffer.deallocate() }
    let size = Int(clamping: original.st_size)
    var (end, hole) = (0, 0)
    while end < size, hole < longestHole {
      let count = min(chunkByteCount, size - end)
      guard log.read(buffer.baseAddress!, count, at: Int64(end)) == SQLITE_OK else {
        throw StorageError.inputOutput(path: path, reason: "the log cannot be read")
      }
      end += count
      let chunk = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      // The copy takes no more space than the log.
      if chunk.allSatisfy({ $0 == 0 }) {
        hole += count
      } else {
        try file.skip(hole)
        try file.write(chunk)
        hole = 0
      }
    }
    try file.skip(hole + size - end)
    try file.takeTime(of: original)
    do {
      try file.publish()
    } catch StorageError.exists {
      return false
    }
    return true
  }
}

extension StorageError {
  /// The reason, for the middle of a sentence.
  fileprivate var reason: String {
    switch self {
    case .diskFull: "the disk is full"
    case .permissionDenied(_, let reason), .inputOutput(_, let reason): reason
    default: "\(self)"
    }
  }
}
