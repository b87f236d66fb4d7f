/// A row found by `TableSalvage`.
package struct SalvagedRow: Sendable {
  /// The table or index whose tree contains the row; nil on a page that is in no tree.
  package let table: String?
  /// nil in an index, and in a table WITHOUT ROWID.
  package let id: Int64?
  /// The surviving part of the row.
  package let record: Record
}

/// A row that does not fit its table.
package struct MalformedRow: Error {
  package init() {}
}

/// Finds the rows of a damaged database: first those in trees, as far as intact pages lead, then those on orphaned
/// pages.
///
/// Each page is visited once, so that cycles terminate.
package final class TableSalvage {
  /// A run of consecutive damaged pages.
  package struct DamagedPages: Sendable {
    package var numbers: ClosedRange<Int>
    /// The table or index that they belong to, `""` for free pages; nil when unknown.
    package let table: String?
    package let damage: PageDamage
  }

  private let pages: PageReader
  private let progress: (Double) throws -> Void
  /// The pages that may be present, as ranges in order.
  private let present: [ClosedRange<Int>]
  private let presentCount: Int
  /// The visited pages.
  private var isDone: [Bool]
  /// The visited ones of those after a gap; nil for one that is not present.
  private var isDoneAfterGap: [Int: Bool] = [:]
  private var doneCount = 0
  private var damaged: [Int: (table: String?, damage: PageDamage)] = [:]
  /// The root page of each table and index, from the schema.
  private var roots: [(table: String, page: Int)] = []

  /// The owner of free pages.
  package static let free = ""
  package static let schema = "sqlite_schema"
  /// See `Store.lockPage`.
  private static let lockPage = Store.lockPage

  package init(_ pages: PageReader, progress: @escaping (Double) throws -> Void) {
    self.pages = pages
    self.progress = progress
    present = (pages.presentCount > 0 ? [1...pages.presentCount] : []) + pages.pagesAfterGap.map { $0...$0 }
    presentCount = pages.presentCount + pages.pagesAfterGap.count
    isDone = [Bool](repeating: false, count: pages.presentCount + 1)
    for number in pages.pagesAfterGap { isDoneAfterGap[number] = false }
  }

  private func isPresent(_ number: Int) -> Bool { number < isDone.count || isDoneAfterGap[number] != nil }

  private func wasVisited(_ number: Int) -> Bool {
    number < isDone.count ? isDone[number] : isDoneAfterGap[number] ?? false
  }

  /// - Returns: false if it was visited before.
  private func visit(_ number: Int) -> Bool {
    guard !wasVisited(number) else { return false }
    if number < isDone.count { isDone[number] = true } else { isDoneAfterGap[number] = true }
    doneCount += 1
    return true
  }

  /// Calls `take` with each row.
  ///
  /// - Parameter take: Returns the table that a row belongs to: the one it was found in, or the one it looks like;
  ///   throws `MalformedRow` for an invalid one.
  package func run(_ take: (SalvagedRow) throws -> String?) throws {
    try walk(from: 1, of: Self.schema) { row in
      noteRoot(row)
      return Self.schema
    }
    for (table, page) in roots { try walk(from: page, of: table, take) }
    noteFreePages()
    // A page determines the owner of its children, so parents come first. A page that is in no tree may be an
    // overflow page of a later row.
    for kinds in [[BTreePage.Kind.indexInterior], [.indexLeaf, .tableLeaf]] {
      for number in present.joined() where !wasVisited(number) {
        guard case .success(let page) = pages.page(number), let kind = BTreePage.kind(page, number: number),
          kinds.contains(kind)
        else { continue }
        try walk(from: number, of: nil, take)
      }
    }
    for number in present.joined() { _ = try load(number, of: nil) }
    try progress(1)
  }

  /// The damaged pages, in order.
  package var damagedPages: [DamagedPages] {
    var ranges: [DamagedPages] = []
    func add(_ numbers: ClosedRange<Int>, _ table: String?, _ damage: PageDamage) {
      if let last = ranges.last, last.numbers.upperBound + 1 == numbers.lowerBound, last.table == table,
        last.damage == damage
      {
        ranges[ranges.count - 1].numbers = last.numbers.lowerBound...numbers.upperBound
      } else {
        ranges.append(DamagedPages(numbers: numbers, table: table, damage: damage))
      }
    }
    var next = pages.presentCount + 1
    for number in Set(damaged.keys).union(pages.pagesAfterGap).sorted() {
      if number > next { add(next...number - 1, nil, .missing) }
      if number >= next { next = number + 1 }
      if let page = damaged[number] { add(number...number, page.table, page.damage) }
    }
    if pages.pageCount >= next { add(next...pages.pageCount, nil, .missing) }
    return ranges
  }

  // MARK: Trees

  /// Visits a page and its descendants.
  private func walk(
    from root: Int, of table: String?, _ take: (SalvagedRow) throws -> String?
  ) throws {
    var waiting = [(number: root, table: table)]
    while let (number, table) = waiting.popLast() {
      guard let bytes = try load(number, of: table) else { continue }
      guard let page = BTreePage(bytes, number: number) else {
        damaged[number] = (table, .malformed)
        continue
      }
      var found = table
      var isMalformed = page.isMalformed
      for row in page.rows {
        do {
          let (record, end) = try record(of: row, table)
          let belonging = try take(SalvagedRow(table: table, id: row.id, record: record))
          found = found ?? belonging
          if let end, let damage = damaged[end] { damaged[end] = (damage.table ?? belonging, damage.damage) }
        } catch is MalformedRow {
          isMalformed = true
        }
      }
      if isMalformed { damaged[number] = (found, .malformed) }
      waiting += page.children.reversed().map { ($0, found) }
    }
  }

  /// Loads an unvisited page; nil if it was visited before, or is damaged.
  private func load(_ number: Int, of table: String?) throws -> [UInt8]? {
    guard number >= 1, number != Self.lockPage else { return nil }
    guard isPresent(number) else {
      // If a file ends before its first page, the rest of its contents is unknown.
      let isMissing = number <= pages.pageCount || !pages.isPageCountKnown
      if isMissing, number > 1, damaged[number] == nil { damaged[number] = (table, .missing) }
      return nil
    }
    guard visit(number) else { return nil }
    if doneCount % 64 == 0 { try progress(Double(doneCount) / Double(presentCount)) }
    switch pages.page(number) {
    case .success(let page): return page
    case .failure(let damage):
      damaged[number] = (table, damage)
      return nil
    }
  }

  /// A row with its overflow pages, as far as they can be read.
  ///
  /// - Returns: The row, and the first overflow page that cannot be read, if any.
  private func record(of row: BTreePage.Row, _ table: String?) throws -> (Record, end: Int?) {
    var bytes = row.local
    var next = row.overflowPage
    // Longer than all pages together: not a valid length.
    guard Int64(row.byteCount - bytes.count) <= Int64(pages.pageCount) * Int64(Layout.payloadByteCount) else {
      throw MalformedRow()
    }
    while let number = next, bytes.count < row.byteCount, let page = try load(number, of: table) {
      bytes += page[4..<min(Layout.payloadByteCount, 4 + row.byteCount - bytes.count)]
      next = Int(pageNumber: page.bigEndian32(at: 0))
    }
    guard let record = Record(payload: bytes, byteCount: row.byteCount) else { throw MalformedRow() }
    return (record, bytes.count < row.byteCount ? next : nil)
  }

  /// Records a row of the schema, https://www.sqlite.org/schematab.html.
  private func noteRoot(_ row: SalvagedRow) {
    guard row.record.columns.count >= 4, case .text(let name) = row.record.columns[1],
      case .integer(let page) = row.record.columns[3], let page = Int(exactly: page), page > 1
    else { return }
    roots.append((String(decoding: name, as: UTF8.self), page))
  }

  // MARK: Free pages

  /// Marks the pages of the free list, https://www.sqlite.org/fileformat2.html#the_freelist.
  private func noteFreePages() {
    guard case .success(let first) = pages.page(1) else { return }
    var trunk = Int(pageNumber: first.bigEndian32(at: 32))
    while noteFree(trunk), case .success(let page) = pages.page(trunk) {
      let count = min(Int(pageNumber: page.bigEndian32(at: 4)), Layout.payloadByteCount / 4 - 2)
      for index in 0..<count { _ = noteFree(Int(pageNumber: page.bigEndian32(at: 8 + 4 * index))) }
      trunk = Int(pageNumber: page.bigEndian32(at: 0))
    }
  }

  /// - Returns: Whether the page is in no tree.
  private func noteFree(_ number: Int) -> Bool {
    guard number > 0, number != Self.lockPage else { return false }
    guard isPresent(number) else {
      guard number <= pages.pageCount, damaged[number] == nil else { return false }
      damaged[number] = (Self.free, .missing)
      return false
    }
    guard visit(number) else { return false }
    if case .failure(let damage) = pages.page(number) { damaged[number] = (Self.free, damage) }
    return true
  }
}
