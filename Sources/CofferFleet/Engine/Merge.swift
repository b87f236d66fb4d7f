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
  /// The collections that were agreed to here.
  let agreed: [String]
  let rules: [String: Int64]
  /// The fleet's row before the merge.
  let before: StoredFleet
  let isJoining: Bool
  private let bases: [ByteString: Base]

  /// How the new state of a collection relates to what the store is in step with there.
  struct Base {
    let collection: String
    /// Whether the store has nothing of it from the fleet.
    let isJoining: Bool
    let relation: Fleet.Relation
    /// Whether removals that the store has not seen may be missing.
    let isForgetful: Bool
    /// The error for a record older than the one that was seen; nil if a rollback of the carrier was accepted.
    let wentBack: FleetError?
  }

  private var knownClocks: TransactionClocks?
  private var changedKeys: FleetTransaction.LoggedKeys?
  var declarationTimes: FleetTransaction.DeclarationTimes?
  /// The applications whose declarations were taken.
  var declaringApplications: Set<String> = []
  /// The authors of records that are ahead of this host's clock, and by how much.
  private var leads: [MemberID: Int64] = [:]

  var changeCount = 0
  private(set) var conflictCount = 0
  /// The number of changes by this member that its store has not made, or has lost, and the hosts on which they were made.
  private(set) var recoveredCount = 0
  private(set) var recoveredHosts: Set<String> = []

  var now: Int64 { transaction.time }

  init(
    transaction: FleetTransaction, fleet: Int64, before: StoredFleet, members: Members, me: Members.Member,
    agreed: [String], isJoining: Bool, bases: [Base]
  ) throws {
    (self.transaction, self.fleet, self.members, self.me) = (transaction, fleet, members, me)
    (self.before, self.agreed, self.isJoining) = (before, agreed, isJoining)
    rules = try transaction.rules(of: fleet)
    self.bases = Dictionary(bases.map { (ByteString($0.collection), $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The collections that are taken.
  private var taken: [String] { bases.keys.map(\.string) }

  /// Nil for a collection that is not taken.
  func base(_ collection: String) -> Base? { bases[ByteString(collection)] }

  func isJoining(_ collection: String) -> Bool { base(collection)?.isJoining ?? isJoining }

  func relation(_ collection: String) -> Fleet.Relation { base(collection)?.relation ?? .following }

  private func hasForgotten(_ collection: String) -> Bool { base(collection)?.isForgetful ?? false }

  func rule(_ collection: String) -> FleetRule {
    rules[collection].flatMap(FleetRule.init) ?? (me.role == .reader ? .theirsWins : .laterWins)
  }

  private typealias Item = (value: FleetValue, version: CommitNumber, modified: Int64)

  // MARK: Existing records

  mutating func take(_ record: Record, at place: [UInt8], digest: [UInt8]) throws {
    if record.clock.isAhead(of: now) {
      leads[record.author] = max(leads[record.author] ?? 0, record.clock.milliseconds - now)
    }
    var new = StoredRecord(
      collection: record.collection, key: record.key, name: place, counter: Int64(record.counter),
      clock: Int64(bitPattern: record.clock.rawValue), author: record.author.bytes,
      isRemoved: record.value == nil && record.declaration == nil,
      expires: record.value?.dates.expires, version: StoredRecord.notInStep, digest: digest)
    // What waits for consent is known, and not taken.
    guard base(record.collection) != nil else {
      if record.isOfDeclaration {
        new.declaration = StoredDeclaration(content: record.declaration, own: nil, isShared: false)
      }
      return try transaction.save(new, of: fleet)
    }
    // A store that joins for the first time has no records yet.
    let row = before.id == nil ? nil : try self.row(of: record)
    if record.isOfDeclaration {
      try take(declaration: record, over: row, as: &new)
      return try transaction.save(new, of: fleet)
    }
    let local = try transaction.item(record.key, in: record.collection)
    if let row, record.isSameChange(row) {
      let isKnown = isContent(of: record, row, local)
      new.version = isKnown ? row.lostVersion ?? row.version : try merge(record, local, over: row, isSecond: true)
    } else if let row, try isUnseen(record, row) {
      new.version = try reconcile(record, local, over: row)
      new.raise(above: row)
    } else {
      new.version = try merge(record, local, over: row)
    }
    try transaction.save(new, of: fleet)
  }

  private func row(of record: Record) throws -> StoredRecord? {
    record.isOfDeclaration
      ? try transaction.declaration(record.key, in: record.collection, of: fleet)
      : try transaction.record(record.key, in: record.collection, of: fleet)
  }

  /// Whether a record and the one that the store was in step with were made without knowledge of each other.
  ///
  /// - Throws: `wentBack` if that should not be.
  func isUnseen(_ record: Record, _ row: StoredRecord) throws -> Bool {
    if relation(record.collection) != .following || row.lostVersion != nil { return true }
    // After a forgotten removal, a setting begins again.
    guard record.counter <= UInt64(clamping: row.counter), !hasForgotten(record.collection) else { return false }
    // What is to be pushed has a counter of its own already.
    if let base = base(record.collection), let wentBack = base.wentBack, !base.isJoining,
      row.version != StoredRecord.notInStep
    {
      throw wentBack
    }
    return true
  }

  /// Whether a record has what the store took for that change, as far as the store can tell.
  private func isContent(of record: Record, _ row: StoredRecord, _ local: Item?) -> Bool {
    if row.isRemoved != (record.value == nil) || row.expires != record.value?.dates.expires { return false }
    guard let local, local.version == row.lostVersion ?? row.version else { return true }
    return local.value == record.value
  }

  /// - Parameter isSecond: Whether it is another content of the change that the store has taken.
  /// - Returns: The version of the item that matches the record; `notInStep` if the local value must be pushed.
  private mutating func merge(
    _ record: Record, _ local: Item?, over row: StoredRecord?, isSecond: Bool = false
  ) throws -> Int64 {
    let theirs = record.isAbsent(at: now) ? nil : record.value
    guard isChangedHere(local?.version, row) else {
      if isSecond { return try takeTheirs(theirs, record, over: local, loser: name(record.author)) }
      if record.author == me.id, theirs != local?.value {
        if row == nil, try isLogged(record) { return StoredRecord.notInStep }
        recover(record)
      }
      return try set(theirs, record, over: local?.value)
    }
    if local?.value == theirs { return local?.version ?? 0 }
    // A store that joins, or agrees to a collection, has not seen the record, and so has no opinion on it.
    if isJoining(record.collection), row == nil, let local { return try takeTheirs(theirs, record, over: local) }
    switch rule(record.collection) {
    case .theirsWins: return try takeTheirs(theirs, record, over: local)
    case .oursWins: return try keepOurs(over: theirs, record, isConflict: record.author != me.id)
    case .laterWins: break
    }
    let ours = try clocks[record.key, in: record.collection]
    guard record.author == me.id else {
      // A change beats a removal.
      guard let theirs else { return StoredRecord.notInStep }
      guard let local else { return try set(theirs, record, over: nil) }
      let isEarlier = isEarlier(record, than: ours ?? HybridClock(milliseconds: local.modified))
      return isEarlier ? try keepOurs(over: theirs, record) : try takeTheirs(theirs, record, over: local)
    }
    // This host pushed it before it was cut off, and has changed it since. Unless it is later than that change: then it is from another host with
    // a copy of this store.
    if let ours, !record.clock.isAhead(of: now), ours < record.clock {
      recover(record)
      return try takeTheirs(theirs, record, over: local)
    }
    return try keepOurs(over: theirs, record, isConflict: false)
  }

  private mutating func recover(_ record: Record) {
    recoveredCount += 1
    recoveredHosts.insert(Author(text: record.writer)?.host ?? "")
  }

  /// Whether a change that an admin has cut off is not this host's to push again.
  func isLeft(to row: StoredRecord, _ isChangedHere: Bool) -> Bool {
    relation(row.collection) == .cutOff && !isChangedHere && MemberID(bytes: row.author) != me.id
  }

  /// Resolves a setting that differs after an accepted rollback or fork: neither side has seen the other.
  private mutating func reconcile(_ record: Record, _ local: Item?, over row: StoredRecord) throws -> Int64 {
    let theirs = record.isAbsent(at: now) ? nil : record.value
    if local?.value == theirs { return local?.version ?? 0 }
    let isChangedHere = isChangedHere(local?.version, row)
    if isLeft(to: row, isChangedHere) { return try set(theirs, record, over: local?.value, keepsLoser: true) }
    let ours = (isChangedHere ? try clocks[record.key, in: record.collection] : nil) ?? row.hybridClock
    let oursWins =
      switch rule(record.collection) {
      case .theirsWins: false
      case .oursWins: true
      // Where nothing was changed here since, a wrong clock on this host is no reason to go back.
      case .laterWins: isChangedHere ? isEarlier(record, than: ours) : record.clock < ours
      }
    // Most probably what the carrier was restored to.
    let isEarlierState = record.counter < UInt64(clamping: row.counter) && record.clock < ours
    guard oursWins || isEarlierState else { return try takeTheirs(theirs, record, over: local) }
    let version = try keepOurs(over: theirs, record, isConflict: !isEarlierState)
    return isChangedHere ? version : StoredRecord.lost(local?.version ?? 0)
  }

  /// The clocks of the changes here.
  private var clocks: TransactionClocks {
    // Read at the first conflict: what was merged before had no change here.
    mutating get throws {
      if let knownClocks { return knownClocks }
      let clocks = TransactionClocks(
        of: try transaction.localChanges(of: before, in: taken, withValues: false), at: now)
      knownClocks = clocks
      return clocks
    }
  }

  /// Whether this host removed what it had pushed before it learned that the push had succeeded.
  private mutating func isLogged(_ record: Record) throws -> Bool {
    let keys = try changedKeys ?? transaction.keysChanged(since: before, in: taken)
    changedKeys = keys
    return keys.contains(record.key, in: record.collection)
  }

  /// Whether an item was changed here since the last sync.
  private func isChangedHere(_ version: CommitNumber?, _ row: StoredRecord?) -> Bool {
    guard let row else { return version != nil }
    if row.lostVersion ?? row.version == version ?? 0 { return false }
    // Expiring is not a change.
    return version != nil || row.version == StoredRecord.notInStep || !row.isAbsent(at: now)
  }

  func oursWin(_ modified: Int64, _ row: StoredRecord?, over record: Record) -> Bool {
    record.author == me.id || isEarlier(record, than: HybridClock.next(at: modified, after: row, now: now))
  }

  func isEarlier(_ record: Record, than ours: HybridClock) -> Bool {
    if record.clock.isAhead(of: now) { return true }
    // A change from when this host's own clock was wrong.
    if ours.isAhead(of: now) { return false }
    return ours == record.clock ? record.author < me.id : record.clock < ours
  }

  private mutating func set(
    _ theirs: FleetValue?, _ record: Record, over old: FleetValue?, keepsLoser: Bool = false
  ) throws -> Int64 {
    if theirs != old { changeCount += 1 }
    return try transaction.set(
      theirs, record.key, in: record.collection, author: record.writer, keepsLoser: keepsLoser)
  }

  private mutating func takeTheirs(
    _ theirs: FleetValue?, _ record: Record, over local: Item?, loser: String? = nil
  ) throws -> Int64 {
    let (key, collection) = (record.key, record.collection)
    changeCount += 1
    let version = try transaction.set(theirs, key, in: collection, author: record.writer, keepsLoser: true)
    if let local {
      try addConflict(key, collection, local.version, winner: name(record.author), loser: loser ?? me.name)
    }
    return version
  }

  /// - Parameter isConflict: False for a value that this host had itself, most probably.
  private mutating func keepOurs(
    over theirs: FleetValue?, _ record: Record, isConflict: Bool = true
  ) throws -> Int64 {
    guard let theirs else { return StoredRecord.notInStep }
    let version = try transaction.keepLoser(
      theirs, record.key, in: record.collection, modified: record.clock.milliseconds, author: record.writer)
    if isConflict {
      try addConflict(record.key, record.collection, version, winner: me.name, loser: name(record.author))
    }
    return StoredRecord.notInStep
  }

  mutating func addConflict(
    _ key: String, _ collection: String, _ version: CommitNumber, winner: String, loser: String,
    losing declaration: SharedDeclaration? = nil
  ) throws {
    conflictCount += 1
    try transaction.addConflict(
      key, in: collection, version: version, winner: winner, loser: loser, of: fleet, losing: declaration)
  }

  func name(_ member: MemberID) -> String { members.author(member)?.name ?? "a former member" }

  // MARK: Missing records

  mutating func takeAbsence(of row: StoredRecord) throws {
    let (key, collection) = (row.key, row.collection)
    guard let base = base(collection) else { return try transaction.remove(row, of: fleet) }
    let local = try transaction.state(of: key, in: collection)
    if isLeft(to: row, isChangedHere(local?.version, row)) {
      if row.declaration == nil, local != nil {
        changeCount += 1
        _ = try transaction.set(nil, key, in: collection, author: "", keepsLoser: true)
      }
      return try transaction.remove(row, of: fleet)
    }
    if !hasForgotten(collection) {
      if row.isAbsent(at: now), base.wentBack != nil {
        // The fleet has forgotten it.
      } else if let wentBack = base.wentBack, !base.isJoining {
        throw wentBack
      } else {
        // The carrier has lost it. Push it again.
        var row = row
        if row.version >= 0 { row.version = StoredRecord.lost(row.version) }
        row.digest = []
        return try transaction.save(row, of: fleet)
      }
    }
    if row.declaration == nil, !row.isAbsent(at: now), let local {
      // It was removed, and the removal forgotten.
      let isUnseen = base.wentBack == nil || row.lostVersion != nil || isChangedHere(local.version, row)
      changeCount += 1
      _ = try transaction.set(nil, key, in: collection, author: "", keepsLoser: isUnseen)
      if isUnseen { try addConflict(key, collection, local.version, winner: "", loser: me.name) }
    }
    try transaction.remove(row, of: fleet)
  }

  /// Removes what the fleet has removed, and forgotten, since this member lost a collection: what it has here unchanged since then.
  mutating func takeForgotten(in collection: String, upTo last: CommitNumber) throws {
    for key in try transaction.keysWithoutRecord(in: collection, of: fleet) {
      guard let local = try transaction.state(of: key, in: collection), local.version <= last else { continue }
      changeCount += 1
      _ = try transaction.set(nil, key, in: collection, author: "", keepsLoser: true)
    }
  }

  // MARK: Reporting

  /// Members with wrong clocks, as sentences.
  var problems: [String] {
    leads.map { member, lead in
      """
      The clock of \(name(member)) is \(lead / 60_000) minutes ahead of this host's: its changes win no conflict. Set the wrong \
      one of the two.
      """
    }.sorted()
  }
}

extension StoredRecord {
  var hybridClock: HybridClock { HybridClock(rawValue: UInt64(bitPattern: clock)) }

  /// Lets what is pushed over this record be above all that others have seen of `earlier`, and no later than it was.
  mutating func raise(above earlier: StoredRecord) {
    guard version < 0 else { return }
    counter = max(counter, earlier.counter)
    if lostVersion != nil { clock = Int64(bitPattern: max(hybridClock, earlier.hybridClock).rawValue) }
  }
}

extension Record {
  func isSameChange(_ row: StoredRecord) -> Bool {
    isSameChange(UInt64(clamping: row.counter), row.hybridClock, MemberID(bytes: row.author))
  }
}
