/// A name or key compared by its UTF-8 bytes, as SQLite compares it.
///
/// Swift's `String ==` compares by canonical equivalence: "é" composed and decomposed are equal to Swift, and two rows
/// to SQLite. Whatever keeps names or keys in memory uses this type.
struct ByteString: Hashable, Comparable, Sendable {
  let string: String

  init(_ string: String) {
    var string = string
    string.makeContiguousUTF8()
    self.string = string
  }

  static func == (a: Self, b: Self) -> Bool {
    a.string.utf8.elementsEqual(b.string.utf8)
  }

  static func < (a: Self, b: Self) -> Bool {
    a.string.utf8.lexicographicallyPrecedes(b.string.utf8)
  }

  func hash(into hasher: inout Hasher) {
    string.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
