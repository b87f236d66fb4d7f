import CSQLite

/// The first bytes of a store file, accessed through the VFS below.
///
/// Unchecked: used by one thread until a store owns it, and from then on only with the store's state locked.
final class EnvelopeFile: @unchecked Sendable {
  /// SQLite wants names with the parameters that `sqlite3_create_filename` appends, for as long as the file is open.
  private let name: UnsafePointer<CChar>
  private let file: RealFile
  private let path: String
  /// The result of the last `read` and the bytes it parsed, cached because checksums are most of the work of opening.
  private var lastContents: Contents?
  private var lastBytes: [UInt8] = []
  /// The copies whose last write or sync failed: their contents may read back without being on the disk, and no later
  /// sync writes them.
  private var unsyncedCopies: Set<Int> = []

  /// Opens the file without locking it and without creating it.
  init(path: String, below: VFSPointer, isReadOnly: Bool) throws {
    guard let name = sqlite3_create_filename(path, "", "", 0, nil) else {
      throw StorageError.inputOutput(path: path, reason: "out of memory")
    }
    var opened: RealFile?
    let access = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
    let flags = access | SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_NOFOLLOW
    errno = 0
    let code = RealFile.open(name, below, flags, nil) { opened = $0 }
    let systemError = errno
    guard let opened else {
      sqlite3_free_filename(name)
      if systemError != 0 { throw StorageError(errno: systemError, path: path) }
      throw StorageError.inputOutput(path: path, reason: "it cannot be opened (SQLite error \(code))")
    }
    self.path = path
    self.name = name
    file = opened
  }

  deinit {
    _ = file.close()
    sqlite3_free_filename(name)
  }

  /// What the two copies hold.
  struct Contents {
    /// The newest copy that is whole.
    let envelope: Envelope
    /// The copies, 0 or 1, that differ from `envelope`.
    let damagedCopies: [Int]
    /// Those of them that are whole.
    let outdatedCopies: [Int]
    /// The envelope of the outdated copy.
    let outdated: Envelope?
  }

  /// Reads both copies.
  ///
  /// Readers hold no lock. A writer writes one copy at a time, but a single read may overlap with its writes to both.
  func read() throws -> Contents {
    for _ in 0..<2 {
      if let result = try? readOnce() { return result }
    }
    return try readOnce()
  }

  private func readOnce() throws -> Contents {
    var bytes = [UInt8](repeating: 0, count: Layout.envelopeByteCount)
    try read(into: &bytes, at: 0)
    // The log notice is no part of the envelope.
    bytes.replaceSubrange(LogNotice.range, with: repeatElement(0, count: LogNotice.range.count))
    if let lastContents, lastBytes[...].hasSameBytes(as: bytes[...]) { return lastContents }
    let contents = try Self.newest(in: bytes, path: path)
    lastContents = contents
    lastBytes = bytes
    return contents
  }

  /// The sequences in the two copies, unchecked; they increase with every change of the envelope.
  func sequences() throws -> (UInt64, UInt64) {
    try (sequence(ofCopy: 0), sequence(ofCopy: 1))
  }

  private func sequence(ofCopy copy: Int) throws -> UInt64 {
    var sequence: UInt64 = 0
    let offset = Int64(copy * Layout.envelopeCopyByteCount + Envelope.sequenceOffset)
    try withUnsafeMutableBytes(of: &sequence) { try read(into: $0, at: offset) }
    return UInt64(bigEndian: sequence)
  }

  /// A part of them would be written back as the whole.
  private func noticeBytes() throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: LogNotice.range.count)
    let code = bytes.withUnsafeMutableBytes {
      file.read($0.baseAddress!, $0.count, at: Int64(LogNotice.range.lowerBound))
    }
    guard code == SQLITE_OK else { throw unreadable(code) }
    return bytes
  }

  private func unreadable(_ code: Int32) -> StorageError {
    .inputOutput(path: path, reason: "it cannot be read (SQLite error \(code))")
  }

  /// Which log belongs to the file; nil if none has commits.
  func logNotice() throws -> LogNotice? { try LogNotice(noticeBytes()) }

  /// Fills `buffer`; what lies beyond the end of the file reads as zeros.
  func read(into buffer: inout [UInt8], at offset: Int64) throws {
    try buffer.withUnsafeMutableBytes { try read(into: $0, at: offset) }
  }

  private func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws {
    let code = file.read(buffer.baseAddress!, buffer.count, at: offset)
    guard code == SQLITE_OK || code == COFFER_IOERR_SHORT_READ else {
      throw unreadable(code)
    }
  }

  /// Writes a new envelope, one copy after the other, so that one whole copy is on the disk at any moment.
  ///
  /// Nothing of the earlier one remains once both are written. The caller holds SQLite's write lock.
  ///
  /// Modelled in `Documentation/Models/EnvelopeCopies.pml`.
  ///
  /// - Returns: Whether both copies were written. With one of them on the disk, the new envelope is in force; the next
  ///   repair writes the other one.
  /// - Throws: `StorageError.inputOutput`, `.diskFull`, with the earlier envelope in force as before: the first copy, of
  ///   which the disk may have anything, is put back.
  func write(_ copy: [UInt8]) throws -> Bool {
    // Start with the copy that is not the newest.
    let damagedCopies = try read().damagedCopies
    let sequences = try sequences()
    let first = damagedCopies.first ?? (sequences.0 <= sequences.1 ? 0 : 1)
    let earlier = try bytes(ofCopy: 1 - first)
    lastContents = nil
    do {
      try write(copy, over: first)
    } catch {
      // Written and not synced, it would show, and the failure that is reported would not be true.
      do {
        try write(earlier, over: first)
      } catch {
        // If not even that can be written, what shows is in force.
        lastContents = nil
        if let bytes = try? bytes(ofCopy: first), bytes == copy { return false }
      }
      throw error
    }
    do {
      try write(copy, over: 1 - first)
      return true
    } catch {
      return false
    }
  }

  /// A copy, without the log notice.
  private func bytes(ofCopy index: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Layout.envelopeCopyByteCount)
    try read(into: &bytes, at: Int64(index * Layout.envelopeCopyByteCount))
    bytes.replaceSubrange(LogNotice.range, with: [UInt8](repeating: 0, count: LogNotice.range.count))
    return bytes
  }

  private func write(_ copy: [UInt8], over index: Int) throws {
    let offset = Int64(index * Layout.envelopeCopyByteCount)
    var copy = copy
    // The first copy keeps the log notice, which only the holder of the write lock changes.
    let notice = try index == 0 ? noticeBytes() : [UInt8](repeating: 0, count: LogNotice.range.count)
    copy.replaceSubrange(LogNotice.range, with: notice)
    unsyncedCopies.insert(index)
    errno = 0
    var code = copy.withUnsafeBytes { file.write($0.baseAddress!, $0.count, at: offset) }
    if code == SQLITE_OK { code = file.sync() }
    guard code == SQLITE_OK else {
      // A file system with delayed allocation reports a full disk only on sync.
      if code == SQLITE_FULL || errno == ENOSPC || errno == EDQUOT { throw StorageError.diskFull(path: path) }
      throw StorageError.inputOutput(path: path, reason: "the envelope cannot be written (SQLite error \(code))")
    }
    unsyncedCopies.remove(index)
  }

  /// Overwrites a damaged or outdated copy with the newest one, then rewrites a copy that was never synced, and syncs
  /// each, if `isTrusted` accepts the newest.
  ///
  /// The caller holds SQLite's write lock.
  ///
  /// Modelled in `Documentation/Models/EnvelopeCopies.pml`.
  func repair(isTrusted: (Envelope) throws -> Bool) throws {
    let contents = try read()
    guard try isTrusted(contents.envelope) else { return }
    let damagedCopies = contents.damagedCopies
    let copy = try bytes(ofCopy: damagedCopies.first.map { 1 - $0 } ?? 0)
    lastContents = nil
    for index in damagedCopies + unsyncedCopies.subtracting(damagedCopies) { try write(copy, over: index) }
  }

  /// Takes the lock that excludes every connection to the file, and every other holder of it.
  ///
  /// - Returns: Whether it was free; otherwise nothing is locked.
  func lock() -> Bool {
    let (xLock, handle) = (file.methods.xLock, file.file)
    // SQLite takes these two in this order when it recovers a rollback journal.
    if xLock!(handle, SQLITE_LOCK_SHARED) == SQLITE_OK, xLock!(handle, SQLITE_LOCK_EXCLUSIVE) == SQLITE_OK {
      return true
    }
    unlock()
    return false
  }

  func unlock() {
    _ = file.methods.xUnlock(file.file, SQLITE_LOCK_NONE)
  }

  func byteCount() throws -> Int64 {
    var size: Int64 = 0
    let code = file.byteCount(&size)
    guard code == SQLITE_OK else {
      throw StorageError.inputOutput(path: path, reason: "its size is unknown (SQLite error \(code))")
    }
    return size
  }

  private struct WholeCopy {
    let index: Int
    let envelope: Envelope
  }

  /// The envelope in an open file, which no other descriptor may be opened for, since closing that would drop its locks; nil if it
  /// cannot be read.
  static func envelope(in descriptor: Int32, path: String) -> Envelope? {
    var bytes = [UInt8](repeating: 0, count: Layout.envelopeByteCount)
    guard pread(descriptor, &bytes, bytes.count, 0) == bytes.count else { return nil }
    bytes.replaceSubrange(LogNotice.range, with: repeatElement(0, count: LogNotice.range.count))
    return try? newest(in: bytes, path: path).envelope
  }

  private static func newest(in bytes: [UInt8], path: String) throws -> Contents {
    // SQLite's VFS also treats a file of one byte as empty.
    var status = stat()
    if stat(path, &status) == 0, status.st_size == 0 {
      throw StorageError.notAStore(path: path, reason: "the file is empty")
    }
    var wholeCopies: [WholeCopy] = []
    var damagedCopies: [Int] = []
    var isForeign = true
    let copies = [bytes[..<Layout.envelopeCopyByteCount], bytes[Layout.envelopeCopyByteCount...]]
    for (index, copy) in copies.enumerated() {
      do {
        // They differ only when a change was interrupted, or one is damaged.
        if index == 1, !wholeCopies.isEmpty, copy.hasSameBytes(as: copies[0]) { continue }
        wholeCopies.append(WholeCopy(index: index, envelope: try Envelope(copy: copy)))
        isForeign = false
      } catch EnvelopeError.newerFormat(let part, let found, let supported) {
        // Whole but from a newer version: not treated as damaged, since the other copy may be older.
        throw StorageError.newerFormat(part: part, found: found, supported: supported)
      } catch EnvelopeError.wrongMagic {
        damagedCopies.append(index)
      } catch EnvelopeError.unreadable(let what) {
        // Whole as well.
        throw StorageError.damaged(
          part: "envelope", reason: "copy \(index) has a part that this version cannot read: \(what)")
      } catch is EnvelopeError {
        damagedCopies.append(index)
        isForeign = false
      }
    }
    // If the sequences are equal, the first copy wins.
    if let newest = wholeCopies.max(by: { $0.envelope.sequence < $1.envelope.sequence }) {
      // A change was interrupted between the two: secrets it revoked must not survive in the other copy.
      let outdated = wholeCopies.filter { $0.index != newest.index }
      let outdatedCopies = outdated.map(\.index)
      return Contents(
        envelope: newest.envelope, damagedCopies: damagedCopies + outdatedCopies, outdatedCopies: outdatedCopies,
        outdated: outdated.first?.envelope)
    }
    if isForeign {
      throw StorageError.notAStore(
        path: path,
        reason: bytes.starts(with: Array("SQLite format 3".utf8))
          ? "it is a plain SQLite database" : "it does not begin with a store's header")
    }
    throw StorageError.damaged(part: "envelope", reason: "both of its copies are damaged")
  }
}
