import Coffer
import CofferStorage

/// A collection to copy, or some of its keys.
package struct CopiedCollection {
  package let name: String
  /// The collection behind it whose items are copied, too: the parent of an environment.
  package let parent: String?
  /// Its name in the target.
  package let newName: String
  /// The keys to copy; nil for all.
  package let keys: [String]?

  package init(name: String, parent: String? = nil, newName: String, keys: [String]? = nil) {
    self.name = name
    self.parent = parent
    self.newName = newName
    self.keys = keys
  }

  package var shown: [String] { [name] + [parent].compactMap(\.self) }
}

extension ReadWriteTransaction {
  /// Copies the items of `collections` from `source`, in this store or another, with values, metadata, expiries and
  /// due dates.
  ///
  /// Sealed items are opened with the source's vault, and those that go into a sealed collection are sealed with this
  /// store's vault. Text that its setting's declaration hides becomes a secret value, unless the target's declaration hides it, too.
  /// Versions, times and history are not copied.
  ///
  /// - Parameters:
  ///   - mode: What happens to items that only this store has.
  ///   - isDryRun: Whether to report the changes without making them.
  ///   - progress: Called with the fraction done, from 0 to 1; an error it throws ends the copying.
  ///   - willReplace: Called for each item whose value, metadata or dates would change, with whether a secret would become
  ///     another kind of value; an error it throws ends the copying.
  /// - Throws: `CofferError.vaultLocked` if a collection is sealed and its vault is locked; `.notDecodable`.
  package borrowing func copyItems(
    _ collections: [CopiedCollection], from source: borrowing some Reading & ~Copyable, mode: ImportMode,
    isDryRun: Bool = false, progress: (Double) throws -> Void = { _ in },
    willReplace: (_ key: String, _ collection: String, _ revealsSecret: Bool) throws -> Void
  ) throws -> PlainImportReport {
    var items = ItemImport(lists: isDryRun)
    items.begin(collections.map(\.newName))
    var number = 0
    var total = 0
    for collection in collections {
      total +=
        try collection.keys?.count
        ?? collection.shown.reduce(0) { try $0 + source.numberOfKeys(inCollection: $1) }
    }
    for collection in collections {
      let isSealed = try collection.shown.contains { try source.isSealed(collection: $0) }
      for key in try collection.keys ?? source.shownKeys(in: collection.shown).sorted().map(\.string) {
        guard let item = try source.shownItem(forKey: key, in: collection.shown) else { continue }
        let replaced = items.replacedCount
        let isSecret = try source.isDeclaredSecret(key, inCollection: collection.name)
        // What a declaration hides here, nothing may hide there.
        let losesVeil = try isSecret && !isDeclaredSecret(key, inCollection: collection.newName)
        let value = losesVeil ? item.value.veiled ?? item.value : item.value
        let revealsSecret =
          try value.kind != .secret && info(forKey: key, inCollection: collection.newName)?.kind == .secret
        _ = try items.set(
          PlainSource.Item(
            collection: collection.newName, key: key, value: value, metadata: item.metadata,
            dates: ItemDates(expires: item.expires, due: item.due), isSealed: isSealed,
            isSecret: isSecret),
          session)
        if items.replacedCount > replaced { try willReplace(key, collection.newName, revealsSecret) }
        number += 1
        if number % 256 == 0 { try progress(Double(number) / Double(max(total, 1))) }
      }
    }
    try progress(1)
    return try items.end(mode, isDryRun: isDryRun, self)
  }
}
