import Coffer
import PrefsCommands

/// What one save of the page did, so that it can be undone, or one undo, so that it can be redone.
struct UndoRecord: Sendable {
  struct Entry: Sendable {
    let collection: String
    let key: String
    /// The previous item; nil if there was none.
    let before: Item?
    /// The version after the save, or after the undo of later saves.
    var version: StoreVersion

    fileprivate func isOf(_ other: Entry, version: StoreVersion) -> Bool {
      self.version == version && key.utf8.elementsEqual(other.key.utf8)
        && collection.utf8.elementsEqual(other.collection.utf8)
    }
  }

  let number: Int64
  /// Whether it is of an undo.
  let isRedo: Bool
  var entries: [Entry]
}

/// The saves that can be undone and the undos that can be redone, of all tabs.
///
/// It lives as long as the program, and longer than a tab.
struct UndoStack: Sendable {
  private var records: [UndoRecord] = []
  private var last: Int64 = 0
  /// Increases with each change of it: answers and events may overtake each other.
  private var revision = 0
  /// The maximum number of records: each keeps values in memory.
  private static let limit = 100
  /// How many settings a page names.
  private static let namedSettings = 3

  func record(_ number: Int64) -> UndoRecord? { records.first { $0.number == number } }

  /// Adds a save; what was undone before it can no longer be redone.
  mutating func add(_ entries: [UndoRecord.Entry]) -> Int64 {
    records.removeAll(where: \.isRedo)
    return append(entries, isRedo: false)
  }

  private mutating func append(_ entries: [UndoRecord.Entry], isRedo: Bool) -> Int64 {
    last += 1
    revision += 1
    records = records.suffix(Self.limit - 1) + [UndoRecord(number: last, isRedo: isRedo, entries: entries)]
    return last
  }

  /// Replaces a record that was undone, or redone, with its opposite, and bases the others on the present versions.
  ///
  /// - Parameter opposite: The entries of the undo, with the same keys.
  mutating func replace(_ record: UndoRecord, with opposite: [UndoRecord.Entry]) -> Int64 {
    drop(record)
    for (undone, left) in zip(record.entries, opposite) {
      let earlier = StoreVersion(store: undone.version.store, number: undone.before?.version ?? 0)
      for index in records.indices {
        for place in records[index].entries.indices where records[index].entries[place].isOf(undone, version: earlier) {
          records[index].entries[place].version = left.version
        }
      }
    }
    return append(opposite, isRedo: !record.isRedo)
  }

  /// Drops a record that can no longer be undone.
  mutating func drop(_ record: UndoRecord) {
    revision += 1
    records.removeAll { $0.number == record.number }
  }

  /// What would be undone and redone next.
  var json: String {
    JSONText.object([
      ("revision", "\(revision)"), ("undo", Self.json(records.last { !$0.isRedo })),
      ("redo", Self.json(records.last(where: \.isRedo))),
    ])
  }

  private static func json(_ record: UndoRecord?) -> String {
    guard let record else { return "null" }
    let names = record.entries.prefix(namedSettings).map {
      JSONText.object([("collection", JSONText.quoted($0.collection)), ("key", JSONText.quoted($0.key))])
    }
    return JSONText.object([
      ("number", "\(record.number)"), ("count", "\(record.entries.count)"), ("settings", JSONText.array(names)),
    ])
  }
}

extension PageStore {
  /// Restores the items that a save of the page changed, unless they have changed since; or, after that, what the save had set.
  ///
  /// - Throws: ``ChangeConflict``; then it can never be undone.
  func undo(_ request: PageRequest) throws -> String {
    guard let number = try request.integer("undo"), let record = undoing.withLock({ $0.record(number) }) else {
      throw Failure(.notFound, "there is no change with this number to undo.")
    }
    try requireWritable()
    let json = json
    session.files.forget()
    do {
      let entries = try unlocking {
        try connection.readWrite { transaction in
          // It existed before.
          transaction.session.settingRules?.allowsUndeclared = true
          try requireUnchanged(record.entries.map { ($0.collection, $0.key, $0.version) }, json, transaction)
          let before = try snapshot(record.entries.map { ($0.collection, $0.key) }, transaction)
          for entry in record.entries { try bringBack(entry, transaction) }
          return try left(before, transaction)
        }
      }
      return try answer(entries, undone: record)
    } catch let conflict as ChangeConflict {
      undoChanged(
        undoing.withLock { undoing in
          undoing.drop(record)
          return undoing.json
        })
      throw conflict
    }
  }

  private func bringBack(_ entry: UndoRecord.Entry, _ transaction: borrowing ReadWriteTransaction) throws {
    let (key, collection) = (entry.key, entry.collection)
    if let before = entry.before {
      try transaction.setObject(
        before.value, forKey: key, inCollection: collection, expires: before.expires, due: before.due)
      try transaction.replaceMetadata(before.metadata, forKey: key, inCollection: collection)
    } else {
      try transaction.removeObject(forKey: key, inCollection: collection)
    }
  }
}
