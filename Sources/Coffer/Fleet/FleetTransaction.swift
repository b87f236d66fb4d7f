import CofferStorage

/// A transaction, as it is seen by what keeps a store in step with a fleet.
package struct FleetTransaction {
  let session: Session

  private var tables: FleetTables { FleetTables(connection: session.connection) }

  private func reading<Result>(_ body: () throws -> Result) throws -> Result { try session.reading(body) }

  /// Runs `body`, which changes the tables of fleets: a commit, also where no item changes.
  private func changing<Result>(_ body: () throws -> Result) throws -> Result {
    session.transaction.changesDeclarations = true
    return try session.reading(body)
  }

  /// The time of the transaction, in milliseconds since 1970.
  package var time: Int64 { session.transaction.time }

  // MARK: Fleets

  package func fleets() throws -> [StoredFleet] { try reading { try tables.fleets() } }

  @discardableResult
  package func save(_ fleet: StoredFleet) throws -> Int64 {
    try changing {
      try tables.create()
      return try tables.save(fleet)
    }
  }

  package func remove(_ fleet: Int64) throws { try changing { try tables.remove(fleet) } }

  package func lastSequence() throws -> Int64 { try reading { try session.changeLog.lastSequence() } }

  /// Whether the values of a collection are sealed, or would be if it were made.
  package func isSealed(_ collection: String) throws -> Bool {
    try reading { try session.isSealedOrWillBe(collection) }
  }

  // MARK: Records

  package func record(_ key: String, in collection: String, of fleet: Int64) throws -> StoredRecord? {
    try reading { try tables.record(key, in: collection, of: fleet) }
  }

  package func record(named name: [UInt8], of fleet: Int64) throws -> StoredRecord? {
    try reading { try tables.record(named: name, of: fleet) }
  }

  package func records(of fleet: Int64) throws -> [StoredRecord] { try reading { try tables.records(of: fleet) } }

  /// Records of what is gone since before a time, and in step.
  package func forgettableRecords(of fleet: Int64, before time: Int64, atMost count: Int) throws -> [StoredRecord] {
    try reading { try tables.forgettableRecords(of: fleet, before: time, atMost: count) }
  }

  package func save(_ record: StoredRecord, of fleet: Int64) throws {
    try changing { try tables.save(record, of: fleet) }
  }

  package func removeRecord(_ key: String, in collection: String, of fleet: Int64) throws {
    try changing { try tables.removeRecord(key, in: collection, of: fleet) }
  }

  // MARK: Items

  /// What an item holds, its version and when it was set; nil for none.
  package func item(_ key: String, in collection: String) throws -> (
    value: FleetValue, version: Int64, modified: Int64
  )? {
    guard let row = try session.row(key, in: collection) else { return nil }
    return (FleetValue(row.item), row.version, row.modified)
  }

  /// Sets an item, or removes it with nil, as it was set elsewhere.
  ///
  /// - Parameters:
  ///   - author: Who did; see `Author`.
  ///   - keepsLoser: Whether what was there becomes history in any case.
  /// - Returns: The version of the item, 0 for none.
  package func set(
    _ value: FleetValue?, _ key: String, in collection: String, author: String, keepsLoser: Bool = false
  ) throws -> Int64 {
    let earlier = (session.transaction.writer, session.transaction.keepsAllHistory)
    defer { (session.transaction.writer, session.transaction.keepsAllHistory) = earlier }
    session.transaction.writer = author.isEmpty ? nil : Author(text: author)?.text
    if keepsLoser { session.transaction.keepsAllHistory = true }
    if let value {
      try session.set(value.item, key, in: collection)
    } else {
      try session.remove(key, in: collection)
    }
    return try session.version(key, in: collection)
  }

  /// Puts a value that was set elsewhere, and lost, into the history of its key.
  ///
  /// - Returns: Its version there.
  /// - Throws: ``NeedsEarlierCommit`` where there is no number for it.
  package func keepLoser(
    _ value: FleetValue, _ key: String, in collection: String, modified: Int64, author: String
  ) throws -> Int64 {
    try changing {
      let ended = try session.newVersion()
      // The number of the commit before: another value of this key can only have it where that one made it.
      let version = ended - 1
      guard try version > 0 && session.version(key, in: collection) != version else { throw NeedsEarlierCommit() }
      try session.history.insert(
        value.item, key, in: session.makeCollection(collection), version: version, modified: modified, ended: ended,
        time: time, author: Author(text: author)?.text, endedBy: session.authorText)
      return version
    }
  }

  /// What the transaction writes is ruled out until another commit, of nothing, was made.
  struct NeedsEarlierCommit: Error {}

  // MARK: Changes

  /// What was changed here since the fleet was in step, in parts that have to travel whole, in their order.
  ///
  /// Where the change log still has it, these are the commits; those between a change of a key and a later one of the same key
  /// are one part, since what was there between is not known any more.
  package func localChanges(of fleet: StoredFleet, in collections: [String]) throws -> [[LocalChange]] {
    guard let id = fleet.id else { return [] }
    return try reading {
      guard let log = try loggedChanges(after: fleet.sequence, in: collections) else {
        let keys = try collections.flatMap { name in
          try tables.keysNotInStep(session.storedCollection(name), named: name, of: id, at: time).map { (name, $0) }
        }
        let changes = try keys.compactMap { try change($1, in: $0, of: id, at: time, by: "") }
        return changes.isEmpty ? [] : [changes]
      }
      return try log.compactMap { part in
        let changes = try part.compactMap { place, commit in
          try change(place.key.string, in: place.collection, of: id, at: commit.time, by: commit.author ?? "")
        }
        return changes.isEmpty ? nil : changes
      }
    }
  }

  fileprivate struct Place: Hashable {
    let collection: String
    let key: ByteString
  }

  /// Keys that the change log names.
  package struct LoggedKeys {
    fileprivate let places: Set<Place>

    package func contains(_ key: String, in collection: String) -> Bool {
      places.contains(Place(collection: collection, key: ByteString(key)))
    }
  }

  /// The keys that were changed here since the fleet was in step; none if the change log says too little.
  package func keysChanged(since fleet: StoredFleet, in collections: [String]) throws -> LoggedKeys {
    let parts = try reading { try loggedChanges(after: fleet.sequence, in: collections) } ?? []
    return LoggedKeys(places: Set(parts.joined().map(\.0)))
  }

  /// By what the change log says; nil where it says too little.
  private func loggedChanges(
    after sequence: Int64, in collections: [String]
  ) throws -> [[(Place, ChangeLog.Row)]]? {
    var names: [Int64: String] = [:]
    for name in collections { try session.storedCollection(name).map { names[$0.id] = name } }
    // The ID of a removed or recreated collection has no meaning here.
    guard names.count == collections.count else { return nil }
    var commits: [(row: ChangeLog.Row, places: [Place])] = []
    var isComplete = true
    let rows: [Void]? = try session.changeLog.rows(after: sequence) { row, changes in
      let changes = try changes()
      if changes.isAllCleared { isComplete = false }
      var places: [Place] = []
      for (id, change) in changes.collections {
        guard let name = names[id] else {
          if change.isCleared { isComplete = false }
          continue
        }
        if change.isCleared || change.isUnlisted { isComplete = false }
        places += change.keys.map { Place(collection: name, key: $0.key) }
      }
      commits.append((row, places))
    }
    guard rows != nil, isComplete else { return nil }

    var last: [Place: Int] = [:]
    for (index, commit) in commits.enumerated() { for place in commit.places { last[place] = index } }
    var parts: [[(Place, ChangeLog.Row)]] = []
    var part: [(Place, ChangeLog.Row)] = []
    var end = 0
    for (index, commit) in commits.enumerated() {
      for place in commit.places {
        end = max(end, last[place] ?? index)
        // Each key once, as it was changed last.
        if last[place] == index { part.append((place, commit.row)) }
      }
      guard index >= end else { continue }
      if !part.isEmpty { parts.append(part) }
      (part, end) = ([], index + 1)
    }
    return parts
  }

  /// What is not in step of a key; nil where it is.
  private func change(
    _ key: String, in collection: String, of fleet: Int64, at time: Int64, by author: String
  ) throws -> LocalChange? {
    let record = try tables.record(key, in: collection, of: fleet)
    let row = try session.storedCollection(collection).flatMap { try session.items.row(key, in: $0, at: self.time) }
    guard let row else {
      guard let record, record.version != 0, record.expires.map({ $0 > self.time }) ?? true else { return nil }
      return LocalChange(
        collection: collection, key: key, value: nil, version: 0, modified: time, author: author, record: record)
    }
    guard row.version != record?.version else { return nil }
    return LocalChange(
      collection: collection, key: key, value: FleetValue(row.item), version: row.version, modified: row.modified,
      author: row.author ?? author, record: record)
  }

  // MARK: Conflicts and rules

  package func conflicts(of fleet: Int64) throws -> [StoredConflict] { try reading { try tables.conflicts(of: fleet) } }

  package func addConflict(
    _ key: String, in collection: String, version: Int64, winner: String, loser: String, of fleet: Int64
  ) throws {
    try changing {
      try tables.addConflict(
        key, in: collection, version: version, time: time, winner: winner, loser: loser, of: fleet)
    }
  }

  package func removeConflict(_ id: Int64, of fleet: Int64) throws {
    try changing { try tables.removeConflict(id, of: fleet) }
  }

  package func rules(of fleet: Int64) throws -> [String: Int64] { try reading { try tables.rules(of: fleet) } }

  package func setRule(_ rule: Int64, for collection: String, of fleet: Int64) throws {
    try changing { try tables.setRule(rule, for: collection, of: fleet) }
  }
}

extension Connection {
  /// Reads the tables of fleets, and items.
  package func readFleets<Result>(_ body: (FleetTransaction) throws -> Result) throws -> Result {
    try perform { session in try session.read { try body(FleetTransaction(session: session)) } }
  }

  /// Changes the tables of fleets, and items, in one transaction.
  package func writeFleets<Result>(_ body: (FleetTransaction) throws -> Result) throws -> Result {
    do {
      return try readWrite { try body(FleetTransaction(session: $0.session)) }
    } catch is FleetTransaction.NeedsEarlierCommit {
      try readWrite { $0.session.transaction.changesDeclarations = true }
      return try readWrite { try body(FleetTransaction(session: $0.session)) }
    }
  }
}
