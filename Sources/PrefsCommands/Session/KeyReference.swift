import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A reference to an entry.
package struct KeyReference {
  let place: NamedCollection
  package let key: String

  /// What else the text may name, split at its later slashes; the store says which of them it is.
  private let others: [KeyReference]

  package var collection: String { place.name }

  package init(_ key: String, in place: NamedCollection) { self.init(key, in: place, or: []) }

  private init(_ key: String, in collection: String) { self.init(key, in: NamedCollection(collection), or: []) }

  private init(_ key: String, in place: NamedCollection, or others: [KeyReference]) {
    (self.key, self.place, self.others) = (key, place, others)
  }

  /// Reads `KEY` or `COLLECTION/KEY`; with `-c` the whole argument is the key.
  ///
  /// A name with several slashes is split at the first one until ``resolved(_:)`` has asked the store.
  init(_ argument: String, collection: String?) {
    let argument = CommandArguments.value(argument)
    if let collection {
      self.init(argument, in: collection)
    } else if let slash = argument.utf8.firstIndex(of: UInt8(ascii: "/")) {
      // By bytes: a combining mark after the slash would hide it from Character.
      self.init(
        String(argument[argument.utf8.index(after: slash)...]), in: NamedCollection(String(argument[..<slash])),
        or: Self.laterReadings(argument))
    } else {
      self.init(argument, in: "")
    }
  }

  /// The entries that a text may name, split at each slash but the first one.
  ///
  /// Text that begins with a slash can name only a key of the default collection.
  private static func laterReadings(_ text: String) -> [KeyReference] {
    guard text.utf8.first != UInt8(ascii: "/") else { return [] }
    return text.utf8.indices.filter { text.utf8[$0] == UInt8(ascii: "/") }.dropFirst().map { slash in
      KeyReference(String(text[text.utf8.index(after: slash)...]), in: String(text[..<slash]))
    }
  }

  /// The same in environments of the collections.
  func inEnvironments(_ environment: (String) throws -> NamedCollection) rethrows -> KeyReference {
    let later = try others.map { KeyReference($0.key, in: try environment($0.collection)) }
    return KeyReference(key, in: try environment(collection), or: later)
  }

  /// Whether the text can name only this entry.
  var isCertain: Bool { others.isEmpty }

  /// The collection, if it is known without the store.
  var certainPlaces: [NamedCollection] { isCertain ? [place] : [] }

  /// The entry that a text with several slashes names: one that is there or declared, or else one of the longest collection
  /// that is there or has declared settings.
  ///
  /// - Parameter mayBeGone: Whether an environment that is named as a collection may have been removed.
  /// - Throws: ``Failure`` with the status `usage` if it names several, and `notFound` if the environment does not exist.
  package func resolved(
    _ transaction: borrowing some Reading & ~Copyable, mayBeGone: Bool = false
  ) throws -> KeyReference {
    guard !isCertain else { return KeyReference(key, in: try place.inForce(transaction, mayBeGone: mayBeGone)) }
    let readings = ([self] + others).map { KeyReference($0.key, in: $0.place) }
    let declared = try DeclaredKeys(transaction)
    let there = try readings.filter { try $0.isThere(declared, transaction) }
    if there.count > 1 {
      let names = there.map { "key \"\($0.key)\" of \(DisplayText.collection($0.collection))" }
      let text = KeyText.of(key, in: collection)
      throw Failure(
        .usage, "\"\(text)\" may be \(names.joined(separator: " or ")). Name the collection with -c.")
    }
    let named = try there.first ?? readings.last { try $0.hasCollection(declared, transaction) } ?? readings[0]
    return KeyReference(named.key, in: try named.place.inForce(transaction, mayBeGone: mayBeGone))
  }

  private func isThere(_ declared: DeclaredKeys, _ transaction: borrowing some Reading & ~Copyable) throws -> Bool {
    if declared.setting(key, in: collection) != nil { return true }
    for name in place.shown where try transaction.hasObject(forKey: key, inCollection: name) { return true }
    return false
  }

  private func hasCollection(
    _ declared: DeclaredKeys, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> Bool {
    if !declared.settings(in: collection).isEmpty { return true }
    for name in place.shown where try transaction.numberOfKeys(inCollection: name) > 0 { return true }
    return false
  }

  /// The failure for a missing key, with the nearest existing name.
  ///
  /// - Parameter command: The command that shows a whole collection, if `key` names one.
  func notFound(in transaction: borrowing some Reading & ~Copyable, listing command: String = "list") -> Failure {
    if collection.isEmpty, let count = try? transaction.numberOfKeys(inCollection: key), count > 0 {
      let keys = DisplayText.count(count, "key", "keys")
      return Failure(
        .notFound,
        notFoundMessage.dropLast()
          + "; \(DisplayText.collection(key)) has \(keys): \(CommandHint.text(command, operand: key))"
      )
    }
    if let expired = try? expiry(transaction) {
      let time = expired.map { " at \(Timestamp.text($0))" } ?? ""
      return Failure(.notFound, "\(notFoundMessage.dropLast()); it has expired\(time).")
    }
    if let hint = try? hint(transaction) { return Failure(.notFound, "\(notFoundMessage.dropLast()); \(hint).") }
    guard let near = try? suggestion(in: transaction) else { return Failure(.notFound, notFoundMessage) }
    return Failure(.notFound, notFoundMessage.dropLast() + "; did you mean \"\(near)\"?")
  }

  /// Refuses a collection without items, unless it is the default one or an existing environment.
  static func requireItems(in collection: String, _ transaction: borrowing some Reading & ~Copyable) throws {
    if try collection.isEmpty || transaction.numberOfKeys(inCollection: collection) > 0 { return }
    if let environment = CollectionEnvironment(collection: collection), try transaction.hasEnvironment(environment) {
      return
    }
    if try hasExpired(collection, transaction) {
      throw Failure(.notFound, "\(DisplayText.collection(collection)) is empty; its last keys have expired.")
    }
    throw Failure(
      .notFound,
      "there is no \(DisplayText.collection(collection))" + (try nearCollection(collection, transaction) ?? "."))
  }

  /// Whether the last change of a collection was an expiry of keys.
  private static func hasExpired(
    _ collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> Bool {
    // They may not have been removed yet.
    if try transaction.hasItemsIncludingExpired(inCollection: collection) { return true }
    let filter = ChangeFilter(collection: NamedCollection(collection), key: nil)
    return try transaction.rememberedCommits().flatMap(filter.changes).last?.what == "expired"
  }

  private static func nearCollection(
    _ collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> String? {
    NearName.best(for: collection, among: try transaction.allCollections()).map { "; did you mean \"\($0)\"?" }
  }

  /// The warning for a collection without keys, whose name may be mistyped; nil if it has some.
  package static func emptyNote(
    _ collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> String? {
    guard try transaction.numberOfKeys(inCollection: collection) == 0 else { return nil }
    return "\(DisplayText.collection(collection)) holds nothing yet"
      + (try nearCollection(collection, transaction) ?? ".")
  }

  /// The effective value: in an environment without the key, the parent's.
  func shownItem(_ transaction: borrowing some Reading & ~Copyable) throws -> Item? {
    for name in place.shown {
      if let item = try transaction.item(forKey: key, inCollection: name) { return item }
    }
    return nil
  }

  /// The kind of the present value, including one that an environment inherits; a sealed value must be opened to find out.
  package func presentKind(_ transaction: borrowing some Reading & ~Copyable) throws -> Value.Kind? {
    // Also if the environment's own name is given instead of `--env`: the new value will hide the parent's.
    let parent = CollectionEnvironment(collection: collection)?.parent
    for collection in [collection] + (parent.map { [$0] } ?? []) {
      guard let kind = try transaction.info(forKey: key, inCollection: collection)?.kind else { continue }
      guard kind == .sealed else { return kind }
      return try transaction.item(forKey: key, inCollection: collection)?.value.kind
    }
    return nil
  }

  /// Another possible meaning of the argument: a key with its collection beside `-c`, or the collection of an environment, whose
  /// parent would show more.
  private func hint(_ transaction: borrowing some Reading & ~Copyable) throws -> String? {
    if !collection.isEmpty, key.utf8.starts(with: (collection + "/").utf8) {
      let rest = String(decoding: key.utf8.dropFirst(collection.utf8.count + 1), as: UTF8.self)
      return "with \(ShellWord.option("-c", collection)), omit \"\(collection)/\": the key is \"\(rest)\""
    }
    if !collection.isEmpty, key.utf8.contains(UInt8(ascii: "/")) {
      for slash in key.utf8.indices where key.utf8[slash] == UInt8(ascii: "/") {
        let (other, rest) = (String(key[..<slash]), String(key[key.utf8.index(after: slash)...]))
        guard try transaction.hasObject(forKey: rest, inCollection: other) else { continue }
        return "\(DisplayText.collection(other)) has key \"\(rest)\": name it with \(ShellWord.option("-c", other))"
      }
      if let (other, rest) = try DeclaredKeys(transaction).split(key) {
        return
          "key \"\(rest)\" is declared in \(DisplayText.collection(other)): name it with \(ShellWord.option("-c", other))"
      }
    }
    guard place.parent == nil, let environment = CollectionEnvironment(collection: collection),
      try transaction.hasObject(forKey: key, inCollection: environment.parent)
    else { return nil }
    return "\(DisplayText.collection(environment.parent)) has it, and --env \(environment.name) shows that"
  }

  /// What is to be said where something else is used instead of a missing value: that the key is not declared, in a collection with
  /// declarations; nil if it is.
  func absenceNote(_ transaction: borrowing some Reading & ~Copyable) throws -> String? {
    let declared = try DeclaredKeys(transaction)
    guard declared.setting(key, in: collection) == nil, !declared.settings(in: collection).isEmpty else { return nil }
    return "\(KeyText.of(key, in: collection)) is \(declared.absence(of: key, in: collection))"
  }

  /// The sentence that says there is no such key.
  var notFoundMessage: String { "there is no key \"\(key)\" in \(DisplayText.collection(collection))." }

  /// When the key expired, if that was its last change: the time of the expiry, or of the commit that removed it.
  private func expiry(_ transaction: borrowing some Reading & ~Copyable) throws -> Date?? {
    for name in place.shown {
      if let expired = try transaction.expiry(forKey: key, inCollection: name) { return .some(expired) }
    }
    let filter = ChangeFilter(collection: place, key: key)
    guard let last = try transaction.rememberedCommits().flatMap(filter.changes).last, last.what == "expired" else {
      return nil
    }
    return .some(last.time)
  }

  /// In a large collection, comparing every name costs more than the hint is worth.
  private static let suggestionLimit = 10_000

  private func suggestion(in transaction: borrowing some Reading & ~Copyable) throws -> String? {
    let count = try transaction.numberOfKeys(inCollection: collection)
    if count == 0 {
      let near = NearName.best(for: collection, among: try transaction.allCollections())
      guard let near, try transaction.hasObject(forKey: key, inCollection: near) else { return nil }
      return KeyText.of(key, in: near)
    }
    guard count <= Self.suggestionLimit else { return nil }
    return NearName.best(for: key, among: try transaction.allKeys(inCollection: collection))
  }

}

extension KeyReference {
  /// Whether both name the same entry, byte by byte.
  func isSame(as other: KeyReference) -> Bool {
    key.utf8.elementsEqual(other.key.utf8) && collection.utf8.elementsEqual(other.collection.utf8)
  }
}
