import CSQLite

/// The first bytes of a store file, through the VFS below.
///
/// Unchecked: until a store has it, one thread does; then the store reads through it with its state locked.
final class EnvelopeFile: @unchecked Sendable {
  /// SQLite wants names with the parameters that `sqlite3_create_filename` appends, for as long as the file is open.
  private let name: UnsafePointer<CChar>
  private let file: RealFile
  private let path: String
  /// What `read` found last, and in which bytes: checksums are most of the work of opening.
  private var lastRead: (bytes: [UInt8], envelope: Envelope, damagedCopies: [Int])?

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

  /// The newest copy that is whole, and which copies, 0 or 1, are not.
  func read() throws -> (envelope: Envelope, damagedCopies: [Int]) {
    var bytes = [UInt8](repeating: 0, count: Layout.envelopeByteCount)
    try read(into: &bytes, at: 0)
    if let lastRead, lastRead.bytes[...].hasSameBytes(as: bytes[...]) {
      return (lastRead.envelope, lastRead.damagedCopies)
    }
    let (envelope, damagedCopies) = try Self.newest(in: bytes, fileByteCount: byteCount(), path: path)
    lastRead = (bytes, envelope, damagedCopies)
    return (envelope, damagedCopies)
  }

  /// Fills `buffer`; what lies beyond the end of the file reads as zeros.
  func read(into buffer: inout [UInt8], at offset: Int) throws {
    let code = buffer.withUnsafeMutableBytes { file.read($0.baseAddress!, $0.count, at: Int64(offset)) }
    guard code == SQLITE_OK || code == COFFER_IOERR_SHORT_READ else {
      throw StorageError.inputOutput(path: path, reason: "it cannot be read (SQLite error \(code))")
    }
  }

  /// Writes the whole copy over a damaged one, and syncs, if `isTrusted` takes the whole one.
  ///
  /// The caller holds SQLite's write lock.
  func repair(isTrusted: (Envelope) throws -> Bool) throws {
    let (envelope, damagedCopies) = try read()
    guard let damaged = damagedCopies.first, try isTrusted(envelope) else { return }
    var copy = [UInt8](repeating: 0, count: Layout.envelopeCopyByteCount)
    try read(into: &copy, at: (1 - damaged) * Layout.envelopeCopyByteCount)
    let offset = Int64(damaged * Layout.envelopeCopyByteCount)
    var code = copy.withUnsafeBytes { file.write($0.baseAddress!, $0.count, at: offset) }
    if code == SQLITE_OK { code = file.sync() }
    guard code == SQLITE_OK else {
      throw StorageError.inputOutput(path: path, reason: "the envelope cannot be repaired (SQLite error \(code))")
    }
  }

  func byteCount() throws -> Int {
    var size: Int64 = 0
    let code = file.byteCount(&size)
    guard code == SQLITE_OK else {
      throw StorageError.inputOutput(path: path, reason: "its size is unknown (SQLite error \(code))")
    }
    return Int(size)
  }

  private static func newest(
    in bytes: [UInt8], fileByteCount: Int, path: String
  ) throws -> (envelope: Envelope, damagedCopies: [Int]) {
    guard fileByteCount > 0 else { throw StorageError.notAStore(path: path, reason: "the file is empty") }
    var envelopes: [Envelope] = []
    var damagedCopies: [Int] = []
    var newerVersion: UInt16?
    var isForeign = true
    let copies = [bytes[..<Layout.envelopeCopyByteCount], bytes[Layout.envelopeCopyByteCount...]]
    for (index, copy) in copies.enumerated() {
      do {
        // They differ only when a change was cut short, or one is damaged.
        if index == 1, !envelopes.isEmpty, copy.hasSameBytes(as: copies[0]) { continue }
        envelopes.append(try Envelope(copy: copy))
        isForeign = false
      } catch EnvelopeError.newerFormat(let version) {
        newerVersion = max(newerVersion ?? 0, version)
        isForeign = false
      } catch EnvelopeError.wrongMagic {
        damagedCopies.append(index)
      } catch EnvelopeError.unreadable(let what) {
        // Whole, and not understood: never taken for damaged, since the other copy may be older.
        throw StorageError.damaged(
          part: "envelope", reason: "copy \(index) holds what this version cannot read: \(what)")
      } catch is EnvelopeError {
        damagedCopies.append(index)
        isForeign = false
      }
    }
    if let newerVersion {
      throw StorageError.newerFormat(found: Int(newerVersion), supported: Int(Layout.formatVersion))
    }
    if let newest = envelopes.max(by: { $0.sequence < $1.sequence }) { return (newest, damagedCopies) }
    if isForeign {
      throw StorageError.notAStore(
        path: path,
        reason: bytes.starts(with: Array("SQLite format 3".utf8))
          ? "it is a plain SQLite database" : "it does not begin as one")
    }
    throw StorageError.damaged(part: "envelope", reason: "neither of its two copies is whole")
  }
}
