import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Selects changes by collection and key.
struct ChangeFilter {
  /// nil for all collections.
  let collection: NamedCollection?
  /// nil for all keys of the collection.
  let key: String?
  /// What it was read from, if that has both.
  private var reference: KeyReference?

  init(collection: NamedCollection?, key: String?) {
    (self.collection, self.key) = (collection, key)
  }

  /// Reads `COLLECTION` or `COLLECTION/KEY`; with `-c` the whole argument is a key.
  init(_ argument: String?, _ common: some CommonArguments) throws {
    let argument = argument.map(CommandArguments.value)
    if common.namedCollection != nil {
      collection = try common.collection(nil)
      key = argument
    } else if let argument, argument.utf8.contains(UInt8(ascii: "/")) {
      let reference = try common.reference(argument)
      self.reference = reference
      collection = reference.place
      key = reference.key
    } else {
      collection = try common.collection(argument)
      key = nil
    }
  }

  /// The collection, if it is known without the store.
  var certainPlaces: [NamedCollection] { reference?.certainPlaces ?? collection.map { [$0] } ?? [] }

  /// The same for the entry that the store says is meant.
  func resolved(_ transaction: borrowing some Reading & ~Copyable) throws -> ChangeFilter {
    guard let reference = try reference?.resolved(transaction, mayBeGone: true) else { return self }
    return ChangeFilter(collection: reference.place, key: reference.key)
  }

  /// The changes of a commit, each key once.
  func changes(in commit: Commit) -> [KeyChange] {
    var changes: [KeyChange] = []
    func add(_ what: String, _ collection: String?, _ key: String?, time: Date? = nil, action: String? = nil) {
      changes.append(
        KeyChange(
          commit: commit.number, position: commit.position, what: what, collection: collection, key: key,
          action: action, time: time ?? commit.time, author: commit.author))
    }
    for action in commit.actions where concerns(action) {
      add(action.description, action.collection, nil, action: action.description)
    }
    if commit.scope == .everything { add("everything", nil, nil) }
    for name in commit.changedCollections where collection?.shown.contains(where: { Self.accepts($0, name) }) ?? true {
      if commit.scope != .everything, commit.isCleared(name) { add("cleared", name, nil) }
      if commit.isUnlisted(name) { add("unlisted", name, nil) }
      for changed in commit.changedKeys(inCollection: name) where Self.accepts(key, changed) {
        let kind = commit.kind(forKey: changed, inCollection: name) ?? .updated
        let expiry = commit.expiry(ofKey: changed, inCollection: name)
        add(expiry == nil ? "\(kind)" : "expired", name, changed, time: expiry)
      }
    }
    return changes
  }

  private func concerns(_ action: CommitAction) -> Bool {
    guard let collection else { return true }
    guard let name = action.collection else { return false }
    return collection.shown.contains { Self.accepts($0, name) }
  }

  /// Names are compared by their bytes.
  private static func accepts(_ wanted: String?, _ name: String) -> Bool {
    wanted.map { $0.utf8.elementsEqual(name.utf8) } ?? true
  }
}

/// A change as shown on one line.
struct KeyChange {
  /// The number of the commit.
  let commit: CommitNumber
  /// Its place in the history of the store; nil if it is no longer in the change log.
  var position: CommitPosition?
  /// The kind of change, or the action.
  let what: String
  /// nil if it concerns the whole store.
  let collection: String?
  /// nil if it concerns the whole collection.
  let key: String?
  /// What the commit did besides changing keys, if this is about that.
  var action: String?
  /// The time of the change, usually of the commit, and its author; nil if unknown.
  var time: Date?
  var author: Author?
  /// Its position, or else its number.
  var place: String { position?.description ?? "\(commit)" }
}
