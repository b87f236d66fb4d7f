import Coffer

/// Which entry a command is about.
struct KeyReference {
  let collection: String
  let key: String

  /// Reads `KEY` or `COLLECTION/KEY`, split at the first slash; with `-c` the whole argument is the key.
  init(_ argument: String, collection: String?) {
    let argument = CommandArguments.value(argument)
    if let collection {
      self.collection = collection
      key = argument
    } else if let slash = argument.utf8.firstIndex(of: UInt8(ascii: "/")) {
      // By bytes: a combining mark after the slash would hide it from Character.
      self.collection = String(argument[..<slash])
      key = String(argument[argument.utf8.index(after: slash)...])
    } else {
      self.collection = ""
      key = argument
    }
  }

  /// All entries that `text` may name, split at each of its slashes, the first one before the others.
  ///
  /// Text that begins with a slash names a key of the default collection, and nothing else.
  static func all(_ text: String, collection: String?) -> [KeyReference] {
    let first = KeyReference(text, collection: collection)
    guard collection == nil, !first.collection.isEmpty else { return [first] }
    let slashes = text.utf8.indices.filter { text.utf8[$0] == UInt8(ascii: "/") }
    return [first]
      + slashes.dropFirst().map { slash in
        KeyReference(
          String(text[text.utf8.index(after: slash)...]), collection: CommandArguments.value(String(text[..<slash])))
      }
  }

  /// The entry as an argument that names it again.
  static func text(_ key: String, in collection: String) -> String {
    if collection.isEmpty { return key.utf8.contains(UInt8(ascii: "/")) ? "/" + key : key }
    return collection + "/" + key
  }

  /// The failure that says there is no such key, with the nearest name there is.
  func notFound(in transaction: borrowing some Reading & ~Copyable) -> Failure {
    if collection.isEmpty, let count = try? transaction.numberOfKeys(inCollection: key), count > 0 {
      let keys = DisplayText.count(count, "key", "keys")
      return Failure(
        .notFound, notFoundMessage.dropLast() + "; \(Self.describe(key)) has \(keys): prefs list \(key)")
    }
    guard let near = try? suggestion(in: transaction) else { return Failure(.notFound, notFoundMessage) }
    return Failure(.notFound, notFoundMessage.dropLast() + "; did you mean \"\(near)\"?")
  }

  /// Refuses a collection that has no items, unless it is the default one.
  static func requireItems(in collection: String, _ transaction: borrowing some Reading & ~Copyable) throws {
    guard try transaction.numberOfKeys(inCollection: collection) > 0 || collection.isEmpty else {
      throw Failure(.notFound, "there is no \(describe(collection)).")
    }
  }

  /// The sentence that says there is no such key.
  var notFoundMessage: String { "there is no key \"\(key)\" in \(Self.describe(collection))." }

  /// Looking at every name costs more than the hint is worth in a large collection.
  private static let suggestionLimit = 10_000

  private func suggestion(in transaction: borrowing some Reading & ~Copyable) throws -> String? {
    let count = try transaction.numberOfKeys(inCollection: collection)
    if count == 0 {
      let near = NearName.best(for: collection, among: try transaction.allCollections().filter { !$0.isEmpty })
      return near.map { "\($0)/\(key)" }
    }
    guard count <= Self.suggestionLimit else { return nil }
    return NearName.best(for: key, among: try transaction.allKeys(inCollection: collection))
  }

  /// The collection in a sentence.
  static func describe(_ collection: String) -> String {
    collection.isEmpty ? "the default collection" : "collection \"\(collection)\""
  }
}

extension KeyReference {
  /// Whether both name the same entry, byte by byte.
  func isSame(as other: KeyReference) -> Bool {
    key.utf8.elementsEqual(other.key.utf8) && collection.utf8.elementsEqual(other.collection.utf8)
  }
}
