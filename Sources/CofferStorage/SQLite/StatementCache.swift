/// The prepared statements of a connection, by the addresses of their literals: a statement's text is written once in the
/// program.
///
/// There are some dozens: looking at each is faster than hashing an address. Nor is there a dictionary with a type of keys
/// of its own, see `Store.shared`.
struct StatementCache {
  /// No tuple: an array of those takes the runtime three times as long to make its type.
  private struct Entry {
    let literal: UnsafePointer<UInt8>
    let statement: Statement
  }

  private var entries: [Entry] = []

  subscript(sql: StaticString) -> Statement? {
    index(of: sql).map { entries[$0].statement }
  }

  mutating func insert(_ statement: Statement, for sql: StaticString) {
    entries.append(Entry(literal: sql.utf8Start, statement: statement))
  }

  mutating func remove(_ sql: StaticString) -> Statement? {
    guard let index = index(of: sql) else { return nil }
    entries.swapAt(index, entries.count - 1)
    return entries.removeLast().statement
  }

  mutating func finalizeAll() {
    for entry in entries { entry.statement.finalize() }
    entries = []
  }

  @inline(__always)
  private func index(of sql: StaticString) -> Int? {
    entries.firstIndex { $0.literal == sql.utf8Start }
  }
}
