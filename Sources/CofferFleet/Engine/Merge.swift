import Coffer

/// How to resolve a setting that was changed both here and elsewhere.
public enum FleetRule: Int64, Sendable, Hashable, CaseIterable {
  /// The later change wins.
  case laterWins = 0
  /// The change from elsewhere wins; the default for a reader.
  case theirsWins = 1
  /// The local change wins.
  case oursWins = 2
}

/// Applies changes from elsewhere to the store, in one transaction.
struct Merge {
  let transaction: FleetTransaction
  let fleet: Int64
  let members: Members
  let me: Members.Member
  let rules: [String: Int64]
  /// The fleet's row before the merge.
  let before: StoredFleet
  /// The error for a record older than the one that was seen; nil if a rollback of the carrier was accepted.
  let wentBack: FleetError?

  private var changedKeys: FleetTransaction.LoggedKeys?
  var declarationTimes: FleetTransaction.DeclarationTimes?
  /// The applications whose declarations were taken.
  var declaringApplications: Set<String> = []

  var changeCount = 0
  private(set) var conflictCount = 0
  /// The number of changes that this host had made itself, and that are missing from its store.
  private(set) var recoveredCount = 0

  /// A clock that is more than a day ahead wins no conflict.
  static let toleratedLead: Int64 = 86_400_000

  var now: Int64 { transaction.time }

  init(
    transaction: FleetTransaction, fleet: Int64, before: StoredFleet, members: Members, me: Members.Member,
    wentBack: FleetError?
  ) throws {
    (self.transaction, self.fleet, self.members, self.me) = (transaction, fleet, members, me)
    rules = try transaction.rules(of: fleet)
    (self.before, self.wentBack) = (before, wentBack)
  }

  func rule(_ collection: String) -> FleetRule {
    rules[collection].flatMap(FleetRule.init) ?? (me.role == .reader ? .theirsWins : .laterWins)
  }

  // MARK: Existing records

  mutating func take(_ record: Record, named name: [UInt8], digest: [UInt8]) throws {
    // A store that joins has no records yet.
    let row = before.id == nil ? nil : try self.row(of: record)
    let isShared = members.collections.contains { $0.utf8.elementsEqual(record.collection.utf8) }
    var new = StoredRecord(
      collection: record.collection, key: record.key, name: name, counter: Int64(record.counter),
      clock: Int64(bitPattern: record.clock.rawValue), author: record.author.bytes,
      isRemoved: record.value == nil && record.declaration == nil,
      expires: record.value?.dates.expires, version: StoredRecord.notInStep, digest: digest)
    if record.isOfDeclaration {
      new.declaration = StoredDeclaration(
        content: row == nil ? record.declaration : row?.declaration?.content, own: row?.declaration?.own,
        isShared: isShared)
    }
    if let row {
      if record.isSameChange(row) {
        new.version = row.version
        return try transaction.save(new, of: fleet)
      }
      if record.counter <= UInt64(clamping: row.counter) {
        if let wentBack { throw wentBack }
        // The carrier has lost what this host knows. Push it again, with a clock above all that others have seen.
        new.counter = row.counter
        return try transaction.save(new, of: fleet)
      }
    }
    if record.isOfDeclaration {
      (new.version, new.declaration) = try merge(declaration: record, over: row, isShared: isShared)
    } else if isShared {
      new.version = try merge(record, over: row)
    }
    try transaction.save(new, of: fleet)
  }

  private func row(of record: Record) throws -> StoredRecord? {
    record.isOfDeclaration
      ? try transaction.declaration(record.key, in: record.collection, of: fleet)
      : try transaction.record(record.key, in: record.collection, of: fleet)
  }

  /// - Returns: The version of the item that matches the record; `notInStep` if the local value must be pushed.
  private mutating func merge(_ record: Record, over row: StoredRecord?) throws -> Int64 {
    let (key, collection) = (record.key, record.collection)
    let local = try transaction.item(key, in: collection)
    let theirs = record.isAbsent(at: now) ? nil : record.value
    guard isChangedHere(local?.version, row) else {
      if record.author == me.id, theirs != local?.value {
        if row == nil, try isLogged(record) { return StoredRecord.notInStep }
        recoveredCount += 1
      }
      return try set(theirs, record, over: local?.value)
    }
    if local?.value == theirs { return local?.version ?? 0 }
    let oursWin: Bool
    switch rule(collection) {
    case .theirsWins: oursWin = false
    case .oursWins: oursWin = true
    case .laterWins:
      // A change beats a removal.
      guard let theirs else { return StoredRecord.notInStep }
      // Unless this host made the change itself, before it was cut off.
      guard record.author != me.id || local != nil else { return StoredRecord.notInStep }
      guard let local else { return try set(theirs, record, over: nil) }
      oursWin = self.oursWin(local.modified, row, over: record)
    }
    return oursWin
      ? try keepOurs(over: theirs, record) : try takeTheirs(theirs, record, over: local)
  }

  /// Whether this host removed what it had pushed before it learned that the push had succeeded.
  private mutating func isLogged(_ record: Record) throws -> Bool {
    let keys = try changedKeys ?? transaction.keysChanged(since: before, in: members.collections)
    changedKeys = keys
    return keys.contains(record.key, in: record.collection)
  }

  /// Whether an item was changed here since the last sync.
  private func isChangedHere(_ version: Int64?, _ row: StoredRecord?) -> Bool {
    guard let row else { return version != nil }
    if row.version == (version ?? 0) { return false }
    // Expiring is not a change.
    return version != nil || row.version == StoredRecord.notInStep || !row.isAbsent(at: now)
  }

  func oursWin(_ modified: Int64, _ row: StoredRecord?, over record: Record) -> Bool {
    if record.author == me.id { return true }
    if record.clock.milliseconds > now + Self.toleratedLead { return true }
    let ours = HybridClock.next(at: modified, after: row, now: now)
    return ours == record.clock ? record.author < me.id : record.clock < ours
  }

  private mutating func set(_ theirs: FleetValue?, _ record: Record, over old: FleetValue?) throws -> Int64 {
    if theirs != old { changeCount += 1 }
    return try transaction.set(theirs, record.key, in: record.collection, author: record.writer)
  }

  private mutating func takeTheirs(
    _ theirs: FleetValue?, _ record: Record, over local: (value: FleetValue, version: Int64, modified: Int64)?
  ) throws -> Int64 {
    let (key, collection) = (record.key, record.collection)
    changeCount += 1
    let version = try transaction.set(theirs, key, in: collection, author: record.writer, keepsLoser: true)
    if let local { try addConflict(key, collection, local.version, winner: name(record.author), loser: me.name) }
    return version
  }

  private mutating func keepOurs(over theirs: FleetValue?, _ record: Record) throws -> Int64 {
    guard let theirs else { return StoredRecord.notInStep }
    let version = try transaction.keepLoser(
      theirs, record.key, in: record.collection, modified: record.clock.milliseconds, author: record.writer)
    // This host's own push, before it was cut off, is no conflict.
    if record.author != me.id {
      try addConflict(record.key, record.collection, version, winner: me.name, loser: name(record.author))
    }
    return StoredRecord.notInStep
  }

  mutating func addConflict(
    _ key: String, _ collection: String, _ version: Int64, winner: String, loser: String,
    losing declaration: SharedDeclaration? = nil
  ) throws {
    conflictCount += 1
    try transaction.addConflict(
      key, in: collection, version: version, winner: winner, loser: loser, of: fleet, losing: declaration)
  }

  func name(_ member: MemberID) -> String { members[member]?.name ?? "a former member" }

  // MARK: Missing records

  mutating func takeAbsence(of row: StoredRecord) throws {
    let (key, collection) = (row.key, row.collection)
    let local = try transaction.item(key, in: collection)
    if wentBack == nil {
      // The carrier has lost it. Push it again.
      var row = row
      (row.version, row.digest) = (StoredRecord.notInStep, [])
      return try transaction.save(row, of: fleet)
    }
    guard !row.isAbsent(at: now) else { return try transaction.remove(row, of: fleet) }
    // A removal is remembered for long: a host that was in sync lately cannot have missed it.
    if before.synced > now - members.retention, let wentBack { throw wentBack }
    if row.declaration == nil, let local {
      let isChangedHere = isChangedHere(local.version, row)
      changeCount += 1
      _ = try transaction.set(nil, key, in: collection, author: "", keepsLoser: isChangedHere)
      if isChangedHere { try addConflict(key, collection, local.version, winner: "", loser: me.name) }
    }
    try transaction.remove(row, of: fleet)
  }
}

extension Record {
  func isSameChange(_ row: StoredRecord) -> Bool {
    isSameChange(
      UInt64(clamping: row.counter), HybridClock(rawValue: UInt64(bitPattern: row.clock)), MemberID(bytes: row.author))
  }
}

extension HybridClock {
  /// The clock for a change that supersedes a row; a clock far ahead is not followed.
  static func next(at modified: Int64, after row: StoredRecord?, now: Int64) -> HybridClock {
    let earlier = row.map { HybridClock(rawValue: UInt64(bitPattern: $0.clock)) }
    let isFarAhead = earlier.map { $0.milliseconds > now + Merge.toleratedLead } ?? false
    return HybridClock(milliseconds: modified, after: isFarAhead ? nil : earlier)
  }
}
