import CSQLite

/// The wal-index after a recovery that has found no commit, or has failed, while the recovery lock is still held.
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

  private let isHeaderValid: Bool

  /// nil where there is a commit.
  init?(_ index: UnsafeRawPointer?) {
    guard let index else { return nil }
    isHeaderValid =
      memcmp(index, index + Self.headerByteCount, Self.headerByteCount) == 0
      && LogChecksum.ofIndexHeader(index, byteCount: CommitCounter.offset)
        == index.load(fromByteOffset: CommitCounter.offset, as: UInt64.self)
    if isHeaderValid, index.load(fromByteOffset: 16, as: UInt32.self) > 0 { return nil }
    self.index = UnsafeMutableRawPointer(mutating: index)
  }

  /// Clears what is indexed, and gives a valid header other salts.
  ///
  /// Under one that is not valid, the next connection recovers.
  ///
  /// SQLite leaves the salts of an empty log zero, and the header comes out the same each time: whoever goes by its
  /// checksum, as `CommitCounter` does, would take it for the one before all that was committed since. The recovering
  /// connection compares the header with its own, and reads it again.
  ///
  /// Where it reads a log's header and no frame, SQLite copies memory here that it has not cleared: what it holds may be
  /// anything of this process.
  func renew(salts: UInt64) {
    memset(index + Self.prefixByteCount, 0, Self.regionByteCount - Self.prefixByteCount)
    guard isHeaderValid else { return }
    // SQLite's order: readers take the copies for one header only when they are the same.
    for header in [index + Self.headerByteCount, index] {
      header.storeBytes(of: salts, toByteOffset: Self.saltsOffset, as: UInt64.self)
      header.storeBytes(
        of: LogChecksum.ofIndexHeader(header, byteCount: CommitCounter.offset), toByteOffset: CommitCounter.offset,
        as: UInt64.self)
    }
  }
}
