import Coffer
import CofferStorage

extension Database {
  /// Copies everything readable in a damaged store into a new one, and reports what is lost.
  ///
  /// ```swift
  /// let report = try Database.salvage(at: path, key: key, to: path + ".salvaged", newKey: key)
  /// for item in report.lostItems { print("\(item.collection)/\(item.key): \(item.reason)") }
  /// ```
  ///
  /// The damaged store is read page by page, without SQLite, and never written; no other process may write to it
  /// meanwhile. Frames of its log count if they belong to whole commits before the first damaged frame. Every row on
  /// an intact page is saved, even if the pages that lead to it are damaged; pages that do not authenticate are never
  /// used. Items keep their version and time, metadata and history. A collection whose name is lost is named `lost-`
  /// and its number.
  ///
  /// The new store has its own id and its own internal keys, even if the same key opens it. It appears whole and
  /// durable, or not at all. It begins a new change log.
  ///
  /// Of the envelope's copies, the newer one that `key` opens is used. An older one may open pages with a key whose slot was
  /// removed since.
  ///
  /// - Parameter progress: Called with the fraction done, from 0 to 1; an error it throws ends the salvage and leaves
  ///   no store.
  /// - Throws: `CofferError.storeExists` if `newPath` exists; `.wrongKey`; `.damaged` if both copies of the envelope
  ///   are damaged; `.busy` if another process writes to the store; `.rootKeyUnverified` if it has replaced the root key; the
  ///   errors of `open`, `create` and `progress`.
  public static func salvage(
    at path: String, key: KeySource, to newPath: String, newKey: KeySource,
    progress: (Double) throws -> Void = { _ in }
  ) throws -> SalvageReport {
    try withoutActuallyEscaping(progress) { progress in
      try CofferError.translating {
        var report = SalvageReport()
        // Refuses an existing file before anything is read.
        try createUnopened(at: newPath, key: newKey) { connection, newStore in
          let store = try Store.openForSalvage(at: path, key: key)
          report.damagedEnvelopeCopies = try store.damagedEnvelopeCopies()
          let pages = try PageReader(store)
          try Schema.check(pages)
          try Schema.create(in: connection)
          let copy = SalvageCopy(connection)
          try copy.fill(from: TableSalvage(pages, progress: progress), into: &report)
          guard pages.isUnchanged else { throw StorageError.busy }
          // Pages under keys that others have put in force since are not damaged.
          try store.refresh()
          report.add(pages)
          try Metadata(connection: connection).bind(to: newStore)
        }
        return report
      }
    }
  }
}

extension SalvageReport {
  fileprivate mutating func add(_ pages: PageReader) {
    pageCount = pages.pageCount
    isPageCountKnown = pages.isPageCountKnown
    logFrameCount = pages.log.committedFrameCount
    lostLogFrameCount = pages.log.lostFrameCount
  }
}

extension Schema {
  /// Refuses a schema of another version, if page 1 still states the version.
  fileprivate static func check(_ pages: PageReader) throws {
    guard case .success(let page) = pages.page(1) else { return }
    // https://www.sqlite.org/fileformat2.html#database_header, "User version".
    try check(version: page[60..<64].reduce(0) { $0 << 8 | Int($1) })
  }
}
