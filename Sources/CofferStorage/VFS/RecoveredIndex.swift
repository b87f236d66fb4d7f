import CSQLite

/// The wal-index after a recovery that found no commit, or failed, while the recovery lock is still held.
///
/// https://www.sqlite.org/walformat.html#the_wal_index_file_format
struct RecoveredIndex {
  private let index: UnsafeMutableRawPointer

  private static let saltsOffset = 32
  /// The size of one of the two copies of the header.
  private static let headerByteCount = 48
  /// The size of both copies and the checkpoint information.
  private static let prefixByteCount = 136
  private static let regionByteCount = 32_768

  private let isHeaderValid: Bool

  /// nil if there is a commit.
  init?(_ index: UnsafeRawPointer?) {
    guard let index else { return nil }
    isHeaderValid =
      memcmp(index, index + Self.headerByteCount, Self.headerByteCount) == 0
      && LogChecksum.ofIndexHeader(index, byteCount: CommitCounter.offset)
        == index.load(fromByteOffset: CommitCounter.offset, as: UInt64.self)
    if isHeaderValid, index.load(fromByteOffset: 16, as: UInt32.self) > 0 { return nil }
    self.index = UnsafeMutableRawPointer(mutating: index)
  }

  /// Clears the index, and gives a valid header new salts.
  ///
  /// With an invalid header, the next connection recovers.
  ///
  /// SQLite leaves the salts of an empty log zero, so the header is the same each time: code that relies on its
  /// checksum, such as `CommitCounter`, would mistake it for the state before all commits made since. The recovering
  /// connection compares the header with its own, and reads it again.
  ///
  /// If SQLite reads a log's header but no frame, it copies uninitialized memory here, which may contain any data of
  /// this process.
  func renew(salts: UInt64) {
    memset(index + Self.prefixByteCount, 0, Self.regionByteCount - Self.prefixByteCount)
    guard isHeaderValid else { return }
    // SQLite's order: readers accept the header only if both copies are equal.
    for header in [index + Self.headerByteCount, index] {
      header.storeBytes(of: salts, toByteOffset: Self.saltsOffset, as: UInt64.self)
      header.storeBytes(
        of: LogChecksum.ofIndexHeader(header, byteCount: CommitCounter.offset), toByteOffset: CommitCounter.offset,
        as: UInt64.self)
    }
  }
}
