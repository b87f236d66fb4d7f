import Coffer
import CofferCrypto

extension Fleet {
  /// Applies a state to the store, and records that in the same transaction.
  func apply(
    _ objects: [(place: [UInt8], bytes: [UInt8]?)], _ prepared: PreparedRecords?, _ head: Head, _ view: CarrierView,
    _ membership: Membership, isRollbackAccepted: Bool, _ relation: Relation, _ transaction: FleetTransaction
  ) throws -> Merge {
    // This may run twice, with another membership of the same fleet. The previous state is in `self`.
    var before = self.membership.stored
    let isJoining = before.head.isEmpty
    if isJoining {
      // For the second time, it continues where it was.
      if let left = try transaction.leftFleet(before.fleet) { before = left }
      membership.goOn(from: before)
      try membership.save(transaction)
    } else {
      try checkIsPresent(transaction)
    }
    var lost = try LostCollections(transaction, membership.id)
    if isJoining {
      try lost.follow(from: before, to: membership.members, transaction)
    } else {
      try lost.follow(from: self.membership, to: membership.members, transaction)
    }
    try adoptCollections(of: membership, sinceJoining: isJoining ? before : nil, transaction)
    // Only with all records here can they be merged.
    let agreeing = view.isComplete ? self.agreeing : []
    try Consent.agree(to: agreeing, of: membership.id, transaction)
    let readiness = try Readiness(transaction, membership)
    let consent = readiness.consent
    // The store has not been in step with it: it has no opinion on what it does not know of it.
    func isNew(_ name: String) -> Bool { isJoining || agreeing.contains { $0.utf8.elementsEqual(name.utf8) } }
    try Self.check(consent.agreed, transaction, except: membership.id)
    let taken = readiness.taken(hasAllRecords: view.isComplete)
    let passed = Set(consent.agreed.map(ByteString.init)).subtracting(taken.map(ByteString.init))
    let changes = try changed(objects, prepared, head, view.isComplete, membership, besides: passed, transaction)
    let seen = self.membership.head?.number ?? UInt64(clamping: before.number)
    var backlog = readiness.backlog
    backlog.keep(passed.map(\.string))
    for name in passed.sorted().map(\.string) {
      // Without a change, the store is in step there with this commit, too.
      let folder = membership.members.shared(name)?.folder
      let (old, new) = (folder.flatMap { self.membership.head?.collection($0) }, folder.flatMap(head.collection))
      guard isNew(name) || old == nil || old != new || backlog[name] != nil else { continue }
      backlog.pass(Backlog.Entry(collection: name, commit: seen, relation: relation, isOfJoining: isNew(name)))
    }
    try backlog.save(transaction, of: membership.id)
    membership.take(head, view.head, changes.sets, revision: view.revision.text, synced: transaction.time)
    let bases = taken.map { name in
      let entry = readiness.backlog[name]
      let horizon = (membership.members.shared(name)?.folder).flatMap(head.collection)?.horizon ?? 0
      let descent = max(entry?.relation ?? .following, relation)
      return Merge.Base(
        collection: name, isJoining: isNew(name) || (entry?.isOfJoining ?? false), relation: descent,
        isForgetful: horizon > min(entry?.commit ?? seen, lost[name]?.commit ?? .max),
        wentBack: isRollbackAccepted || descent != .following
          ? nil : .forked(seen: self.membership.seen, found: head.number),
        lost: lost[name])
    }
    var merge = try Merge(
      transaction: transaction, fleet: membership.id, before: before, members: membership.members, me: membership.me,
      agreed: consent.agreed, isJoining: isJoining, bases: bases)
    let records = try opened(changes.present, prepared, head, membership)
    for (record, place, digest) in records { try merge.take(record, at: place, digest: digest) }
    // By key: under a new key they have other names.
    for row in changes.absent where try isStillNamed(row, membership.id, transaction) {
      try merge.takeAbsence(of: row)
    }
    for base in bases where base.isForgetful {
      if let entry = base.lost { try merge.takeForgotten(in: base.collection, since: entry) }
    }
    lost.remove(taken)
    try lost.save(transaction, of: membership.id)
    if merge.recoveredCount > 0 {
      try Twin.find(
        on: merge.recoveredHosts, isFollowing: relation == .following, transaction, of: membership.id,
        membership.members)
    }
    try merge.letNamesFollow()
    for application in merge.declaringApplications.sorted() { transaction.noteDeclarations(of: application) }
    // What the carrier has lost, or lacks in a collection that is new here, may be an old change.
    let resumes = taken.contains { readiness.backlog[$0] != nil }
    if isRollbackAccepted || relation != .following || !agreeing.isEmpty || resumes { membership.setPushed(-1) }
    try membership.save(transaction)
    return merge
  }

  /// Adopts the collections that a membership shares: what is no longer shared has left the carrier, and is new if it is shared again.
  ///
  /// - Parameter stored: What the store knew of the fleet as its host joined; nil if it joined before.
  private func adoptCollections(
    of membership: Membership, sinceJoining stored: StoredFleet?, _ transaction: FleetTransaction
  ) throws {
    let (members, known) = (membership.members, self.membership.members)
    let new =
      try stored.map { members.collections(newSince: try Authority(verified: $0.authority).version) }
      ?? members.collections(newSince: known)
    guard stored != nil || !new.isEmpty || members.collections != known.collections else { return }
    try transaction.removeRecords(of: membership.id, notIn: members.collections)
    for name in new { try transaction.removeRecords(in: name, of: membership.id) }
    try Consent.adopt(members, new: stored == nil ? new : [], of: membership.id, transaction)
  }

  private typealias OpenedRecord = (record: Record, place: [UInt8], digest: [UInt8])

  /// Opens records, and checks who wrote them.
  ///
  /// - Returns: The records in key order, not in name order, so that the store's pages fill one after another.
  private func opened(
    _ present: [(place: [UInt8], bytes: [UInt8], digest: [UInt8])], _ prepared: PreparedRecords?, _ head: Head,
    _ membership: Membership
  ) throws -> [OpenedRecord] {
    var authors = AuthorCheck(membership.members, in: membership.authority.fleet)
    let records = try present.map { place, bytes, digest -> OpenedRecord in
      let opened = prepared?.records[place]?.record
      let record = try opened ?? Record(opening: bytes, at: place, membership.keys)
      if opened == nil { try authors.check(record, FleetKeys.object(place)) }
      try record.checkCounter(at: place, head)
      return (record, place, digest)
    }
    return records.sorted { ($0.record.collection, $0.record.key) < ($1.record.collection, $1.record.key) }
  }

  /// Refuses to continue if another program has synced the store, or left the fleet.
  func checkIsPresent(_ transaction: FleetTransaction) throws {
    guard let present = try transaction.fleets().first(where: { $0.id == membership.stored.id }) else {
      throw FleetError.notJoined
    }
    guard present.number == membership.stored.number, present.head == membership.stored.head else { throw Overtaken() }
  }

  private func isStillNamed(_ row: StoredRecord, _ fleet: Int64, _ transaction: FleetTransaction) throws -> Bool {
    let present =
      row.declaration == nil
      ? try transaction.record(row.key, in: row.collection, of: fleet)
      : try transaction.declaration(row.key, in: row.collection, of: fleet)
    return present?.name == row.name
  }

  private struct Changed {
    /// Of this member's collections, by folder.
    var sets: [[UInt8]: RecordSet] = [:]
    var present: [(place: [UInt8], bytes: [UInt8], digest: [UInt8])] = []
    var absent: [StoredRecord] = []
  }

  /// The records that differ from what the store knows, after verifying all of them against the signed head.
  ///
  /// - Parameter passed: The collections that the store is not ready for, which stay as they are.
  private func changed(
    _ objects: [(place: [UInt8], bytes: [UInt8]?)], _ prepared: PreparedRecords?, _ head: Head, _ isComplete: Bool,
    _ membership: Membership, besides passed: Set<ByteString>, _ transaction: FleetTransaction
  ) throws -> Changed {
    var changed = Changed()
    var counts: [[UInt8]: UInt64] = [:]
    let collections = membership.keys.collections.filter { !passed.contains(ByteString($0.name)) }
    let folders = Set(collections.map(\.folder))
    for folder in membership.keys.collections.map(\.folder) where !folders.contains(folder) {
      changed.sets[folder] = self.membership.sets[folder]
    }
    for folder in folders {
      changed.sets[folder] = isComplete ? prepared?.sets[folder] : self.membership.sets[folder]
      counts[folder] = isComplete ? 0 : self.membership.head?.collection(folder)?.recordCount
    }
    var changes: [[UInt8]: [UInt8]?] = [:]
    var rows: [[UInt8]: StoredRecord] = [:]
    if isComplete {
      for row in try transaction.records(of: membership.id) where !passed.contains(ByteString(row.collection)) {
        rows[row.name] = row
      }
    } else {
      for object in objects where folders.contains(FleetKeys.folder(of: object.place)) {
        rows[object.place] = try transaction.record(named: object.place, of: membership.id)
      }
    }
    for (place, bytes) in objects where folders.contains(FleetKeys.folder(of: place)) {
      let folder = FleetKeys.folder(of: place)
      let row = rows.removeValue(forKey: place)
      let digest = try prepared?.records[place]?.digest ?? bytes.map { try $0.digest }
      if !isComplete {
        if let row, row.digest == digest { continue }
        if let row, !row.digest.isEmpty { counts[folder, default: 0] &-= 1 }
      }
      changes[place] = .some(digest)
      guard let bytes, let digest else {
        if let row { changed.absent.append(row) }
        continue
      }
      counts[folder, default: 0] += 1
      if row?.digest != digest { changed.present.append((place, bytes, digest)) }
    }
    if !isComplete {
      try RecordSet.update(&changed.sets, changes) {
        try transaction.digests(ofNamesBeginningWith: $0, of: membership.id)
      }
    } else if prepared == nil {
      let sets = try RecordSet.sets(changes.lazy.compactMap { change in change.value.map { (change.key, $0) } })
      changed.sets.merge(sets) { $1 }
    }
    // The store knows what the carrier has lost.
    if isComplete { changed.absent += rows.values.filter { !$0.digest.isEmpty } }
    try Self.verify(&changed.sets, counts, of: collections.map(\.folder), against: head)
    return changed
  }

  /// Compares the records of each collection, by their number and their digest, with what the head has signed.
  private static func verify(
    _ sets: inout [[UInt8]: RecordSet], _ counts: [[UInt8]: UInt64], of folders: [[UInt8]], against head: Head
  ) throws {
    for folder in folders {
      let set = sets[folder] ?? RecordSet()
      sets[folder] = set
      guard let expected = head.collection(folder), counts[folder] ?? 0 == expected.recordCount,
        ConstantTime.isEqual(try set.digest, expected.setDigest)
      else {
        throw FleetError.damaged(
          object: Head.object, reason: "the records do not match its commit \(head.number)")
      }
    }
  }
}
