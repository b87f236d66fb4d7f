import CSystemCalls
import Coffer
import PrefsCommands

/// All settings of a store in the order of the list, kept up to date commit by commit.
struct SettingsIndex: Sendable {
  /// A collection of the sidebar.
  struct Collection: Sendable {
    let name: String
    let isSealed: Bool
  }

  private(set) var settings: [IndexedSetting] = []
  /// Increases with each change of the list.
  private(set) var revision = 0
  /// The last commit that it includes.
  private(set) var lastCommit: CommitNumber = 0
  /// The generation of the store of this commit.
  private var generation = 0
  private let scope: CollectionScope
  private(set) var reader: SettingReader
  private var matches: [SettingFilter: [Int]] = [:]
  private var arrangements: [ListArrangement: ArrangedList] = [:]
  var columnRows: (filter: SettingFilter, rows: [ColumnRow])?

  init(_ scope: CollectionScope, _ transaction: borrowing ReadTransaction) throws {
    self.scope = scope
    reader = try SettingReader(transaction)
    try rebuild(transaction)
  }

  // MARK: - Following the store

  /// Reads everything again.
  mutating func rebuild(_ transaction: borrowing ReadTransaction) throws {
    reader = try SettingReader(transaction)
    settings = []
    var parts: [[IndexedSetting]] = []
    var places: [ByteString: Int] = [:]
    // A collection comes before its environments, which inherit from it.
    for collection in try names(transaction) {
      let parent = CollectionEnvironment(collection: collection).flatMap { places[ByteString($0.parent)] }
      places[ByteString(collection)] = parts.count
      parts.append(try reader.settings(of: collection, inheriting: parent.map { parts[$0] }, transaction))
    }
    settings.reserveCapacity(parts.reduce(0) { $0 + $1.count })
    for part in parts { settings += part }
    parts = []
    try finish(transaction)
    coffer_give_memory_back()
  }

  private func names(_ transaction: borrowing ReadTransaction) throws -> [String] {
    let names =
      try transaction.allCollections() + reader.declared.settings.map(\.declaration.collection)
      + reader.environments.map(\.collection) + scope.named
    return Set(names.map { ByteString($0) }).sorted().map(\.string).filter(scope.contains)
  }

  /// Applies the changes of a commit.
  mutating func apply(_ commit: Commit, _ transaction: borrowing ReadTransaction) throws {
    guard commit.generation == generation else {
      try rebuild(transaction)
      generation = commit.generation
      return
    }
    guard commit.number > lastCommit else { return }
    reader.noteAuthor(of: commit)
    let collections = commit.changedCollections
    let isWhole = collections.isEmpty || commit.scope != .keys
    // Only declarations or environments changed, or too much to be listed.
    if isWhole || !commit.actions.isEmpty { return try rebuild(transaction) }
    for collection in collections {
      let keys = commit.changedKeys(inCollection: collection)
      for shown in reader.showing(collection) where scope.contains(shown) {
        try reader.follow(shown, transaction)
        for key in keys { place(try reader.setting(key, shown, transaction), (shown, key)) }
      }
    }
    try finish(transaction)
  }

  private mutating func finish(_ transaction: borrowing ReadTransaction) throws {
    lastCommit = try transaction.commitNumber()
    reader.findFamilies(in: scope)
    matches = [:]
    arrangements = [:]
    columnRows = nil
    revision += 1
  }

  private mutating func place(_ setting: IndexedSetting?, _ name: (collection: String, key: String)) {
    let index = firstIndex { !IndexedSetting.precedes($0.name, name) }
    let isThere = index < settings.count && !IndexedSetting.precedes(name, settings[index].name)
    switch (setting, isThere) {
    case (let setting?, true): settings[index] = setting
    case (let setting?, false): settings.insert(setting, at: index)
    case (nil, true): settings.remove(at: index)
    case (nil, false): break
    }
  }

  /// The first setting in the list's order for which `condition` holds; it must hold for all after it.
  private func firstIndex(where condition: (IndexedSetting) -> Bool) -> Int {
    settings.partitioningIndex(condition)
  }

  // MARK: - Filtering

  private static let rememberedMatches = 16

  /// The indices of the settings that a filter accepts.
  mutating func matches(_ filter: SettingFilter) -> [Int] {
    if let known = matches[filter] { return known }
    let range = range(of: filter.collection)
    let found =
      filter.isAll ? Array(range) : range.filter { filter.accepts(settings[$0]) }
    let count = matches.values.reduce(0) { $0 + $1.count }
    if matches.count >= Self.rememberedMatches || count > settings.count { matches = [:] }
    matches[filter] = found
    return found
  }

  private static let rememberedArrangements = 2

  /// The settings that a filter accepts, in the order of a list, with its sections.
  mutating func arranged(_ arrangement: ListArrangement) -> ArrangedList {
    if let known = arrangements[arrangement] { return known }
    let list = ArrangedList(matches(arrangement.filter), of: settings, arrangement)
    if arrangements.count >= Self.rememberedArrangements { arrangements = [:] }
    arrangements[arrangement] = list
    return list
  }

  /// The settings of a collection; all for nil.
  func range(of collection: ByteString?) -> Range<Int> {
    guard let name = collection?.string else { return 0..<settings.count }
    let start = firstIndex { !IndexedSetting.precedes($0.name, (name, "")) }
    let end = firstIndex {
      !$0.collection.utf8.elementsEqual(name.utf8) && IndexedSetting.precedes((name, ""), $0.name)
    }
    return start..<end
  }

  /// The collections with the counts of their settings that a filter accepts, ignoring the filter's collection.
  mutating func counts(_ filter: SettingFilter) -> [(name: String, count: Int)] {
    var everywhere = filter
    everywhere.collection = nil
    var counts: [(name: String, count: Int)] = []
    for index in matches(everywhere) {
      let name = settings[index].collection
      if let last = counts.last, last.name.utf8.elementsEqual(name.utf8) {
        counts[counts.count - 1].count += 1
      } else {
        counts.append((name, 1))
      }
    }
    return counts
  }
}

/// The collections that the page shows.
struct CollectionScope: Sendable {
  /// The named ones; empty for all.
  let named: [String]

  func contains(_ collection: String) -> Bool {
    named.isEmpty || named.contains { $0.utf8.elementsEqual(collection.utf8) }
  }

  /// - Throws: ``Failure`` for a collection that the page does not show.
  func require(_ collection: String) throws {
    guard contains(collection) else {
      throw Failure(.refused, "this page does not show \(DisplayText.collection(collection)).")
    }
  }
}

extension RandomAccessCollection where Index == Int {
  /// The first index from which on a condition holds for all elements.
  func partitioningIndex(_ condition: (Element) -> Bool) -> Int {
    var range = startIndex..<endIndex
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      range = condition(self[middle]) ? range.lowerBound..<middle : middle + 1..<range.upperBound
    }
    return range.lowerBound
  }
}
