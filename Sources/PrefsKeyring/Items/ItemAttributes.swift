import Coffer

/// The attributes by which programs find an item: names with values, compared by their bytes.
///
/// They are not secret.
struct ItemAttributes: Equatable, Sendable {
  /// The attribute that names the kind of an item, in libsecret and here.
  static let schema = "xdg:schema"

  /// One attribute with its value.
  struct Pair: Hashable {
    let name: ByteString
    let value: ByteString
  }

  private let values: [ByteString: ByteString]

  init(_ attributes: [String: String]) {
    self.init(attributes.map { ($0, $1) })
  }

  /// - Parameter attributes: Of several with one name, the last counts.
  init(_ attributes: [(name: String, value: String)]) {
    values = Dictionary(attributes.map { (ByteString($0), ByteString($1)) }) { $1 }
  }

  /// In the order of the bytes of their names.
  var sorted: [(name: String, value: String)] {
    values.sorted { $0.key < $1.key }.map { ($0.key.string, $0.value.string) }
  }

  /// In no order.
  var pairs: [Pair] { values.map { Pair(name: $0.key, value: $0.value) } }

  subscript(name: String) -> String? { values[ByteString(name)]?.string }

  /// These with another one, unless they have it.
  func adding(_ value: String, for name: String) -> ItemAttributes {
    ItemAttributes([(name, value)] + sorted)
  }

  /// Whether all of `wanted` are among these.
  func contain(_ wanted: ItemAttributes) -> Bool {
    wanted.values.allSatisfy { values[$0] == $1 }
  }
}
