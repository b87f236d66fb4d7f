/// An environment of a collection: `web@staging` holds what differs from `web` in `staging`.
///
/// Environment and collection are tied by their names alone: behind the last `@` stands the name of the environment, which is
/// letters and digits of ASCII, `-` and `_`, and before it the collection, which is no environment itself. An environment is there
/// once the collection of that name was made, even if it holds nothing.
///
/// ```swift
/// let staging = try CollectionEnvironment("staging", of: "web")
/// try connection.readWrite { try $0.makeEnvironment(staging) }
/// ```
public struct CollectionEnvironment: Sendable, CustomStringConvertible {
  /// The name of the environment.
  public let name: String
  /// The collection that shows where nothing is set in the environment.
  public let parent: String

  /// The collection that holds what is set in the environment.
  public var collection: String { "\(parent)@\(name)" }

  /// The collection's name.
  public var description: String { collection }

  /// An environment of a collection, whether it is there or not.
  ///
  /// - Throws: `CofferError.unsupported` when the name is none, or the collection is an environment itself.
  public init(_ name: String, of parent: String) throws {
    guard Self.isName(name[...]) else {
      throw CofferError.unsupported(
        reason: "the environment \"\(name)\": its name is to be letters and digits of ASCII, - and _")
    }
    guard CollectionEnvironment(collection: parent) == nil else {
      throw CofferError.unsupported(reason: "an environment of \"\(parent)\", which is one itself")
    }
    (self.name, self.parent) = (name, parent)
  }

  /// Reads the name of a collection; nil where it is not one of an environment.
  public init?(collection: String) {
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
