import CSQLite

/// The wal-index of a log in which a recovery has found no commit, while the recovery lock is still held.
///
/// https://www.sqlite.org/walformat.html#the_wal_index_file_format
struct RecoveredIndex {
  private let index: UnsafeMutableRawPointer

  private static let saltsOffset = 32
  /// Of a copy of the header, of which there are two.
  private static let headerByteCount = 48
  /// Of both copies, and of what is known about readers and checkpoints.
  private static let prefixByteCount = 136
  private static let regionByteCount = 32_768

  /// nil where there is a commit, or the recovery has failed and the header is not valid.
  init?(_ index: UnsafeRawPointer?) {
    guard let index, index.load(fromByteOffset: 16, as: UInt32.self) == 0,
      memcmp(index, index + Self.headerByteCount, Self.headerByteCount) == 0,
      LogChecksum.ofIndexHeader(index, byteCount: CommitCounter.offset)
        == index.load(fromByteOffset: CommitCounter.offset, as: UInt64.self)
    else { return nil }
    self.index = UnsafeMutableRawPointer(mutating: index)
  }

  /// Gives the header other salts, and clears what is indexed.
  ///
  /// SQLite leaves the salts of an empty log zero, and the header comes out the same each time: whoever goes by its
  /// checksum, as `CommitCounter` does, would take it for the one before all that was committed since. The recovering
  /// connection compares the header with its own, and reads it again.
  ///
  /// Where it finds a log's header and no frame, SQLite copies memory here that it has not cleared: what it holds may be
  /// anything of this process.
  func renew(salts: UInt64) {
    memset(index + Self.prefixByteCount, 0, Self.regionByteCount - Self.prefixByteCount)
    // SQLite's order: readers take the copies for one header only when they are the same.
    for header in [index + Self.headerByteCount, index] {
      header.storeBytes(of: salts, toByteOffset: Self.saltsOffset, as: UInt64.self)
      header.storeBytes(
        of: LogChecksum.ofIndexHeader(header, byteCount: CommitCounter.offset), toByteOffset: CommitCounter.offset,
        as: UInt64.self)
    }
  }
}
