import CSQLite
import CofferCrypto

/// Why a page of a store cannot be used.
package enum PageDamage: Error, Sendable {
  /// It does not authenticate, or the disk cannot read it.
  case unreadable
  /// The file ends before the page.
  case missing
  /// It authenticates, but violates SQLite's format.
  case malformed
}

/// The pages of a store as of its last whole commit, read and authenticated one by one, without SQLite, so that it
/// works on stores that SQLite cannot open.
///
/// Nothing is locked and nothing is written.
package final class PageReader {
  /// The number of pages in the database.
  ///
  /// If neither the log nor page 1 states it, it is derived from the file's size, and is at least 1.
  package private(set) var pageCount: Int
  /// Whether the log or page 1 states the number of pages.
  package private(set) var isPageCountKnown: Bool
  /// The number of pages that may be present without a gap, from page 1 on.
  package private(set) var presentCount: Int
  /// Further pages of the log, after the first missing one, in order.
  ///
  /// Only frames that an attacker made with the key leave a gap. Their page numbers, up to 2³², must bound neither
  /// memory nor time: those depend only on the sizes of file and log.
  package private(set) var pagesAfterGap: [Int]
  /// The contents of the log.
  package let log: LogScan
  private let store: Store
  private let codec: StoreCodec
  private let logPages: LogScan.Pages
  private let filePageCount: Int
  /// The number of bytes after the last page; 0 while commits in the log may shrink the file.
  private(set) var tailByteCount = 0
  private let versions: [FileVersion?]

  package init(_ store: Store) throws {
    versions = Self.versions(of: store)
    self.store = store
    codec = try StoreCodec(store)
    log = try LogScan(of: store)
    logPages = try LogScan.Pages(log, of: store)
    let fileByteCount = try store.fileByteCount()
    // The last page may be partly present.
    let hasPart = fileByteCount > Layout.envelopeByteCount && fileByteCount % Int64(Layout.pageByteCount) > 0
    filePageCount = Layout.pageCount(inFileOf: fileByteCount) + (hasPart ? 1 : 0)
    (presentCount, pagesAfterGap) = (filePageCount, [])
    pageCount = log.pageCount ?? max(1, filePageCount, log.lastPage)
    isPageCountKnown = log.pageCount != nil
    if !isPageCountKnown, case .success(let first) = page(1), let count = DatabaseHeader.pageCount(in: first) {
      (pageCount, isPageCountKnown) = (count, true)
    }
    presentCount = min(filePageCount, pageCount)
    for number in log.pages(after: filePageCount) where number <= pageCount {
      if number == presentCount + 1 { presentCount = number } else { pagesAfterGap.append(number) }
    }
    if isPageCountKnown, log.pageCount == nil {
      tailByteCount = Int(clamping: max(0, fileByteCount - Layout.offset(ofPage: pageCount + 1)))
    }
  }

  private static func versions(of store: Store) -> [FileVersion?] {
    ["", "-wal"].map { FileVersion(ofFileAt: store.path + $0) }
  }

  /// Whether the store is unmodified since this reader was made.
  package var isUnchanged: Bool { Self.versions(of: store) == versions }

  /// A decrypted page, its reserved bytes zero.
  ///
  /// - Parameter number: From 1 to `pageCount`.
  package func page(_ number: Int) -> Result<[UInt8], PageDamage> {
    if logPages.has(number) { return logPages.page(number).map(Result.success) ?? .failure(.unreadable) }
    guard number <= filePageCount else { return .failure(.missing) }
    var page = [UInt8](repeating: 0, count: Layout.pageByteCount)
    guard (try? store.readRaw(&page, at: Layout.offset(ofPage: number))) != nil else {
      return .failure(.unreadable)
    }
    let isOpen = (try? codec.open(&page, at: .database(page: UInt32(number)))) ?? false
    return isOpen ? .success(page) : .failure(.unreadable)
  }
}
