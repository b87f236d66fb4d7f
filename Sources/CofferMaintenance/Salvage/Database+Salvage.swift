import Coffer
import CofferStorage

extension Database {
  /// Writes what is readable of a damaged store into a new one, and lists what is lost.
  ///
  /// ```swift
  /// let report = try Database.salvage(at: path, key: key, to: path + ".salvaged", newKey: key)
  /// for item in report.lostItems { print("\(item.collection)/\(item.key): \(item.reason)") }
  /// ```
  ///
  /// The damaged store is read page by page, without SQLite, and no byte of it is written; no other process may write to it
  /// meanwhile. Of its log those frames count that belong to whole commits, up to the first damaged one. What stands on an
  /// intact page is saved, also when the pages that lead to it are damaged; what does not authenticate is never used. Items
  /// keep their version and time, metadata and history. A collection whose name is lost is called `lost-` and its number.
  ///
  /// The new store has an id and keys of its own beneath, also when the same key opens it. It appears whole and durable, or
  /// not at all.
  ///
  /// - Parameter progress: Gets the share that is done, from 0 to 1; what it throws ends the salvage, and leaves nothing.
  /// - Throws: `CofferError.storeExists` when there is a file at `newPath`; `.wrongKey`; `.damaged` when both copies of the
  ///   envelope are; `.busy` when somebody writes to the store; what `open` and `create` throw; what `progress` throws.
  public static func salvage(
    at path: String, key: KeySource, to newPath: String, newKey: KeySource,
    progress: (Double) throws -> Void = { _ in }
  ) throws -> SalvageReport {
    try withoutActuallyEscaping(progress) { progress in
      try CofferError.translating {
        var report = SalvageReport()
        // Refuses a path that is taken before anything is read.
        try Store.create(at: newPath, key: newKey) { connection, newStore in
          let store = try Store.open(at: path, key: key, isReadOnly: true)
          report.damagedEnvelopeCopies = try store.damagedEnvelopeCopies()
          let pages = try PageReader(store)
          try Schema.check(pages)
          try Schema.create(in: connection)
          let copy = SalvageCopy(connection)
          try copy.fill(from: TableSalvage(pages, progress: progress), into: &report)
          guard pages.isUnchanged else { throw StorageError.busy }
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
    logFrameCount = pages.log.committedFrameCount
    lostLogFrameCount = pages.log.lostFrameCount
  }
}

extension Schema {
  /// Refuses tables of another version, where page 1 says which one it is.
  fileprivate static func check(_ pages: PageReader) throws {
    guard case .success(let page) = pages.page(1) else { return }
    // https://www.sqlite.org/fileformat2.html#database_header, "User version".
    try check(version: page[60..<64].reduce(0) { $0 << 8 | Int($1) })
  }
}
