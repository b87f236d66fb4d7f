import CofferStorage

// What was changed here, and is not on the carrier.

extension FleetTransaction {
  /// The local changes since the last sync, in order, in parts that must be pushed whole.
  ///
  /// The parts are the commits, as far as the change log still has them. Commits from one change of a key to a later one of the
  /// same key form a single part, because the value in between is no longer known.
  ///
  /// - Parameter withValues: Whether to read the values, for which sealed ones have to be opened.
  package func localChanges(
    of fleet: StoredFleet, in collections: [String], withValues: Bool = true
  ) throws -> [[LocalChange]] {
    guard let id = fleet.id, !collections.isEmpty else { return [] }
    return try reading {
      guard let log = try loggedChanges(after: fleet.pushed, in: collections) else {
        let keys = try collections.flatMap { name in
          try tables.keysNotInStep(stored(name), named: name, of: id, at: time).map { (name, $0) }
        }
        let changes = try keys.compactMap { try change($1, in: $0, of: id, at: time, by: "", withValue: withValues) }
        return changes.isEmpty ? [] : [changes]
      }
      return try log.compactMap { part in
        let changes = try part.compactMap { place, commit in
          try change(
            place.key.string, in: place.collection.string, of: id, at: commit.time, by: commit.author ?? "",
            withValue: withValues)
        }
        return changes.isEmpty ? nil : changes
      }
    }
  }

  /// The keys named by the change log.
  package struct LoggedKeys {
    fileprivate let places: Set<SettingPlace>

    package func contains(_ key: String, in collection: String) -> Bool {
      places.contains(SettingPlace(key, in: collection))
    }
  }

  /// The keys changed here since the last sync; empty if the change log does not go back far enough.
  package func keysChanged(since fleet: StoredFleet, in collections: [String]) throws -> LoggedKeys {
    let parts = try reading { try loggedChanges(after: fleet.pushed, in: collections) } ?? []
    return LoggedKeys(places: Set(parts.joined().map(\.0)))
  }

  /// The changes according to the change log; nil if it does not go back far enough.
  private func loggedChanges(
    after number: CommitNumber, in collections: [String]
  ) throws -> [[(SettingPlace, ChangeLog.Row)]]? {
    var names: [Int64: String] = [:]
    for name in collections { try stored(name).map { names[$0.id] = name } }
    // The ID of a removed or recreated collection has no meaning here.
    guard names.count == collections.count else { return nil }
    var commits: [(row: ChangeLog.Row, places: [SettingPlace])] = []
    var isComplete = true
    let rows: [Void]? = try session.changeLog.rows(after: number) { row, changes in
      let changes = try changes()
      if changes.isAllCleared { isComplete = false }
      var places: [SettingPlace] = []
      for (id, change) in changes.collections {
        guard let name = names[id] else {
          if change.isCleared { isComplete = false }
          continue
        }
        if change.isCleared || change.isUnlisted { isComplete = false }
        places += change.keys.map { SettingPlace($0.key.string, in: name) }
      }
      commits.append((row, places))
    }
    guard rows != nil, isComplete else { return nil }

    var last: [SettingPlace: Int] = [:]
    for (index, commit) in commits.enumerated() { for place in commit.places { last[place] = index } }
    var parts: [[(SettingPlace, ChangeLog.Row)]] = []
    var part: [(SettingPlace, ChangeLog.Row)] = []
    var end = 0
    for (index, commit) in commits.enumerated() {
      for place in commit.places {
        end = max(end, last[place] ?? index)
        // Each key once, with its last change.
        if last[place] == index { part.append((place, commit.row)) }
      }
      guard index >= end else { continue }
      if !part.isEmpty { parts.append(part) }
      (part, end) = ([], index + 1)
    }
    return parts
  }

  /// The unsynced change of a key; nil if the key is in sync.
  private func change(
    _ key: String, in collection: String, of fleet: Int64, at time: Int64, by author: String, withValue: Bool
  ) throws -> LocalChange? {
    let record = try tables.record(key, in: collection, of: fleet)
    let row = try stored(collection).flatMap { try session.items.row(key, in: $0, at: self.time) }
    guard let row else {
      guard let record, record.version != 0, record.expires.map({ $0 > self.time }) ?? true else { return nil }
      return LocalChange(
        collection: collection, key: key, value: nil, version: 0, modified: time, author: author, record: record)
    }
    guard row.version != record?.version else { return nil }
    // Another name of the setting counts, and a program has to convert its value: what other hosts have never seen stays here.
    if try record == nil && session.isWaiting(key, in: collection) { return nil }
    return LocalChange(
      collection: collection, key: key, value: withValue ? try opened(row.item, key, in: collection) : nil,
      version: row.version, modified: row.modified, author: row.author ?? author, record: record)
  }

  /// The keys of a collection that have a value, and no record in the fleet.
  package func keysWithoutRecord(in collection: String, of fleet: Int64) throws -> [String] {
    try notInStep(in: collection, of: fleet).filter { $0.record == nil }.map(\.key)
  }

  /// The keys of a collection that were set or removed here and are not pushed, each with its record in the fleet, if it has one.
  package func notInStep(in collection: String, of fleet: Int64) throws -> [(key: String, record: StoredRecord?)] {
    try keysNotInStep(in: collection, of: fleet).map { key in
      (key, try reading { try tables.record(key, in: collection, of: fleet) })
    }
  }

  private func keysNotInStep(in collection: String, of fleet: Int64) throws -> [String] {
    try reading {
      try tables.keysNotInStep(session.storedCollection(collection), named: collection, of: fleet, at: time)
    }
  }
}
