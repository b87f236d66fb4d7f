import Coffer
import CofferCrypto

extension Fleet {
  /// Another program has synced the store meanwhile, so start again.
  struct Overtaken: Error {}

  /// Pulls the carrier's state.
  ///
  /// - Parameters:
  ///   - isRollbackAccepted: Whether the carrier may have less than this host has seen.
  ///   - comparesAll: Whether to read all records even if the head is the one last seen.
  /// - Returns: What was taken; nil if there is nothing new.
  @discardableResult
  func pull(
    isRollbackAccepted: Bool = false, comparesAll: Bool = false, report: inout SyncReport
  ) async throws -> CarrierView? {
    let readsAll = isRollbackAccepted || comparesAll
    var attempt = 0
    while true {
      attempt += 1
      let head = try await currentHead()
      guard head != membership.stored.head || readsAll else { return nil }
      do {
        let view = try await view(upTo: head, isComplete: readsAll || attempt > 1)
        return try await take(view, isRollbackAccepted: isRollbackAccepted, report: &report)
      } catch let error as FleetError where attempt < 3 && Self.mayRead(error) {
        // Something changed during the read, or changes were missed. Read everything next time.
        continue
      }
    }
  }

  /// Reads the head, and refuses one from before an admin has changed the members: a former member may have put it there.
  func currentHead() async throws -> [UInt8] {
    let version = membership.members.version
    for _ in 0..<3 {
      let objects = try await carrier.read([Head.object, Authority.object(version + 1)])
      guard let head = objects.first(where: { $0.name == Head.object })?.bytes else {
        throw FleetError.rolledBack(seen: membership.seen, found: nil)
      }
      // They may have been changed between the two.
      if try objects.count == 1 || Head.membersVersion(of: head) > version { return head }
    }
    throw FleetError.damaged(object: Head.object, reason: "it was made under members that an admin has replaced")
  }

  static func isRollback(_ error: any Error) -> Bool {
    switch error as? FleetError {
    case .rolledBack, .forked: true
    default: false
    }
  }

  private static func mayRead(_ error: FleetError) -> Bool { if case .damaged = error { true } else { false } }

  private func view(upTo head: [UInt8], isComplete: Bool) async throws -> CarrierView {
    if !isComplete, let revision = membership.stored.revision,
      let view = try await CarrierView.read(carrier, after: CarrierRevision(text: revision), upTo: head)
    {
      return view
    }
    let opened = try await opened(head)
    let bound = CarrierBound(opened.head, opened.membership.keys)
    guard let view = try await CarrierView.readAll(carrier, bound, Preparation(opened.membership)) else {
      throw FleetError.rolledBack(seen: membership.seen, found: nil)
    }
    return view
  }

  /// Applies a state of the carrier, whole or not at all.
  ///
  /// - Returns: What was applied: all, if only changes were read, and all were needed.
  @discardableResult
  func take(
    _ view: CarrierView, isRollbackAccepted: Bool = false, report: inout SyncReport
  ) async throws -> CarrierView {
    let opened = try await opened(view.head)
    let (membership, head) = (opened.membership, opened.head)
    let relation: Relation
    do {
      relation = try await self.relation(of: opened, view.head, view.objects)
    } catch  where isRollbackAccepted && Self.isRollback(error) {
      relation = .unrelated
    }
    // Under another key, all objects of a collection have other names.
    let known = self.membership.keys
    guard view.isComplete || membership.keys.collections.allSatisfy({ known.has(folder: $0.folder) }) else {
      guard let all = try await CarrierView.readAll(carrier, CarrierBound(head, membership.keys)) else {
        throw FleetError.rolledBack(seen: self.membership.seen, found: nil)
      }
      return try await take(all, isRollbackAccepted: isRollbackAccepted, report: &report)
    }

    var objects: [(place: [UInt8], bytes: [UInt8]?)] = view.objects.compactMap { name, bytes in
      membership.keys.place(ofObject: name).map { ($0, bytes) }
    }
    if !head.pieces.isEmpty {
      var changes = Dictionary(uniqueKeysWithValues: objects.map { ($0.place, $0.bytes) })
      for change in try await pieces(of: head, membership.keys)
      where membership.keys.has(folder: FleetKeys.folder(of: change.place)) {
        changes[change.place] = .some(change.record)
      }
      objects = changes.map { ($0.key, $0.value) }
    }
    // Pieces override the records that were read.
    let isPrepared = head.pieces.isEmpty && view.prepared?.folders == membership.keys.collections.map(\.folder)
    let prepared = isPrepared ? view.prepared : nil
    if membership.stored.head.isEmpty { try await claim(membership) }
    try onStep(.willApply)
    let outcome = try connection.writeFleets { transaction in
      try self.apply(
        objects, prepared, head, view, membership, isRollbackAccepted: isRollbackAccepted, relation, transaction)
    }
    note(view.head)
    self.membership = membership
    report.clockProblems = outcome.problems
    report.pulledCount += outcome.changeCount
    report.conflictCount += outcome.conflictCount
    report.recoveredCount += outcome.recoveredCount
    try onStep(.didApply)
    return view
  }

  /// Refuses a head that does not follow the one that was seen.
  func checkSuccession(_ bytes: [UInt8]) async throws { _ = try await relation(of: try await opened(bytes), bytes) }

  /// A head, and the membership under which it was made.
  private struct Opened {
    let membership: Membership
    let head: Head
    /// The head on which an admin changed the members, if they have been changed since the last head that was seen.
    let base: Authority.Base?

    var author: String { membership.members[head.author]?.name ?? "" }
  }

  private func opened(_ bytes: [UInt8]) async throws -> Opened {
    let (membership, base) = try await acceptedMembership(for: bytes)
    let head = try Head(
      opening: bytes, membership.keys, members: membership.members, authority: membership.authorityDigest)
    return Opened(membership: membership, head: head, base: base)
  }

  /// The membership under which a head was made: this one, or a later version.
  private func acceptedMembership(for head: [UInt8]) async throws -> (Membership, Authority.Base?) {
    let version = try Head.membersVersion(of: head)
    guard version >= membership.members.version else {
      throw FleetError.rolledBack(seen: membership.seen, found: nil)
    }
    guard version > membership.members.version else {
      return (try Membership(membership.stored, isHeadOpened: false), nil)
    }
    let chain = try await AuthorityChain.read(
      from: carrier, after: membership.authority, membership.stored.authority)
    let later = try Membership(membership.stored, isHeadOpened: false)
    try later.take(chain.authority, chain.bytes, members: chain.members)
    return (later, chain.base)
  }

  /// How a state of the carrier relates to what this store is in step with.
  enum Relation {
    case following
    /// An admin has changed the members over a head from before this store's: the commits since do not count.
    case cutOff
    /// It does not follow, and someone has accepted that.
    case unrelated
  }

  /// Refuses a head that does not follow the one that was seen.
  ///
  /// - Parameter objects: Objects of the carrier that have been read already.
  private func relation(
    of opened: Opened, _ bytes: [UInt8], _ objects: [String: [UInt8]?] = [:]
  ) async throws -> Relation {
    let (seen, known, log) = (membership.seen, membership.stored.head, opened.head.log)
    guard let last = membership.head, bytes != known else { return .following }
    func has(_ digest: [UInt8], at index: UInt64) async throws -> Bool {
      var blocks: [String: [UInt8]] = [:]
      for name in log.proof(at: index) { blocks[name] = objects[name] ?? nil }
      let unread = log.proof(at: index).filter { blocks[$0] == nil }
      if !unread.isEmpty { for object in try await carrier.read(unread) { blocks[object.name] = object.bytes } }
      return try log.has(digest, at: index, by: blocks)
    }
    if try await has(known.digest, at: last.log.count) {
      // Of collections that this host does not have it knows no more than what was signed, and that it does not go back.
      for collection in opened.head.collections {
        guard last.collection(collection.folder).map(collection.follows) ?? true else {
          throw FleetError.damaged(
            object: Head.object,
            reason: "its author, \(opened.author), has put back a collection of others, or committed after one who had")
        }
      }
      return .following
    }
    // All heads under the later members come after that one.
    if let base = opened.base, try await has(base.head, at: base.index) { return .cutOff }
    guard opened.head.number >= seen else { throw FleetError.rolledBack(seen: seen, found: opened.head.number) }
    throw FleetError.forked(seen: seen, found: opened.head.number)
  }

  /// The changes in the pieces of a commit.
  func pieces(of head: Head, _ keys: FleetKeys) async throws -> [Piece.Change] {
    guard !head.pieces.isEmpty else { return [] }
    let names = head.pieces.map { Piece.object($0.id, keys) }
    let objects = Dictionary(
      try await carrier.read(names).map { ($0.name, $0.bytes) }, uniquingKeysWith: { first, _ in first })
    return try zip(head.pieces, names).flatMap { piece, name in
      guard let bytes = objects[name], ConstantTime.isEqual(try bytes.digest, piece.digest) else {
        throw FleetError.damaged(object: name, reason: "it does not match the head")
      }
      let changes = try Piece.changes(in: bytes, name)
      // What its author may not write is as it was.
      guard changes.allSatisfy({ head.collection(FleetKeys.folder(of: $0.place))?.number == head.number }) else {
        throw FleetError.damaged(object: name, reason: "it changes a collection that its commit leaves as it is")
      }
      return changes
    }
  }

  /// Applies a state to the store, and records that in the same transaction.
  private func apply(
    _ objects: [(place: [UInt8], bytes: [UInt8]?)], _ prepared: PreparedRecords?, _ head: Head, _ view: CarrierView,
    _ membership: Membership, isRollbackAccepted: Bool, _ relation: Relation, _ transaction: FleetTransaction
  ) throws -> Merge {
    // This may run twice, with another membership of the same fleet. The previous state is in `self`.
    var before = self.membership.stored
    let isJoining = before.head.isEmpty
    if isJoining {
      // For the second time, it continues where it was.
      if let left = try transaction.leftFleet(before.fleet) { before = left }
      membership.setID(before.id)
      try membership.save(transaction)
    } else {
      try checkIsPresent(transaction)
    }
    try adoptCollections(of: membership, sinceJoining: isJoining ? before : nil, transaction)
    // Only with all records here can they be merged.
    let agreeing = view.isComplete ? self.agreeing : []
    try Consent.agree(to: agreeing, of: membership.id, transaction)
    let consent = try Consent(transaction, membership.id, membership.members)
    try Self.check(consent.agreed, transaction, except: membership.id)
    let changes = try changed(objects, prepared, head, view.isComplete, membership, transaction)
    membership.take(head, view.head, changes.sets, revision: view.revision.text, synced: transaction.time)
    let seen = self.membership.head?.number ?? UInt64(clamping: before.number)
    var merge = try Merge(
      transaction: transaction, fleet: membership.id, before: before, members: membership.members, me: membership.me,
      consent: consent, isJoining: isJoining, agreeing: agreeing,
      forgetful: membership.keys.collections.filter { keys in
        head.collection(keys.folder).map { $0.horizon > seen } ?? false
      }.map(\.name),
      wentBack: isRollbackAccepted || relation == .cutOff
        ? nil : .forked(seen: self.membership.seen, found: head.number),
      relation: relation)
    let records = try opened(changes.present, prepared, membership)
    for (record, place, digest) in records { try merge.take(record, at: place, digest: digest) }
    // By key: under a new key they have other names.
    for row in changes.absent where try isStillNamed(row, membership.id, transaction) {
      try merge.takeAbsence(of: row)
    }
    if merge.recoveredCount > 0 {
      try Twin.find(
        on: merge.recoveredHosts, isFollowing: relation == .following, transaction, of: membership.id,
        membership.members)
    }
    try merge.letNamesFollow()
    for application in merge.declaringApplications.sorted() { transaction.noteDeclarations(of: application) }
    // What the carrier has lost, or lacks in a collection that is new here, may be an old change.
    if isRollbackAccepted || relation != .following || !agreeing.isEmpty { membership.setPushed(-1) }
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
    _ present: [(place: [UInt8], bytes: [UInt8], digest: [UInt8])], _ prepared: PreparedRecords?,
    _ membership: Membership
  ) throws -> [OpenedRecord] {
    var authors = AuthorCheck(membership.members, in: membership.authority.fleet)
    let records = try present.map { place, bytes, digest -> OpenedRecord in
      if let opened = prepared?.records[place]?.record { return (opened, place, digest) }
      let record = try Record(opening: bytes, at: place, membership.keys)
      try authors.check(record, FleetKeys.object(place))
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
  private func changed(
    _ objects: [(place: [UInt8], bytes: [UInt8]?)], _ prepared: PreparedRecords?, _ head: Head, _ isComplete: Bool,
    _ membership: Membership, _ transaction: FleetTransaction
  ) throws -> Changed {
    var changed = Changed()
    var counts: [[UInt8]: UInt64] = [:]
    for folder in membership.keys.collections.map(\.folder) {
      changed.sets[folder] = isComplete ? prepared?.sets[folder] : self.membership.sets[folder]
      counts[folder] = isComplete ? 0 : self.membership.head?.collection(folder)?.recordCount
    }
    var changes: [[UInt8]: [UInt8]?] = [:]
    var rows: [[UInt8]: StoredRecord] = [:]
    if isComplete {
      for row in try transaction.records(of: membership.id) { rows[row.name] = row }
    } else {
      for object in objects { rows[object.place] = try transaction.record(named: object.place, of: membership.id) }
    }
    for (place, bytes) in objects {
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
      changed.sets = try RecordSet.sets(changes.lazy.compactMap { change in change.value.map { (change.key, $0) } })
    }
    // The store knows what the carrier has lost.
    if isComplete { changed.absent += rows.values.filter { !$0.digest.isEmpty } }
    try Self.verify(&changed.sets, counts, against: head, membership)
    return changed
  }

  /// Compares the records of each collection, by their number and their digest, with what the head has signed.
  private static func verify(
    _ sets: inout [[UInt8]: RecordSet], _ counts: [[UInt8]: UInt64], against head: Head, _ membership: Membership
  ) throws {
    for folder in membership.keys.collections.map(\.folder) {
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
