import CofferStorage

/// The view of a transaction for syncing a store with a fleet.
package struct FleetTransaction {
  let session: Session

  package init(session: Session) { self.session = session }

  var tables: FleetTables { FleetTables(connection: session.connection) }

  func reading<Result>(_ body: () throws -> Result) throws -> Result { try session.reading(body) }

  /// Runs `body`, which changes the tables of fleets; always a commit, even if no item changes.
  func changing<Result>(_ body: () throws -> Result) throws -> Result {
    session.transaction.changesDeclarations = true
    return try session.reading(body)
  }

  /// The time of the transaction, in milliseconds since 1970.
  package var time: Int64 { session.transaction.time }

  // MARK: Fleets

  /// The fleets that the store is a member of.
  package func fleets() throws -> [StoredFleet] { try reading { try tables.fleets().filter { !$0.hasLeft } } }

  /// What the store was in step with as it left a fleet; nil if it never was a member, or is one.
  package func leftFleet(_ id: [UInt8]) throws -> StoredFleet? {
    try reading { try tables.fleets().first { $0.fleet == id && $0.hasLeft } }
  }

  /// Reads everything about all fleets.
  package func verify() throws { try reading { try tables.verify() } }

  @discardableResult
  package func save(_ fleet: StoredFleet) throws -> Int64 {
    try changing {
      try tables.create()
      return try tables.save(fleet)
    }
  }

  /// What the store knows about another host with its identity; nil for nothing.
  package func twin(of fleet: Int64) throws -> [UInt8]? { try reading { try tables.twin(of: fleet) } }

  package func setTwin(_ bytes: [UInt8], of fleet: Int64) throws {
    try changing { try tables.setTwin(bytes, of: fleet) }
  }

  /// Nil if there is no such note.
  package func note(_ note: FleetNote, of fleet: Int64) throws -> [UInt8]? {
    try reading { try tables.note(note, of: fleet) }
  }

  package func set(_ note: FleetNote, to bytes: [UInt8]?, of fleet: Int64) throws {
    try changing { try tables.set(note, to: bytes, of: fleet) }
  }

  /// The name of this host, as its changes have it.
  package var hostName: String { Author(text: session.core.authorText)?.host ?? "" }

  package func leave(_ fleet: Int64) throws { try changing { try tables.leave(fleet) } }

  package func remove(_ fleet: Int64) throws { try changing { try tables.remove(fleet) } }

  package func lastNumber() throws -> CommitNumber { try reading { try session.changeLog.lastNumber() } }

  /// Whether the values of a collection are sealed, or would be if it existed.
  package func isSealed(_ collection: String) throws -> Bool {
    try reading {
      do {
        guard try session.isSealedOrWillBe(collection) else { return false }
      } catch CofferError.vaultLocked {
        // See `stored`.
      }
      // Another program may have created the vault.
      try session.lookForVault()
      return true
    }
  }

  /// A collection; one that is sealed is found even if the vault has a new key that this program does not know.
  private func stored(_ collection: String) throws -> StoredCollection? {
    do {
      return try session.storedCollection(collection)
    } catch CofferError.vaultLocked {
      return try session.collections.collection(named: collection)
    }
  }

  /// Whether this program has the key that sealed values are under now: only with it are they taken and given.
  package func hasVaultKey() throws -> Bool { try reading { try session.hasVaultKey() } }

  // MARK: Records

  /// Whether the fleet has anything of a collection.
  package func shares(_ collection: String, in fleet: Int64) throws -> Bool {
    try reading { try tables.collections(of: fleet) }.contains { $0.utf8.elementsEqual(collection.utf8) }
  }

  package func record(_ key: String, in collection: String, of fleet: Int64) throws -> StoredRecord? {
    try reading { try tables.record(key, in: collection, of: fleet) }
  }

  package func record(named name: [UInt8], of fleet: Int64) throws -> StoredRecord? {
    try reading { try tables.record(named: name, of: fleet) }
  }

  package func records(of fleet: Int64) throws -> [StoredRecord] { try reading { try tables.records(of: fleet) } }

  /// The names and digests of the records on the carrier whose names begin with these bytes.
  package func digests(
    ofNamesBeginningWith start: [UInt8], of fleet: Int64
  ) throws -> [(name: [UInt8], digest: [UInt8])] {
    try reading { try tables.digests(ofNamesBeginningWith: start, of: fleet) }
  }

  /// The records of a collection's settings that were removed or have expired before a time, and are in sync.
  package func forgettableRecords(
    of fleet: Int64, in collection: String, before time: Int64, atMost count: Int
  ) throws -> [StoredRecord] {
    try reading { try tables.forgettableRecords(of: fleet, in: collection, before: time, atMost: count) }
  }

  package func save(_ record: StoredRecord, of fleet: Int64) throws {
    try changing { try tables.save(record, of: fleet) }
  }

  package func remove(_ record: StoredRecord, of fleet: Int64) throws {
    try changing { try tables.remove(record, of: fleet) }
  }

  /// Removes what is known about the records of all other collections.
  package func removeRecords(of fleet: Int64, notIn collections: [String]) throws {
    let known = try reading { try tables.collections(of: fleet) }
    let other = known.filter { name in !collections.contains { $0.utf8.elementsEqual(name.utf8) } }
    guard !other.isEmpty else { return }
    try changing { for name in other { try tables.removeRecords(in: name, of: fleet) } }
  }

  package func removeRecords(in collection: String, of fleet: Int64) throws {
    try changing { try tables.removeRecords(in: collection, of: fleet) }
  }

  // MARK: Items

  /// An item's value, opened if it is sealed, its version and time of setting; nil for no item.
  package func item(_ key: String, in collection: String) throws -> (
    value: FleetValue, version: CommitNumber, modified: Int64
  )? {
    guard let row = try session.row(key, in: collection) else { return nil }
    return (try opened(row.item, key, in: collection), row.version, row.modified)
  }

  /// An item's version and time of setting, which need no key of the vault; nil for no item.
  package func state(of key: String, in collection: String) throws -> (version: CommitNumber, modified: Int64)? {
    try session.row(key, in: collection).map { ($0.version, $0.modified) }
  }

  /// The value of an item as plaintext: it leaves the store under the fleet's key, or is compared with what comes.
  private func opened(_ item: HeldItem, _ key: String, in collection: String) throws -> FleetValue {
    guard item.isSealed else { return FleetValue(item) }
    return FleetValue(
      object: try session.core.opened(item.object, key, in: collection),
      metadata: try item.metadata.map { try session.core.opened(.metadata, $0, key, in: collection) },
      dates: item.dates)
  }

  /// Sets an item as it was set elsewhere; nil removes it.
  ///
  /// - Parameters:
  ///   - author: Who set it; see `Author`.
  ///   - keepsLoser: Whether to move the previous value into the history even if the collection keeps none.
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

  /// Lets the other names of renamed settings follow what was merged; what that changes has to be pushed.
  ///
  /// Who removes a setting removes all of its names. If the fleet has another name that was not removed, the one that was has ended on
  /// another host: where it is still kept, it comes back.
  ///
  /// - Parameters:
  ///   - hasDeclarations: Whether declarations have come, which may tell of renames.
  ///   - choosing: Decides which of several values of a setting counts whose names have become known for such.
  package func letNamesFollow(
    of fleet: Int64, hasDeclarations: Bool, choosing: Session.NameChoice
  ) throws {
    let count = session.transaction.followers.count
    if hasDeclarations { try changing { try session.beginRenamesOfFleets(choosing) } }
    try session.letNamesFollow(isMerge: true) { place in
      try session.otherNames(of: place.key.string, in: place.collection.string).contains { other in
        try tables.record(other.key.string, in: other.collection.string, of: fleet)?.isRemoved == false
      }
    }
    for place in session.transaction.followers[count...] {
      let record = try reading { try tables.record(place.key.string, in: place.collection.string, of: fleet) }
      // Its record counts as of this commit, and so as in step.
      guard var record, try record.version == session.newVersion() else { continue }
      record.version = StoredRecord.notInStep
      try save(record, of: fleet)
    }
  }

  /// Adds a value from elsewhere that lost a conflict to the history of its key.
  ///
  /// - Returns: Its version there.
  /// - Throws: ``NeedsEarlierCommit`` if no version is free for it.
  package func keepLoser(
    _ value: FleetValue, _ key: String, in collection: String, modified: Int64, author: String
  ) throws -> Int64 {
    try changing {
      let ended = try session.newVersion()
      // The number of the previous commit: another value of this key has it only if that commit set one.
      let version = ended - 1
      guard try version > 0 && session.version(key, in: collection) != version else { throw NeedsEarlierCommit() }
      let stored = try session.makeCollection(collection)
      try session.history.insert(
        session.fitted(value.item, key, in: collection, stored, present: nil), key, in: stored, version: version,
        modified: modified, ended: ended, time: time, author: Author(text: author)?.text, endedBy: session.authorText)
      return version
    }
  }

  /// The transaction has to be repeated after an empty commit.
  struct NeedsEarlierCommit: Error {}

  // MARK: Changes

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
    try keysNotInStep(in: collection, of: fleet).filter { key in
      try reading { try tables.record(key, in: collection, of: fleet) } == nil
    }
  }

  package func hasKeysNotInStep(in collection: String, of fleet: Int64) throws -> Bool {
    try !keysNotInStep(in: collection, of: fleet).isEmpty
  }

  private func keysNotInStep(in collection: String, of fleet: Int64) throws -> [String] {
    try reading {
      try tables.keysNotInStep(session.storedCollection(collection), named: collection, of: fleet, at: time)
    }
  }

  // MARK: Conflicts and rules

  package func conflicts(of fleet: Int64) throws -> [StoredConflict] { try reading { try tables.conflicts(of: fleet) } }

  package func addConflict(
    _ key: String, in collection: String, version: CommitNumber, winner: String, loser: String, of fleet: Int64,
    losing declaration: SharedDeclaration? = nil
  ) throws {
    try changing {
      let id = try tables.addConflict(
        key, in: collection, version: version, time: time, winner: winner, loser: loser, of: fleet)
      if let declaration { try tables.saveLost(declaration, of: id) }
    }
  }

  package func removeConflict(_ id: Int64, of fleet: Int64) throws {
    try changing { try tables.removeConflict(id, of: fleet) }
  }

  package func rules(of fleet: Int64) throws -> [String: Int64] { try reading { try tables.rules(of: fleet) } }

  package func removeRule(for collection: String, of fleet: Int64) throws {
    try changing { try tables.removeRule(for: collection, of: fleet) }
  }

  package func setRule(_ rule: Int64, for collection: String, of fleet: Int64) throws {
    try changing { try tables.setRule(rule, for: collection, of: fleet) }
  }
}

extension Connection {
  /// Reads items and the tables of fleets.
  package func readFleets<Result>(_ body: (FleetTransaction) throws -> Result) throws -> Result {
    try perform { session in try session.read { try body(FleetTransaction(session: session)) } }
  }

  /// Changes items and the tables of fleets, in one transaction.
  package func writeFleets<Result>(_ body: (FleetTransaction) throws -> Result) throws -> Result {
    func write() throws -> Result {
      try readWrite { transaction in
        defer { transaction.session.forgetRenames() }
        return try body(FleetTransaction(session: transaction.session))
      }
    }
    do {
      return try write()
    } catch is FleetTransaction.NeedsEarlierCommit {
      try readWrite { $0.session.transaction.changesDeclarations = true }
      return try write()
    }
  }
}
