import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PageStore {
  // MARK: - The timeline

  /// The minimum number of changes in an answer that is not the last.
  private static let changesAtOnce = 100
  /// The maximum number of changes of one commit.
  private static let changesOfCommit = 200

  /// The changes that the store remembers, newest first, with what each had found and left, as far as history has it.
  func timeline(_ request: PageRequest) throws -> String {
    let collection = try request.optionalText("collection")
    if let collection { try scope.require(collection) }
    let words = (try request.optionalText("search") ?? "").lowercased().split(whereSeparator: \.isWhitespace)
    let end = try request.integer("before")
    let reader = json.reader
    return try unlocking {
      try connection.read { transaction in
        var past = Past(reader: reader, isVaultLocked: !vault.isUnlocked)
        var changes: [String] = []
        var next: CommitNumber?
        for commit in try transaction.rememberedCommits().reversed() where end.map({ commit.number < $0 }) ?? true {
          guard changes.count < Self.changesAtOnce else { break }
          next = commit.number
          for change in self.changes(commit, collection) where words.allSatisfy({ change.searchText.contains($0) }) {
            changes.append(try past.json(change, commit, self, transaction))
          }
        }
        let isLast = changes.count < Self.changesAtOnce
        return JSONText.object([
          ("store", "\(transaction.store)"), ("changes", JSONText.array(changes)),
          ("next", isLast ? "null" : next.map { "\($0)" } ?? "null"),
          ("without", JSONText.array(try withoutHistory(collection, transaction).map(JSONText.quoted))),
        ])
      }
    }
  }

  private func changes(_ commit: Commit, _ wanted: String?) -> [PastChange] {
    commit.changedCollections
      .filter { collection in
        scope.contains(collection) && (wanted.map { $0.utf8.elementsEqual(collection.utf8) } ?? true)
      }
      .flatMap { collection in
        commit.changedKeys(inCollection: collection).prefix(Self.changesOfCommit).map { key in
          let hasExpired = commit.hasExpired(key: key, inCollection: collection)
          let kind = commit.kind(forKey: key, inCollection: collection) ?? .updated
          return PastChange(
            collection: collection, key: key, what: hasExpired ? "expired" : "\(kind)", isNew: kind == .inserted,
            author: commit.author)
        }
      }
  }

  /// The collections that keep no history: what was there before a change is not known.
  private func withoutHistory(
    _ wanted: String?, _ transaction: borrowing ReadTransaction
  ) throws -> [String] {
    let collections = try wanted.map { [$0] } ?? transaction.allCollections().filter(scope.contains)
    return try collections.filter { try transaction.historyLimits(forCollection: $0) == nil }
  }

  // MARK: - A moment

  /// What would put everything back as it was at a moment, for ``apply(_:)``.
  func previewMoment(_ request: PageRequest) throws -> String {
    try requireWritable()
    guard let moment = try request.date("moment") else { throw Failure(.usage, "\"moment\" is missing.") }
    let wanted = try request.optionalText("collection")
    if let wanted { try scope.require(wanted) }
    let reader = json.reader
    let plan = try unlocking {
      try connection.read { transaction in
        let made = Self.made(try transaction.rememberedCommits())
        var entries: [ChangePlan.Entry] = []
        var unknown = 0
        for collection in try wanted.map({ [$0] }) ?? transaction.allCollections().filter(scope.contains) {
          for key in try keys(collection, transaction) {
            switch try wayBack(to: moment, key, collection, made, reader, transaction) {
            case .unchanged: break
            case .unknown: unknown += 1
            case .change(let entry): entries.append(entry)
            }
          }
        }
        var notes: [String] = []
        if unknown > 0 {
          notes.append(
            "\(DisplayText.count(unknown, "setting has", "settings have")) changed since, but what was there before is not known, "
              + "and stays as it is.")
        }
        return ChangePlan(entries: entries, notes: notes)
      }
    }
    return plans.withLock { $0.add(plan) }
  }

  private enum WayBack {
    case unchanged, unknown
    case change(ChangePlan.Entry)
  }

  private func keys(_ collection: String, _ transaction: borrowing ReadTransaction) throws -> [String] {
    let keys =
      try transaction.allKeys(inCollection: collection) + transaction.allKeysWithHistory(inCollection: collection)
    return Set(keys.map { ByteString($0) }).sorted().map(\.string)
  }

  /// The commits that made each setting, where there was none before.
  private static func made(_ commits: [Commit]) -> [SettingPlace: Set<CommitNumber>] {
    var made: [SettingPlace: Set<CommitNumber>] = [:]
    for commit in commits {
      for collection in commit.changedCollections {
        for key in commit.changedKeys(inCollection: collection)
        where commit.kind(forKey: key, inCollection: collection) == .inserted {
          made[SettingPlace(key, in: collection), default: []].insert(commit.number)
        }
      }
    }
    return made
  }

  private func wayBack(
    to moment: Date, _ key: String, _ collection: String, _ made: [SettingPlace: Set<CommitNumber>],
    _ reader: SettingReader, _ transaction: borrowing ReadTransaction
  ) throws -> WayBack {
    let info = try transaction.info(forKey: key, inCollection: collection)
    if let info, info.modified <= moment { return .unchanged }
    let history = try transaction.history(forKey: key, inCollection: collection)
    let present = try transaction.value(forKey: key, inCollection: collection)
    let isSealed = try transaction.isSealed(collection: collection)
    func entry(_ action: SettingChange.Action, _ after: Value?) -> WayBack {
      .change(
        ChangePlan.Entry(
          change: SettingChange(
            collection: collection, key: key,
            version: StoreVersion(store: transaction.store, number: info?.version ?? 0), action: action),
          before: line(present, key, collection, isSealed: isSealed, reader),
          after: line(after, key, collection, isSealed: isSealed, reader)))
    }
    if let then = history.first(where: { $0.modified <= moment && moment < $0.ended }) {
      // It would expire at once.
      if then.hasExpired { return info == nil ? .unchanged : entry(.remove, nil) }
      if let present, try present.stored == then.value.stored { return .unchanged }
      return entry(.restore(version: then.version), then.value)
    }
    guard let info else { return .unchanged }
    // It was not there, if the earliest known value after the moment was a new one.
    let first = history.last { $0.modified > moment }?.version ?? info.version
    return made[SettingPlace(key, in: collection)]?.contains(first) == true ? entry(.remove, nil) : .unknown
  }
}

/// A change of the timeline.
private struct PastChange {
  let collection: String
  let key: String
  let what: String
  let isNew: Bool
  let author: Author?

  /// The lower-case text of its name and its author.
  var searchText: String { "\(KeyText.of(key, in: collection)) \(author?.description ?? "") \(what)".lowercased() }
}

/// The earlier values that a timeline shows, each setting's read once.
private struct Past {
  let reader: SettingReader
  let isVaultLocked: Bool
  private var histories: [SettingPlace: [HistoricItem]] = [:]

  init(reader: SettingReader, isVaultLocked: Bool) { (self.reader, self.isVaultLocked) = (reader, isVaultLocked) }

  mutating func json(
    _ change: PastChange, _ commit: Commit, _ store: PageStore, _ transaction: borrowing ReadTransaction
  ) throws -> String {
    let (key, collection) = (change.key, change.collection)
    var (before, after): (HistoricItem?, Value?)
    let isSealed = try transaction.isSealed(collection: collection)
    if !(isVaultLocked && isSealed) {
      let history = try history(key, collection, transaction)
      before = history.first { $0.endVersion == commit.number }
      after =
        try transaction.version(forKey: key, inCollection: collection) == commit.number
        ? transaction.value(forKey: key, inCollection: collection)
        : history.first { $0.version == commit.number }?.value
    }
    // What has expired would be gone again at once.
    let restored = before.flatMap { $0.hasExpired ? nil : $0.version }
    return JSONText.object([
      ("sequence", "\(commit.number)"), ("time", commit.time.map { JSONText.quoted(Timestamp.text($0)) } ?? "null"),
      ("author", change.author.map(ChangeText.json) ?? "null"), ("change", JSONText.quoted(change.what)),
      ("collection", JSONText.quoted(collection)), ("key", JSONText.quoted(key)),
      ("before", store.line(before?.value, key, collection, isSealed: isSealed, reader).map(JSONText.quoted) ?? "null"),
      ("after", store.line(after, key, collection, isSealed: isSealed, reader).map(JSONText.quoted) ?? "null"),
      ("restore", restored.map { "\($0)" } ?? "null"), ("isNew", change.isNew ? "true" : "false"),
    ])
  }

  private mutating func history(
    _ key: String, _ collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> [HistoricItem] {
    let place = SettingPlace(key, in: collection)
    if let known = histories[place] { return known }
    let history = try transaction.history(forKey: key, inCollection: collection)
    histories[place] = history
    return history
  }
}
