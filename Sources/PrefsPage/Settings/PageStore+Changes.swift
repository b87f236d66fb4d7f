import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A version of a setting, in one of the stores that were at the path in turn: each counts its own commits.
struct StoreVersion: Equatable, Sendable {
  let store: Int
  /// 0 for no setting.
  let number: CommitNumber
}

extension StoreVersion {
  /// The version that a page has been shown.
  init(_ request: PageRequest) throws {
    guard let store = try request.integer("store"), let number = try request.integer("version") else {
      throw Failure(.usage, "\"version\" or \"store\" is missing.")
    }
    self.init(store: Int(store), number: number)
  }
}

extension Reading where Self: ~Copyable {
  /// Which of the stores at the path this transaction is in.
  var store: Int { session.generation }

  func storeVersion(forKey key: String, inCollection collection: String) throws -> StoreVersion {
    StoreVersion(store: store, number: try version(forKey: key, inCollection: collection))
  }
}

/// A setting was changed meanwhile, or the store was replaced; nothing was saved.
struct ChangeConflict: Error {
  /// The settings as they are now, as JSON.
  let settings: [String]
}

/// A change to a setting.
struct SettingChange: Sendable {
  enum Action {
    case set(text: String, type: String)
    /// Of a file.
    case value(Value)
    case restore(version: CommitNumber)
    case remove
    case dates(expires: Date?, due: Date?)
  }

  let collection: String
  let key: String
  /// The version that the user saw.
  let version: StoreVersion
  let action: Action
}

extension SettingChange {
  init(_ request: PageRequest) throws {
    collection = try request.text("collection")
    key = try request.text("key")
    version = try StoreVersion(request)
    if try request.flag("remove") {
      action = .remove
    } else if let dates = try request.object("dates") {
      action = .dates(expires: try dates.date("expires"), due: try dates.date("due"))
    } else if let restored = try request.integer("restore") {
      action = .restore(version: restored)
    } else {
      action = .set(text: try request.text("text"), type: try request.text("type"))
    }
  }
}

extension PageStore {
  private static let changeLimit = 1000

  /// Makes all changes in one transaction, or none of them.
  ///
  /// - Throws: ``ChangeConflict`` if one of the settings is no longer what the user saw.
  func change(_ request: PageRequest) throws -> String {
    let changes = try request.objects("changes").map { try SettingChange($0) }
    guard !changes.isEmpty, changes.count <= Self.changeLimit else {
      throw Failure(.usage, "a request must have 1 to \(Self.changeLimit) changes.")
    }
    return try answer(try make(changes))
  }

  /// Makes all changes in one transaction, or none of them.
  ///
  /// - Returns: What undoes them.
  /// - Throws: ``ChangeConflict``.
  func make(_ changes: [SettingChange]) throws -> [UndoRecord.Entry] {
    try requireWritable()
    for change in changes { try scope.require(change.collection) }
    session.files.forget()
    let json = json
    return try unlocking {
      try connection.readWrite { transaction in
        try requireUnchanged(changes.map { ($0.collection, $0.key, $0.version) }, json, transaction)
        let before = try snapshot(changes.map { ($0.collection, $0.key) }, transaction)
        for change in changes { try make(change, transaction) }
        try transaction.letNamesFollow(Set(changes.map { SettingPlace($0.key, in: $0.collection) }), in: "the changes")
        return try left(before, transaction)
      }
    }
  }

  func requireWritable() throws {
    guard !isReadOnly else {
      throw Failure(.refused, "this page is read-only: it was started read-only, or the store is read-only.")
    }
  }

  func requireUnchanged(
    _ expected: [(collection: String, key: String, version: StoreVersion)], _ json: SettingJSON,
    _ transaction: borrowing ReadWriteTransaction
  ) throws {
    var settings: [String] = []
    for (collection, key, version) in expected
    where try transaction.storeVersion(forKey: key, inCollection: collection) != version {
      settings.append(try json.whole(key, collection, transaction))
    }
    if !settings.isEmpty { throw ChangeConflict(settings: settings) }
  }

  /// The items before a change of settings, including those under other names of theirs, which follow.
  func snapshot(
    _ settings: [(collection: String, key: String)], _ transaction: borrowing ReadWriteTransaction
  ) throws -> [UndoRecord.Entry] {
    let places = settings.map { SettingPlace($0.key, in: $0.collection) }
    let others = try settings.flatMap { try transaction.otherNames(ofKey: $0.key, inCollection: $0.collection) }
    var seen: Set<SettingPlace> = []
    return try (places + others.filter { scope.contains($0.collection.string) }).filter { seen.insert($0).inserted }
      .map { place in
        let (key, collection) = (place.key.string, place.collection.string)
        return UndoRecord.Entry(
          collection: collection, key: key,
          before: try transaction.item(forKey: key, inCollection: collection),
          version: StoreVersion(store: transaction.store, number: 0))
      }
  }

  /// The same with the versions after the change.
  func left(
    _ entries: [UndoRecord.Entry], _ transaction: borrowing ReadWriteTransaction
  ) throws -> [UndoRecord.Entry] {
    try transaction.letNamesFollow()
    return try entries.map { entry in
      var entry = entry
      entry.version = try transaction.storeVersion(forKey: entry.key, inCollection: entry.collection)
      return entry
    }
  }

  private func make(_ change: SettingChange, _ transaction: borrowing ReadWriteTransaction) throws {
    let (key, collection) = (change.key, change.collection)
    switch change.action {
    case .remove: try transaction.removeObject(forKey: key, inCollection: collection)
    case .restore(let version):
      try transaction.requireUnlocked(forKey: key, inCollection: collection)
      try transaction.restoreObject(forKey: key, inCollection: collection, version: version)
    case .dates(let expires, let due): try setDates(expires, due, key, collection, transaction)
    case .value(let value):
      try requireEnvironment(collection, transaction)
      try transaction.setKeepingRest(value, forKey: key, inCollection: collection)
    case .set(let text, let type):
      try transaction.requireUnlocked(forKey: key, inCollection: collection)
      try requireEnvironment(collection, transaction)
      let declaration = try transaction.declaration(forKey: key, inCollection: collection)
      try transaction.setKeepingRest(
        try value(text, type, key, collection, declaration), forKey: key, inCollection: collection)
    }
  }

  func requireEnvironment(_ collection: String, _ transaction: borrowing some Reading & ~Copyable) throws {
    guard let environment = CollectionEnvironment(collection: collection),
      try !transaction.hasEnvironment(environment)
    else { return }
    throw Failure(
      .notFound,
      "there is no environment \(environment). Create it with: \(CommandHint.text("env create", operand: collection)). "
        + "Nothing was changed.")
  }

  private func setDates(
    _ expires: Date?, _ due: Date?, _ key: String, _ collection: String, _ transaction: borrowing ReadWriteTransaction
  ) throws {
    try transaction.requireUnlocked(forKey: key, inCollection: collection)
    guard let item = try transaction.item(forKey: key, inCollection: collection) else {
      throw Failure(.notFound, "only a value that is set here can expire or be due. Nothing was changed.")
    }
    if let expires, expires <= Date(), expires != item.expires {
      throw Failure(.usage, "an expiry must be in the future. Nothing was changed.")
    }
    try transaction.setObject(item.value, forKey: key, inCollection: collection, expires: expires, due: due)
    try transaction.replaceMetadata(item.metadata, forKey: key, inCollection: collection)
  }

  private func value(
    _ text: String, _ type: String, _ key: String, _ collection: String, _ declaration: Declaration?
  ) throws -> Value {
    do {
      return try EditedText.value(text, type: type, declaration)
    } catch let failure as Failure where failure.status == .format {
      throw Failure(.format, "\(KeyText.of(key, in: collection)): \(failure.message) Nothing was changed.")
    }
  }

  /// The settings as they are now, and the number that undoes the save.
  ///
  /// - Parameter describes: Whether to describe the settings; a page that does not show them reads its list again.
  func answer(
    _ entries: [UndoRecord.Entry], undone: UndoRecord? = nil, describes: Bool = true, notes: [String] = []
  ) throws -> String {
    let (number, state) = undoing.withLock { undoing in
      (undone.map { undoing.replace($0, with: entries) } ?? undoing.add(entries), undoing.json)
    }
    undoChanged(state)
    let json = json
    let settings = try connection.read { transaction in
      try (describes ? entries : []).map { try json.whole($0.key, $0.collection, transaction) }
    }
    return JSONText.object([
      ("undo", "\(number)"), ("undoing", state), ("settings", JSONText.array(settings)),
      ("notes", JSONText.array(notes.map(JSONText.quoted))),
    ])
  }

  // MARK: - History

  /// Keeps the earlier values of a collection from now on, unless it does so already.
  func keepHistory(_ request: PageRequest) throws -> String {
    let collection = try request.text("collection")
    try scope.require(collection)
    try requireWritable()
    try connection.readWrite { transaction in
      try requireEnvironment(collection, transaction)
      guard try transaction.historyLimits(forCollection: collection) == nil else { return }
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: collection)
    }
    return "{}"
  }

  /// The earlier values of a setting with their authors; secrets and sealed values by their lengths.
  func history(_ request: PageRequest) throws -> String {
    let (collection, key) = try name(in: request)
    return try unlocking {
      try connection.read { transaction in
        let keeps = try transaction.historyLimits(forCollection: collection) != nil
        let items = try transaction.history(forKey: key, inCollection: collection)
        let isHidden =
          try transaction.isSealed(collection: collection)
          || transaction.isDeclaredSecret(key, inCollection: collection)
        let text = HistoryText(
          items: items[...], isSealed: isHidden, isSecret: false, redaction: Redaction(reveals: false))
        return JSONText.object([
          ("store", "\(transaction.store)"), ("keeps", keeps ? "true" : "false"), ("versions", text.json),
        ])
      }
    }
  }
}
