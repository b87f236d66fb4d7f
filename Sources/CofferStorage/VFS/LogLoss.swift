import CSQLite

/// What a recovery had to leave out of a log.
package struct LogLoss: Sendable {
  /// The first frame that belongs to the log and is not where it was, or does not authenticate; 0 for the log's header.
  package let firstFrame: UInt32
  /// nil where nobody is about to write over the log.
  package let copy: Copy?

  /// The copy of the log that is kept beside the store, for what it is still good for.
  package enum Copy: Sendable {
    case kept(path: String)
    /// The disk may be full. The store goes on without: it could not be written at all otherwise, for as long as the copy
    /// cannot be made, and hardly anything but a search by hand gets at frames behind a damaged one.
    case missing(reason: String)
  }
}

extension LogLoss.Copy {
  /// So many are kept: a disk that goes on damaging logs does not fill up with them.
  static let maximumCount = 4
  private static let chunkByteCount = 1 << 20
  /// No log has so many zero bytes together; behind them it has been made longer than any disk.
  private static let longestHole = 64 << 20

  static func path(ofCopy number: Int, of storePath: String) -> String { "\(storePath)-damaged-log-\(number)" }

  /// Makes a copy of the log as it lies on the disk, the store's owner's, unless there is one of it already.
  init(of log: RealFile, store: Store) {
    do {
      for number in 1...Self.maximumCount {
        let path = Self.path(ofCopy: number, of: store.path)
        if try Self.copy(log, to: path, store) {
          self = .kept(path: path)
          return
        }
      }
      self = .missing(reason: "there are \(Self.maximumCount) already; move them away, or remove them")
    } catch {
      self = .missing(reason: (error as? StorageError)?.reason ?? "\(error)")
    }
  }

  /// - Returns: false when `path` is taken by something else.
  private static func copy(_ log: RealFile, to path: String, _ store: Store) throws -> Bool {
    var (original, status) = (stat(), stat())
    guard lstat(store.path + "-wal", &original) == 0 else { throw StorageError(errno: errno, path: path) }
    if lstat(path, &status) == 0 {
      // The log has not changed since it was copied: its readers were cut off before they wrote.
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
      // The copy takes no more room than the log.
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
  /// Why, in the middle of a sentence.
  fileprivate var reason: String {
    switch self {
    case .diskFull: "the disk is full"
    case .permissionDenied(_, let reason), .inputOutput(_, let reason): reason
    default: "\(self)"
    }
  }
}
