import CSQLite
import Synchronization

/// A number that changes with each commit by any process; reading it takes one load, without a lock or a system call.
///
/// It is the checksum of the wal-index header, which covers the header's own commit counter and, unlike that one,
/// does not restart with a recovery: https://www.sqlite.org/walformat.html#the_wal_index_file_format. SQLite writes
/// it last, before the commit returns. It stays readable as long as this object lives, even after the connection is
/// closed.
///
/// Unchecked: the pointer is only read through; other connections change the memory, by whole words.
package final class CommitCounter: @unchecked Sendable {
  /// The offset of the checksum in the wal-index.
  static let offset = 40

  package let word: UnsafePointer<Atomic<UInt64>>
  private let memory: Memory

  private enum Memory {
    case mapping(UnsafeMutableRawPointer)
    case heap(HeapFile)
  }

  /// The current number.
  package var value: UInt64 { word.pointee.load(ordering: .acquiring) }

  /// Maps the first page of a mapped wal-index a second time; nil if the system refuses.
  init?(mappedIndex: UnsafeRawPointer) {
    guard let page = coffer_map_again(UnsafeMutableRawPointer(mutating: mappedIndex), Self.pageByteCount) else {
      return nil
    }
    memory = .mapping(page)
    word = Self.word(in: page)
  }

  /// - Parameter file: Keeps the index alive.
  init(index: UnsafeRawPointer, in file: HeapFile) {
    memory = .heap(file)
    word = Self.word(in: index)
  }

  deinit {
    if case .mapping(let page) = memory { munmap(page, Self.pageByteCount) }
  }

  private static let pageByteCount = Int(getpagesize())

  private static func word(in index: UnsafeRawPointer) -> UnsafePointer<Atomic<UInt64>> {
    (index + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
  }
}
