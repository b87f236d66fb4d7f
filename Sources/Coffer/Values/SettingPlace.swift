/// A setting by its declared names, or an item by its own.
package struct SettingPlace: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let collection: ByteString
  package let key: ByteString

  package init(_ key: String, in collection: String) {
    (self.collection, self.key) = (ByteString(collection), ByteString(key))
  }

  package var description: String { KeyText.of(key.string, in: collection.string) }

  package static func < (one: Self, other: Self) -> Bool {
    (one.collection, one.key) < (other.collection, other.key)
  }
}

/// The name of a setting in sentences, as in the shell.
package enum KeyText {
  package static func of(_ key: String, in collection: String) -> String {
    if collection.isEmpty { return key.utf8.contains(UInt8(ascii: "/")) ? "/" + key : key }
    return "\(collection)/\(key)"
  }
}
