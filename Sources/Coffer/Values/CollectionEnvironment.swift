/// An environment of a collection: `web@staging` holds the settings that differ from `web` in `staging`.
///
/// Environment and collection are connected by their names alone: the part after the last `@` is the name of the environment
/// (ASCII letters and digits, `-` and `_`); the part before it is the collection, which must not be an environment itself.
/// An environment exists once its collection was created, even if it is empty.
///
/// ```swift
/// let staging = try CollectionEnvironment("staging", of: "web")
/// try connection.readWrite { try $0.makeEnvironment(staging) }
/// ```
package struct CollectionEnvironment: Sendable, CustomStringConvertible {
  /// The name of the environment.
  package let name: String
  /// The collection whose values show when nothing is set in the environment.
  package let parent: String

  /// The collection that holds the environment's own values.
  package var collection: String { "\(parent)@\(name)" }

  /// The collection's name.
  package var description: String { collection }

  /// Creates an environment of a collection, whether it exists in the store or not.
  ///
  /// - Throws: `CofferError.unsupported` when the name is invalid, or the collection is an environment itself.
  package init(_ name: String, of parent: String) throws {
    guard Self.isName(name[...]) else {
      throw CofferError.unsupported(
        reason: "\"\(name)\" is not a valid name of an environment: use ASCII letters, digits, - and _")
    }
    guard CollectionEnvironment(collection: parent) == nil else {
      throw CofferError.unsupported(reason: "\(parent) is itself an environment, and cannot have environments")
    }
    (self.name, self.parent) = (name, parent)
  }

  /// Parses the name of a collection; nil if it is not the name of an environment.
  package init?(collection: String) {
    guard let at = collection.utf8.lastIndex(of: UInt8(ascii: "@")) else { return nil }
    let name = collection[collection.utf8.index(after: at)...]
    let parent = String(collection[..<at])
    guard Self.isName(name), CollectionEnvironment(collection: parent) == nil else { return nil }
    (self.name, self.parent) = (String(name), parent)
  }

  private static func isName(_ name: Substring) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
