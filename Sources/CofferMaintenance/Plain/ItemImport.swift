import Coffer
import CofferStorage

/// An import of a file's items into a store, in one transaction.
struct ItemImport {
  private var report = PlainImportReport()
  /// The keys in the file, by collection.
  private var keys: [ByteString: Set<ByteString>] = [:]
  /// Those of them that the import has changed.
  private var changed: Set<SettingPlace> = []
  /// The values that violate their declarations, and the keys that are not declared or locked.
  private var problems: [(error: CofferError, problem: SettingProblem)] = []
  /// Whether to list each change.
  private let lists: Bool

  init(lists: Bool) {
    self.lists = lists
  }

  /// The number of existing items whose value, metadata or dates changed.
  var replacedCount: Int { report.updatedCount }

  /// Notes collections of the file, which may be empty.
  mutating func begin(_ collections: [String]) {
    for collection in collections { keys[ByteString(collection)] = [] }
  }

  /// Adds the declarations of applications that have declared nothing in this store.
  mutating func declare(
    _ declared: [PlainSource.Declared], _ transaction: borrowing ReadWriteTransaction
  ) throws {
    let known = Set(try transaction.declaredSettings().map { ByteString($0.application) })
    for (application, own) in Dictionary(grouping: declared, by: { ByteString($0.application) })
    where !known.contains(application) {
      try transaction.declare(own.map(\.declaration), by: application.string, version: own.first?.version)
      report.declaredCount += own.count
    }
  }

  /// Sets value, metadata, expiry and due date; returns whether the key is seen for the first time.
  ///
  /// An expired item is left out, as if it were not in the file.
  mutating func set(_ item: PlainSource.Item, _ session: Session) throws -> Bool {
    if session.isExpired(item.dates) {
      // The collection counts as in the file even if all of its items have expired.
      keys[ByteString(item.collection), default: []].formUnion([])
      report.expiredCount += 1
      return true
    }
    guard keys[ByteString(item.collection), default: []].insert(ByteString(item.key)).inserted else { return false }
    report.opaqueCount += item.opaqueCount
    try counting(
      item.key, item.collection, item.value, isSealed: item.isSealed, isSecret: item.isSecret, session
    ) { _ in
      try session.change(item.key, in: item.collection) {
        try $0.setting(item.value, metadata: item.metadata, dates: item.dates, item.key, in: item.collection)
      }
    }
    return true
  }

  /// Sets a value; metadata, expiry and due date stay.
  mutating func set(_ setting: ImportedSetting, _ session: Session) throws {
    keys[ByteString(setting.collection), default: []].insert(ByteString(setting.key))
    guard let value = setting.value else {
      report.redactedCount += 1
      if try session.version(setting.key, in: setting.collection) == 0 {
        report.missing.append(PlainImportReport.MissingValue(collection: setting.collection, key: setting.key))
      }
      return
    }
    try counting(setting.key, setting.collection, value, session) { isNew in
      try session.change(setting.key, in: setting.collection) { core in
        isNew
          ? try core.setting(value, setting.key, in: setting.collection)
          : try core.replacing(object: value, setting.key, in: setting.collection)
      }
    }
  }

  private mutating func counting(
    _ key: String, _ collection: String, _ value: Value, isSealed: Bool = false, isSecret: Bool = false,
    _ session: Session,
    _ body: (_ isNew: Bool) throws -> Void
  ) throws {
    report.itemCount += 1
    let earlier = try session.version(key, in: collection)
    let before = lists && earlier > 0 ? try Self.value(key, collection, session) : nil
    do {
      try body(earlier == 0)
    } catch let error as CofferError {
      // All of them are reported together at the end.
      guard let problem = SettingProblem(error, place: "the imported data") else { throw error }
      problems.append((error, problem))
    }
    guard try session.version(key, in: collection) != earlier else { return }
    changed.insert(SettingPlace(key, in: collection))
    if earlier == 0 { report.insertedCount += 1 } else { report.updatedCount += 1 }
    if lists {
      report.changes.append(
        PlainImportReport.Change(
          collection: collection, key: key, before: before, after: value,
          isSealed: try isSealed || Self.isSealed(key, collection, session),
          isSecret: try isSecret || session.isDeclaredSecret(key, in: collection)))
    }
  }

  /// In replace mode, removes items that the file doesn't have; in a dry run, rolls everything back.
  mutating func end(
    _ mode: ImportMode, isDryRun: Bool, _ transaction: borrowing ReadWriteTransaction
  ) throws -> PlainImportReport {
    if let first = problems.first {
      throw problems.count == 1 ? first.error : .invalidSettings(problems.map(\.problem))
    }
    try transaction.letNamesFollow(changed, in: "the imported data")
    // An equal value is not refused below a lock.
    for (collection, kept) in keys {
      let keys = kept.sorted().map(\.string)
      report.locks +=
        try transaction.effectiveSettingsIfReadable(of: collection.string)?.notesOfLocks(keys, transaction) ?? []
    }
    if mode == .replace { try removeOthers(transaction) }
    if isDryRun { transaction.rollback() }
    report.collections = keys.keys.sorted().map(\.string)
    report.changes.sort {
      (ByteString($0.collection), ByteString($0.key)) < (ByteString($1.collection), ByteString($1.key))
    }
    return report
  }

  private mutating func removeOthers(_ transaction: borrowing ReadWriteTransaction) throws {
    let session = transaction.session
    for (collection, kept) in keys {
      let others = try transaction.allKeys(inCollection: collection.string).filter { key in
        guard !kept.contains(ByteString(key)) else { return false }
        // Another name of a setting that the file has follows that one.
        return try !session.otherNames(of: key, in: collection.string).contains {
          keys[$0.collection]?.contains($0.key) ?? false
        }
      }
      if lists {
        for key in others {
          report.changes.append(
            PlainImportReport.Change(
              collection: collection.string, key: key, before: try Self.value(key, collection.string, session),
              after: nil, isSealed: try Self.isSealed(key, collection.string, session),
              isSecret: try transaction.isDeclaredSecret(key, inCollection: collection.string)))
        }
      }
      try transaction.removeObjects(forKeys: others, inCollection: collection.string)
      // Bad files must not keep anyone from removing.
      report.locks +=
        try transaction.effectiveSettingsIfReadable(of: collection.string)?.notesOfLocks(others, transaction) ?? []
      report.removedCount += others.count
    }
  }

  // MARK: What is there

  private static func value(_ key: String, _ collection: String, _ session: Session) throws -> Value? {
    try session.item(key, in: collection).map { try session.core.value($0.object, key, in: collection) }
  }

  private static func isSealed(_ key: String, _ collection: String, _ session: Session) throws -> Bool {
    try session.info(key, in: collection)?.kind == .sealed
  }
}
