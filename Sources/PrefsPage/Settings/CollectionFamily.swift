import Coffer
import PrefsCommands

/// A column: a collection beside others that have the same settings, or what an administrator gives for it.
struct Column: Hashable, Comparable, Sendable {
  /// The suite that has this part of the collection; nil for the collection itself.
  let tenant: ByteString?
  let environment: ByteString?
  var isAdministrators = false

  /// The collection itself comes first, then what an administrator gives for it, then its environments; then the same of tenants.
  private var order: (ByteString, Int, ByteString) {
    (tenant ?? ByteString(""), isAdministrators ? 1 : environment == nil ? 0 : 2, environment ?? ByteString(""))
  }

  static func < (one: Self, other: Self) -> Bool { one.order < other.order }

  /// Whether it is the collection that the others are compared with.
  var isBase: Bool { tenant == nil && environment == nil && !isAdministrators }

  var json: String {
    JSONText.object([
      ("tenant", tenant.map { JSONText.quoted($0.string) } ?? "null"),
      ("environment", environment.map { JSONText.quoted($0.string) } ?? "null"),
      ("administrator", isAdministrators ? "true" : "false"),
    ])
  }
}

/// A collection with its environments, the parts that tenants have of it, and what administrators give for these.
struct CollectionFamily: Sendable {
  struct Member: Sendable {
    let column: Column
    let collection: String
  }

  /// The collection that the others are compared with; the page may not show it.
  let base: String
  /// What the page shows, in order.
  fileprivate(set) var members: [Member] = []

  /// The collections that the page shows.
  var collections: [String] { members.filter { !$0.column.isAdministrators }.map(\.collection) }

  func contains(_ collection: String) -> Bool {
    members.contains { $0.collection.utf8.elementsEqual(collection.utf8) }
  }
}

extension SettingReader {
  /// The families of the collections that were read, each with two columns at least.
  func allFamilies(in scope: CollectionScope) -> [CollectionFamily] {
    let environments = Dictionary(self.environments.map { (ByteString($0.collection), $0) }) { $1 }
    // A collection that has nothing but environments is shown beside them.
    let read = effective.keys + effective.keys.compactMap { environments[$0].map { ByteString($0.parent) } }
    let shown = Set(read).filter { scope.contains($0.string) }
    let mains = shown.map { environments[$0]?.parent ?? $0.string }
    let known = Set((mains + declared.settings.map(\.declaration.collection)).map { ByteString($0) })
    var families: [ByteString: CollectionFamily] = [:]
    for (collection, main) in zip(shown, mains) {
      let (base, tenant) = base(of: main, known)
      func add(_ column: Column) {
        families[ByteString(base), default: CollectionFamily(base: base)].members
          .append(CollectionFamily.Member(column: column, collection: collection.string))
      }
      add(Column(tenant: tenant, environment: environments[collection].map { ByteString($0.name) }))
      // What an administrator gives holds in all environments.
      if environments[collection] == nil, effective[collection]?.managedKeys.isEmpty == false {
        add(Column(tenant: tenant, environment: nil, isAdministrators: true))
      }
    }
    return families.values.filter { $0.members.count > 1 }.map { family in
      var family = family
      family.members.sort { $0.column < $1.column }
      return family
    }.sorted { ByteString($0.base) < ByteString($1.base) }
  }

  /// What a collection is a tenant's part of, and the tenant: "acme/billing" is that of "acme" of "billing".
  ///
  /// Where programs declare settings, they say whether tenants have them for themselves.
  private func base(of collection: String, _ known: Set<ByteString>) -> (base: String, tenant: ByteString?) {
    for slash in collection.utf8.indices.dropFirst() where collection.utf8[slash] == UInt8(ascii: "/") {
      let rest = String(collection[collection.utf8.index(after: slash)...])
      guard known.contains(ByteString(rest)) else { continue }
      guard declared.settings(in: rest).isEmpty || !declared.settings(in: collection).isEmpty else { continue }
      let base = base(of: rest, known).base
      return (base, ByteString(String(collection.utf8.dropLast(base.utf8.count + 1)) ?? ""))
    }
    return (collection, nil)
  }
}
