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
  package var hostName: String { Author(text: authorText)?.host ?? "" }

  /// Who this program is, as its changes have it; see `Author`.
  package var authorText: String { session.core.authorText }

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
  func stored(_ collection: String) throws -> StoredCollection? {
    do {
      return try session.storedCollection(collection)
    } catch CofferError.vaultLocked {
      return try session.collections.collection(named: collection)
    }
  }

  /// Whether this program has the key that sealed values are under now: only with it are they taken and given.
  package func hasVaultKey() throws -> Bool { try reading { try session.hasVaultKey() } }

  // MARK: Records

  /// The collections of which the fleet has something.
  package func collections(of fleet: Int64) throws -> [String] { try reading { try tables.collections(of: fleet) } }

  /// Whether the fleet has anything of a collection.
  package func shares(_ collection: String, in fleet: Int64) throws -> Bool {
    try collections(of: fleet).contains { $0.utf8.elementsEqual(collection.utf8) }
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
    let other = try self.collections(of: fleet).filter { name in
      !collections.contains { $0.utf8.elementsEqual(name.utf8) }
    }
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
  func opened(_ item: HeldItem, _ key: String, in collection: String) throws -> FleetValue {
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
