/// A B-tree page, https://www.sqlite.org/fileformat2.html#b_tree_pages; nothing in it is trusted.
struct BTreePage {
  enum Kind: UInt8 {
    case indexInterior = 2
    case tableInterior = 5
    case indexLeaf = 10
    case tableLeaf = 13
  }

  /// The part of a row on this page, and its first overflow page.
  struct Row {
    /// nil in an index, and in a table WITHOUT ROWID, which is stored as an index.
    let id: Int64?
    let local: [UInt8]
    let byteCount: Int
    let overflowPage: Int?
  }

  let kind: Kind
  private(set) var rows: [Row] = []
  private(set) var children: [Int] = []
  /// Whether a cell does not parse, or a pointer is invalid.
  private(set) var isMalformed = false

  /// The kind that a page claims to be; nil if it is not a B-tree page.
  static func kind(_ page: [UInt8], number: Int) -> Kind? {
    Kind(rawValue: page[headerOffset(ofPage: number)])
  }

  /// The header of the database comes first.
  private static func headerOffset(ofPage number: Int) -> Int { number == 1 ? 100 : 0 }

  /// nil when the bytes are not a B-tree page.
  init?(_ page: [UInt8], number: Int) {
    let start = Self.headerOffset(ofPage: number)
    guard let kind = Self.kind(page, number: number) else { return nil }
    self.kind = kind
    let hasChildren = kind == .indexInterior || kind == .tableInterior
    let cellCount = page.bigEndian16(at: start + 3)
    let pointers = start + (hasChildren ? 12 : 8)
    guard pointers + 2 * cellCount <= Layout.payloadByteCount else { return nil }
    for index in 0..<cellCount {
      let offset = page.bigEndian16(at: pointers + 2 * index)
      guard offset >= pointers + 2 * cellCount, readCell(page, at: offset, hasChild: hasChildren) else {
        isMalformed = true
        continue
      }
    }
    if hasChildren { children.append(Int(pageNumber: page.bigEndian32(at: start + 8))) }
  }

  /// - Returns: Whether there is a cell.
  private mutating func readCell(_ page: [UInt8], at offset: Int, hasChild: Bool) -> Bool {
    var position = offset
    if hasChild {
      guard position + 4 <= Layout.payloadByteCount else { return false }
      children.append(Int(pageNumber: page.bigEndian32(at: position)))
      position += 4
    }
    // A table keeps its rows only on leaves; the ids on interior pages are not needed.
    if kind == .tableInterior { return true }
    guard let byteCount = page.popVarint(&position) else { return false }
    var id: Int64?
    if kind == .tableLeaf {
      guard let rowid = page.popSignedVarint(&position) else { return false }
      id = rowid
    }
    let localCount = Self.localCount(byteCount, isTable: kind == .tableLeaf)
    let end = position + localCount
    guard end + (localCount < byteCount ? 4 : 0) <= Layout.payloadByteCount else { return false }
    rows.append(
      Row(
        id: id, local: Array(page[position..<end]), byteCount: byteCount,
        overflowPage: localCount < byteCount ? Int(pageNumber: page.bigEndian32(at: end)) : nil))
    return true
  }

  /// The number of bytes of a row on the page itself.
  ///
  /// https://www.sqlite.org/fileformat2.html#cell_payload_overflow_pages: U is the usable size of a page, P the
  /// length of the row, X the most that stays on a page, M the least, K fills the last overflow page.
  private static func localCount(_ p: Int, isTable: Bool) -> Int {
    let u = Layout.payloadByteCount
    let x = isTable ? u - 35 : (u - 12) * 64 / 255 - 23
    if p <= x { return p }
    let m = (u - 12) * 32 / 255 - 23
    let k = m + (p - m) % (u - 4)
    return k <= x ? k : m
  }
}
