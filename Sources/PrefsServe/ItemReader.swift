import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Items as clients get them: what is in force, with the version that a compare-and-set needs.
struct ItemReader {
  private typealias Members = [(name: String, json: String)]

  /// Whether to read values.
  let values: Bool
  /// Whether those of secrets are among them.
  let reveals: Bool
  /// Whether the vault is unlocked, so that sealed values can be read.
  let isUnlocked: Bool

  /// The item of a key, as one JSON object.
  func json(
    _ key: String, _ settings: EffectiveSettings, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> String {
    let collection = settings.collection
    let declaration =
      settings.hasDeclarations ? try transaction.declaration(forKey: key, inCollection: collection) : nil
    let search = try settings.info(key, by: declaration, transaction)
    var members: Members = [("collection", JSONText.quoted(collection)), ("key", JSONText.quoted(key))]
    var problem = search.problem
    if let found = search.found { members += try value(of: found, key, collection, &problem, transaction) }
    // That of the collection's own item, which a compare-and-set is about, also where another value is in force.
    members.append(("version", "\(try transaction.version(forKey: key, inCollection: collection))"))
    if case .stored(let info)? = search.found {
      let dates: [(String, Date?)] = [("modified", info.modified), ("expires", info.expires), ("due", info.due)]
      for (name, date) in dates { if let date { members.append((name, JSONText.quoted(Timestamp.text(date)))) } }
    }
    if let found = search.found {
      let origin = found.origin(in: settings.shown.dropFirst().first, \.collection)
      members.append(("origin", JSONText.quoted(origin)))
    }
    if let problem { members.append(("problem", JSONText.quoted(problem))) }
    return JSONText.object(members)
  }

  /// The members for the type and the value.
  private func value(
    of found: EffectiveSettings.Found<ItemInfo>, _ key: String, _ collection: String, _ problem: inout String?,
    _ transaction: borrowing some Reading & ~Copyable
  ) throws -> Members {
    func type(_ kind: Value.Kind) -> Members { [("type", JSONText.quoted(kind.name))] }
    let isSecret = try transaction.isDeclaredSecret(key, inCollection: collection)
    if case .stored(let info) = found {
      if info.kind == .sealed, !isUnlocked { return type(.sealed) + [("sealed", "true")] }
      if !values || info.kind == .secret && !reveals { return type(isSecret ? .secret : info.kind) }
    }
    guard let value = try transaction.value(of: found, forKey: key) else { return [] }
    if !values || !reveals, isSecret || value.kind == .secret { return type(.secret) }
    guard values else { return type(value.kind) }
    do {
      let tree = try PortableValue.tree(value, native: SettingsFormat.json.native)
      return type(value.kind) + [("value", JSONText.text(tree, bigIntegers: .numbers))]
    } catch let error as FormatProblem {
      problem = "the value cannot be written as JSON: \(error.reason)"
      return type(value.kind)
    }
  }
}

/// All items of collections, as of one moment.
struct StoreSnapshot {
  let position: CommitPosition
  let nextExpiry: Date?
  /// Those of an answer or a notice.
  let members: [(name: String, json: String)]

  init(of places: [NamedCollection], _ reader: ItemReader, _ transaction: borrowing ReadTransaction) throws {
    let declared = try DeclaredKeys(transaction)
    var items: [String] = []
    for place in places { items += try reader.items(of: transaction.settings(in: place), declared, transaction) }
    position = try transaction.position()
    nextExpiry = try transaction.nextExpiry()
    members = [
      ("position", JSONText.quoted(position.description)), ("store", JSONText.quoted(transaction.session.storeID)),
      ("items", JSONText.array(items)),
    ]
  }
}

extension Reading where Self: ~Copyable {
  /// What is in force in a collection that a client names.
  borrowing func settings(in place: NamedCollection) throws -> EffectiveSettings {
    let place = try place.inForce(self)
    return try effectiveSettings(of: place.name, parent: place.parent)
  }
}

extension ItemReader {
  /// The items of a collection that are set, declared or an administrator's, by key.
  func items(
    of settings: EffectiveSettings, prefix: String = "", _ declared: DeclaredKeys,
    _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [String] {
    let keys = try settings.keys(declared, transaction).filter { $0.utf8.starts(with: prefix.utf8) }
    var items: [String] = []
    for key in keys.map({ ByteString($0) }).sorted() { items.append(try json(key.string, settings, transaction)) }
    return items
  }
}
