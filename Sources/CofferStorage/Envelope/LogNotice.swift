import CofferCrypto

#if os(Linux)
  import CSystemCalls
#endif

/// Which log belongs to a store file, as noted in the file itself; FORMAT.md, Log notice, has its bytes.
///
/// SQLite finds a log by the store's name. A file with two names, by a hard link or because it is mounted by itself,
/// would have two logs, each with commits that the other one overwrites. So the notice is made before the first frame
/// of a log is written, and cleared once the log is removed. Anyone who can write the file can change it: it detects
/// accidents.
package struct LogNotice: Equatable {
  /// In the first copy of the envelope, before its checksum, which does not cover it.
  package static let range = 8096..<8160

  /// A file that is recognized wherever it is moved, but not a copy of it.
  struct File: Equatable {
    let inode: UInt64
    /// When it was created, in nanoseconds; 0 where unknown.
    ///
    /// Without it, a copy may get the number of a removed file.
    let birth: UInt64

    /// nil if there is no file.
    init?(at path: String) {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      self.init(status, path)
    }

    fileprivate init(_ status: stat, _ path: String) {
      #if os(Linux)
        birth = coffer_time_of_birth(path)
      #else
        birth =
          UInt64(clamping: status.st_birthtimespec.tv_sec) &* 1_000_000_000
          &+ UInt64(clamping: status.st_birthtimespec.tv_nsec)
      #endif
      inode = UInt64(status.st_ino)
    }

    fileprivate init(inode: UInt64, birth: UInt64) {
      (self.inode, self.birth) = (inode, birth)
    }
  }

  /// Where a log is.
  struct Place: Equatable {
    let folderDevice: UInt64
    let folderInode: UInt64
    /// The first bytes of the SHA-256 of the log's name.
    let name: UInt64

    /// Of the log beside the store at `path`.
    init?(besides path: String) {
      var status = stat()
      guard stat(FilePath.folder(above: path), &status) == 0,
        let digest = try? Array((FilePath.lastComponent(of: path) + "-wal").utf8).withUnsafeBytes(SHA256.digest)
      else { return nil }
      folderDevice = UInt64(truncatingIfNeeded: status.st_dev)
      folderInode = UInt64(status.st_ino)
      name = digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    fileprivate init(folderDevice: UInt64, folderInode: UInt64, name: UInt64) {
      (self.folderDevice, self.folderInode, self.name) = (folderDevice, folderInode, name)
    }
  }

  /// The store file itself.
  let store: File
  let place: Place
  /// The inode of the log; 0 if there was none.
  let log: UInt64

  /// The notice for the store at `path` and the log beside it; nil if they cannot be examined.
  init?(storeAt path: String) {
    guard let store = File(at: path), let place = Place(besides: path) else { return nil }
    (self.store, self.place) = (store, place)
    var status = stat()
    log = lstat(path + "-wal", &status) == 0 ? UInt64(status.st_ino) : 0
  }

  // MARK: Bytes

  private static let magic = Array("coffer/l".utf8)
  private static let checksumByteCount = 8

  /// nil for zeros, which mean that no log has commits, and for anything that is not a whole notice.
  ///
  /// - Throws: `CryptoError` where that cannot be known, for lack of memory.
  init?(_ bytes: [UInt8]) throws {
    guard bytes.count == Self.range.count, bytes.starts(with: Self.magic) else { return nil }
    let checksum = try Self.checksum(Array(bytes.dropLast(Self.checksumByteCount)))
    guard checksum.elementsEqual(bytes.suffix(Self.checksumByteCount)) else { return nil }
    let numbers = stride(from: Self.magic.count, to: bytes.count - Self.checksumByteCount, by: 8).map { offset in
      bytes[offset..<offset + 8].reduce(0) { $0 << 8 | UInt64($1) }
    }
    store = File(inode: numbers[0], birth: numbers[1])
    place = Place(folderDevice: numbers[2], folderInode: numbers[3], name: numbers[5])
    log = numbers[4]
  }

  func encoded() throws -> [UInt8] {
    var writer = ByteWriter()
    writer.append(Self.magic)
    for number in [store.inode, store.birth, place.folderDevice, place.folderInode, log, place.name] {
      writer.append(number)
    }
    return try writer.bytes + Self.checksum(writer.bytes)
  }

  private static func checksum(_ bytes: [UInt8]) throws -> ArraySlice<UInt8> {
    try bytes.withUnsafeBytes(SHA256.digest).prefix(checksumByteCount)
  }

  // MARK: Meaning

  /// Whether a notice that was made for the log of the store at `path` still is; the store itself is known to be the same file.
  ///
  /// - Parameter foundLog: The inode of the log, if it was just found there.
  func isStillOfLog(besides path: String, found foundLog: UInt64?) -> Bool {
    var (folder, log) = (stat(), stat())
    guard stat(FilePath.folder(above: path), &folder) == 0,
      UInt64(truncatingIfNeeded: folder.st_dev) == place.folderDevice, UInt64(folder.st_ino) == place.folderInode
    else { return false }
    if let foundLog { return foundLog == self.log }
    return lstat(path + "-wal", &log) == 0 && UInt64(log.st_ino) == self.log
  }

  /// Which log a notice names, as seen from one name of the store.
  enum Meaning {
    /// None: it is of another file, such as the original of a copy.
    case nothing
    /// The one that belongs to this name.
    case thisLog
    /// One beside another name of this file.
    case otherLog
  }

  /// The meaning for the store at `path`; nil if that cannot be known, for lack of memory or because there is no file.
  func meaning(at path: String) -> Meaning? {
    guard let here = LogNotice(storeAt: path) else { return nil }
    guard here.store == store else { return .nothing }
    // The same place, also if the log was removed by hand.
    if here.place == place { return .thisLog }
    // Store and log were moved together. A log with two names was linked, as by `cp -al`, and is not moved.
    var status = stat()
    let isMoved = here.log != 0 && here.log == log && lstat(path + "-wal", &status) == 0 && status.st_nlink == 1
    return isMoved ? .thisLog : .otherLog
  }
}
