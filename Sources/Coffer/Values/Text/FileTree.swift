/// What a file of settings says.
///
/// A dictionary in a value cannot hold two names that differ only in their Unicode normalization. Collections and keys
/// compare by their bytes, so the dictionaries at the outer levels of a file are lists of members.
package enum FileTree: Sendable, Equatable {
  case value(Value)
  case members([Member])

  package struct Member: Sendable, Equatable {
    package let name: String
    package let tree: FileTree

    package init(_ name: String, _ tree: FileTree) { (self.name, self.tree) = (name, tree) }

    package static func == (left: Self, right: Self) -> Bool {
      ByteString(left.name) == ByteString(right.name) && left.tree == right.tree
    }
  }

  /// The levels that are read as members: collections, and their settings.
  package static let outerLevels = 2

  /// Members as they are read, each name once.
  package struct Builder {
    private var names: Set<ByteString> = []
    private var members: [Member] = []

    package init() {}

    /// - Returns: Whether the name is new.
    package mutating func append(_ name: String, _ tree: FileTree) -> Bool {
      guard names.insert(ByteString(name)).inserted else { return false }
      members.append(Member(name, tree))
      return true
    }

    package var tree: FileTree { .members(members) }
  }

  /// The members of a dictionary, sorted by the UTF-8 bytes of their names; nil for anything else.
  package var sortedMembers: [Member]? {
    let members: [Member]
    switch self {
    case .members(let list): members = list
    case .value(.dictionary(let dictionary)): members = dictionary.map { Member($0.key, .value($0.value)) }
    case .value: return nil
    }
    return members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
  }

  /// The tree as a value; nil if two names in it differ only in their Unicode normalization.
  package var asValue: Value? {
    guard case .members(let members) = self else {
      if case .value(let value) = self { return value }
      return nil
    }
    var dictionary: [String: Value] = [:]
    for member in members {
      guard let value = member.tree.asValue, dictionary.updateValue(value, forKey: member.name) == nil else {
        return nil
      }
    }
    return .dictionary(dictionary)
  }

  /// Why a dictionary in a value cannot hold a name besides those that it has.
  package static func reason(forSecond name: String, in members: [String: Value]) -> String {
    members.keys.contains { $0.utf8.elementsEqual(name.utf8) }
      ? "a name occurs twice" : "two names in one value differ only in their Unicode normalization"
  }
}
