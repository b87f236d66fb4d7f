import Coffer
import CofferStorage

/// The items of a file on their way into a store, in one transaction.
struct ItemImport {
  private var report = PlainImportReport()
  /// The keys that the file has, by collection.
  private var keys: [ByteString: Set<ByteString>] = [:]
  /// What an administrator has locked, by the collection of the application.
  private var managed: [ByteString: ManagedSettings] = [:]
  /// What is not as it is declared to be.
  private var problems: [(error: CofferError, problem: SettingProblem)] = []
  /// Whether each change is to be listed.
  private let lists: Bool

  init(lists: Bool) {
    self.lists = lists
  }

  /// How many items that were there have another value, other metadata or other dates.
  var replacedCount: Int { report.updatedCount }

  /// Notes that the file has these collections, though they may be empty.
  mutating func begin(_ collections: [String]) {
    for collection in collections { keys[ByteString(collection)] = [] }
  }

  /// Declares what applications do that have declared nothing here.
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

  /// Sets value, metadata, expiry and due date; says whether the key comes for the first time.
  ///
  /// An item that has expired is left out, as if the file did not have it.
  mutating func set(_ item: PlainSource.Item, _ session: Session) throws -> Bool {
    if session.isExpired(item.dates) {
      // The file has the collection all the same, also where nothing else of it is left.
      keys[ByteString(item.collection), default: []].formUnion([])
      report.expiredCount += 1
      return true
    }
    guard keys[ByteString(item.collection), default: []].insert(ByteString(item.key)).inserted else { return false }
    report.opaqueCount += item.opaqueCount
    try counting(item.key, item.collection, item.value, isSealed: item.isSealed, session) { _ in
      try session.change(item.key, in: item.collection) {
        try $0.setting(item.value, metadata: item.metadata, dates: item.dates, item.key, in: item.collection)
      }
    }
    return true
  }

  /// Sets a value, and leaves metadata, expiry and due date as they are.
  mutating func set(_ setting: ImportedSetting, _ session: Session) throws {
    keys[ByteString(setting.collection), default: []].insert(ByteString(setting.key))
    guard let value = setting.value else {
      report.redactedCount += 1
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
    _ key: String, _ collection: String, _ value: Value, isSealed: Bool = false, _ session: Session,
    _ body: (_ isNew: Bool) throws -> Void
  ) throws {
    report.itemCount += 1
    let earlier = try session.version(key, in: collection)
    let before = lists && earlier > 0 ? try Self.value(key, collection, session) : nil
    do {
      try body(earlier == 0)
    } catch let error as CofferError {
      // All of them are told at the end.
      guard case .invalidValue(_, _, let reason) = error else { throw error }
      let problem = SettingProblem(collection: collection, key: key, place: "what is imported", reason: reason)
      problems.append((error, problem))
    }
    guard try session.version(key, in: collection) != earlier else { return }
    try requireUnlocked(key, collection)
    if earlier == 0 { report.insertedCount += 1 } else { report.updatedCount += 1 }
    if lists {
      report.changes.append(
        PlainImportReport.Change(
          collection: collection, key: key, before: before, after: value,
          isSealed: try isSealed || Self.isSealed(key, collection, session)))
    }
  }

  private mutating func requireUnlocked(_ key: String, _ collection: String) throws {
    let settings = try managed[ByteString(collection)] ?? ManagedSettings(ofApplication: collection)
    managed[ByteString(collection)] = settings
    try settings.requireUnlocked(key, in: collection)
  }

  /// Removes what the file doesn't have, when it is to; undoes everything when that is only a trial.
  mutating func end(
    _ mode: ImportMode, isDryRun: Bool, _ transaction: borrowing ReadWriteTransaction
  ) throws -> PlainImportReport {
    if let first = problems.first {
      throw problems.count == 1 ? first.error : .invalidSettings(problems.map(\.problem))
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
      let others = try transaction.allKeys(inCollection: collection.string).filter { !kept.contains(ByteString($0)) }
      if lists {
        for key in others {
          report.changes.append(
            PlainImportReport.Change(
              collection: collection.string, key: key, before: try Self.value(key, collection.string, session),
              after: nil, isSealed: try Self.isSealed(key, collection.string, session)))
        }
      }
      try transaction.removeObjects(forKeys: others, inCollection: collection.string)
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
