import Coffer
import CofferCrypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A member of a fleet.
public struct FleetMember: Sendable, Hashable {
  /// Its name.
  public let name: String
  /// Its role.
  public let role: FleetRole
  /// Whether a host has joined with its invitation.
  public let standing: FleetStanding
  /// When it was invited.
  public let invited: Date
  /// Whether it is this store.
  public let isThisStore: Bool
  /// Whether it has all collections, and those that are shared later.
  public let hasAllCollections: Bool
  /// Those of its collections that this store has, too.
  public let collections: [String]
}

extension Fleet {
  /// The members known to this host.
  public var members: [FleetMember] {
    membership.members.members.map {
      FleetMember(
        name: $0.name, role: $0.role, standing: $0.standing, invited: Self.date($0.created),
        isThisStore: $0.id == membership.identity.member, hasAllCollections: $0.access == .all,
        collections: membership.members.collections(of: $0))
    }
  }

  /// Adds a member, and returns its invitation, which is a secret.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - collections: Those that it gets the keys of; nil for all, and those that are shared later. Of others it learns how many there are.
  ///   - expires: When the invitation expires; nil for never. A host has to have joined by then, and an admin's host has to have seen that.
  ///   - isForMany: Whether any number of hosts may read with it, as with one that an image of a machine has. Then no host replaces its
  ///     keys, and only removing the member ends it.
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin, `.memberExists`, `.badName`, `.manyMayOnlyRead`, `.adminsHaveAll`,
  ///   `.collectionNotShared`; what ``sync()`` throws.
  public func invite(
    _ name: String, role: FleetRole, collections: [String]? = nil, expires: Date? = nil, isForMany: Bool = false
  ) async throws -> Invitation {
    try Members.check(name: name)
    guard !isForMany || role == .reader else { throw FleetError.manyMayOnlyRead }
    guard collections == nil || role != .admin else { throw FleetError.adminsHaveAll }
    let fleet = membership.stored.fleet
    let identity = try Identity.make(fleet: fleet)
    try await change { members, now in
      guard members.member(named: name) == nil else { throw FleetError.memberExists(name: name) }
      members.members.append(
        Members.Member(
          id: identity.member, name: name, role: role, standing: isForMany ? .many : .invited,
          access: try collections.map(members.access(to:)) ?? .all, signingKey: identity.signingKey,
          publicKey: identity.publicKey, created: now,
          joinsBefore: expires.map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) } ?? 0))
      return false
    }
    return Invitation(
      carrier: carrier.description, expires: expires, fleet: fleet, firstAuthority: membership.stored.firstAuthority,
      version: membership.members.version, member: identity.member, seed: identity.seed)
  }

  /// Sets which collections a member has.
  ///
  /// What it gets waits on its host for ``accept(collections:)``. What it loses stays there, and gets a new key: its keys open nothing of
  /// that which is written after this returns.
  ///
  /// - Parameter collections: Nil for all, and those that are shared later.
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin, `.memberNotFound`, `.adminsHaveAll`, `.collectionNotShared`;
  ///   what ``sync()`` throws.
  public func setCollections(_ collections: [String]?, of name: String) async throws {
    try await change { members, _ in
      guard let index = members.members.firstIndex(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
        throw FleetError.memberNotFound(name: name)
      }
      guard collections == nil || members.members[index].role != .admin else { throw FleetError.adminsHaveAll }
      let (earlier, access) = (members.members[index].access, try collections.map(members.access(to:)) ?? .all)
      members.members[index].access = access
      try members.renew { earlier.includes($0.folder) && !access.includes($0.folder) }
      return false
    }
  }

  /// Removes a member.
  ///
  /// Its keys open nothing that is written after this returns: the fleet and the member's collections get new keys, and all records are
  /// sealed under them.
  ///
  /// A state that cannot be verified, or does not follow, does not prevent it: the member may have put it there. It is cut off, as far back as
  /// this host has verified, and other hosts push their changes since then again. Records that are missing or damaged themselves are
  /// written again as this store has them; only in a collection that it has not taken, as its vault is locked, do they prevent it.
  ///
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin, `.memberNotFound`, `.lastAdmin`; what
  ///   ``sync()`` throws. The member then stays.
  public func remove(_ name: String) async throws {
    try await change(cutsDamageOff: true) { members, _ in
      guard let member = members.member(named: name) else { throw FleetError.memberNotFound(name: name) }
      try members.remove(member)
      guard !members.adminKeys.isEmpty else { throw FleetError.lastAdmin }
      return true
    }
  }

  /// Creates new keys of the fleet and of all collections, and seals all records under them: after a host was lost and its member removed, or in
  /// any doubt.
  ///
  /// As ``remove(_:)``, it cuts off a state that cannot be verified.
  ///
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin; what ``sync()`` throws.
  public func renewKey() async throws {
    try await change(cutsDamageOff: true) { members, _ in
      try members.renew { _ in true }
      return true
    }
  }

  /// Sets the shared collections.
  ///
  /// Members that were invited to all collections get an added one, and its contents are merged from all hosts that accept it, see
  /// ``accept(collections:)``. Those of a dropped one stay on each host, and leave the carrier; shared again, it has another key.
  ///
  /// An added one that is sealed here is sealed in the fleet, see ``seal(collections:)``.
  ///
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin, `.collectionShared`; what ``sync()`` throws.
  public func share(collections: [String]) async throws {
    let names = Array(Set(collections.map(ByteString.init))).sorted().map(\.string)
    let sealed = try connection.readFleets { transaction in
      try Self.check(names, transaction, except: membership.id)
      return try Self.sealedHere(names, transaction)
    }
    try await change { members, _ in
      try members.share(names, from: members.version + 1) { sealed.contains(ByteString($0)) }
      return false
    }
    try await sync()
  }

  /// Agrees to collections that were shared after this host joined: from then on it takes and gives their contents.
  ///
  /// They wait until then, see ``FleetStatus/waits``. On the host of the admin who shares them they do not.
  ///
  /// - Throws: ``FleetError/collectionNotWaiting(_:)``, `.collectionShared`; what ``sync()`` throws.
  @discardableResult
  public func accept(collections: [String]) async throws -> SyncReport {
    try await turns.take {
      try await reporting {
        var report = SyncReport()
        try await pull(report: &report)
        try connection.readFleets { transaction in
          let waiting = try Consent(transaction, membership.id, membership.members).waiting
          for name in collections where !waiting.contains(where: { $0.utf8.elementsEqual(name.utf8) }) {
            throw FleetError.collectionNotWaiting(name)
          }
          try Self.check(collections, transaction, except: membership.id)
        }
        agreeing = collections
        defer { agreeing = [] }
        try await pull(comparesAll: true, report: &report)
        agreeing = []
        try await exchange(&report)
        return report
      }
    }
  }

  /// Publishes other members.
  ///
  /// - Parameters:
  ///   - cutsDamageOff: Whether to go on from the state that this host is in step with if the carrier's cannot be verified.
  ///   - body: Gets the current members and the time, and changes them; returns whether a new fleet key is needed. Those of collections
  ///     are renewed by other folders.
  func change(cutsDamageOff: Bool = false, _ body: (inout Members, Int64) throws -> Bool) async throws {
    do {
      try await sync()
    } catch  where cutsDamageOff && Self.mayCutOff(error) {
      // It is read again below.
    }
    try await turns.take {
      try await edit(cutsDamageOff: cutsDamageOff, body)
      set(try standing())
    }
  }

  /// How often to try to publish members as any other commit.
  ///
  /// Then no commit of others is waited for: a member could keep an admin from removing it.
  private static let politeAttemptCount = 5

  /// Publishes other members, in a turn.
  ///
  /// Modelled in `Documentation/Models/FleetEpoch.pml`.
  func edit(cutsDamageOff: Bool = false, _ body: (inout Members, Int64) throws -> Bool) async throws {
    var report = SyncReport()
    for attempt in 0..<Self.attemptCount {
      let isPolite = attempt < Self.politeAttemptCount
      if attempt > 0 { try await Self.pause(after: attempt) }
      let view: CarrierView?
      do {
        view = try await pull(comparesAll: !isPolite, report: &report)
      } catch  where cutsDamageOff && Self.mayCutOff(error) {
        if isPolite { continue }
        view = try await verifiedView(behind: error)
      }
      guard membership.mayManage else { throw FleetError.notAllowed(role: membership.me.role) }
      if isPolite { guard try await settleEarlier() else { continue } }
      let now = try connection.readFleets { $0.time }
      var members = membership.members
      // What others commit meanwhile stays in the old folder.
      let needsNewKey = try body(&members, now) || !isPolite
      if !isPolite { try members.renew { _ in true } }
      members.version += 1
      let edition = try MembersEdition(members, after: membership, hasNewKey: needsNewKey, time: now)
      guard edition.membersBytes.count <= pieceByteCount else {
        throw FleetError.tooLarge(
          object: "The list of members", byteCount: edition.membersBytes.count, limit: pieceByteCount)
      }
      do {
        if try await publish(edition, over: isPolite ? nil : view) { return }
      } catch is Overtaken {
        try reload()
      } catch  where isPolite && cutsDamageOff && Self.mayCutOff(error) {
        // Next time it goes on from what this store knows.
      }
    }
    throw FleetError.busy
  }

  /// Replaces members and head together; for the new key of a collection, seals its records under it in an unused folder first.
  ///
  /// Modelled in `Documentation/Models/FleetEpoch.pml`.
  ///
  /// - Parameter view: All of the state with which this store is in step, to replace also a head that has followed since; nil to do nothing then.
  private func publish(_ edition: MembersEdition, over view: CarrierView?) async throws -> Bool {
    let old = membership
    let condition = try view == nil ? old.condition : await unpublishedCondition()
    let next = try Membership(old.stored)
    try next.take(edition.authority, edition.authorityBytes, members: edition.membersBytes)
    var present = view
    if present == nil, let head = old.head, next.members.shared.map(\.folder) != old.members.shared.map(\.folder) {
      present = try await CarrierView.readAll(carrier, CarrierBound(head, old.keys))
    }
    guard let resealed = try await reseal(from: old, to: next, present, if: condition) else { return false }
    let now = try connection.readFleets { $0.time }
    // It follows the current head.
    let following = try next.nextHead(Self.collections(resealed, from: old, to: next), time: now)
    let bytes = try following.head.sealed(next.keys, by: next.identity)
    try await onStep(.willCommit)
    let changes = edition.changes + following.blocks + [.put(CarrierObject(name: Head.object, bytes: bytes))]
    guard try await carrier.commit(changes, if: condition) else { return false }
    try await onStep(.didCommit)
    next.take(following.head, bytes, following.sets, synced: now)
    note(bytes)
    do {
      try save(next, after: old, resealed)
      membership = next
    } catch is Overtaken {
      // It is committed, and another program of this host has taken it, or the next sync does.
      try reload()
      return true
    }
    try await onStep(.didAcknowledge)
    if let present { try await removeRemains(in: present) }
    return true
  }

  /// Records in the store that a change of the members is committed.
  private func save(_ next: Membership, after old: Membership, _ resealed: [Resealed]) throws {
    try connection.writeFleets { transaction in
      try checkIsPresent(transaction)
      if next.members.collections != old.members.collections {
        try transaction.removeRecords(of: old.id, notIn: next.members.collections)
        // Who shares a collection agrees to it.
        try Consent.adopt(next.members, new: [], of: old.id, transaction)
      }
      var backlog = try Backlog(transaction, old.id)
      backlog.keep(next.members.collections)
      try backlog.save(transaction, of: old.id)
      // What was passed over stays as the store was in step with it.
      for record in resealed where backlog[record.collection] == nil {
        guard var row = try record.own ?? transaction.record(named: record.earlier, of: old.id) else { continue }
        (row.name, row.digest) = (record.place, record.digest)
        try transaction.save(row, of: old.id)
      }
      try next.save(transaction)
    }
  }

  /// A record under the new key of its collection.
  private struct Resealed {
    let collection: String
    /// Its place under the earlier key, and under the new one.
    let earlier: [UInt8]
    let place: [UInt8]
    let object: CarrierObject
    let digest: [UInt8]
    /// What the store knows of it if this host has written it again.
    var own: StoredRecord?
  }

  /// What the head has of the collections with new keys, by folder.
  private static func collections(
    _ resealed: [Resealed], from old: Membership, to next: Membership
  ) throws -> [[UInt8]: Membership.CollectionChange] {
    let records = Dictionary(grouping: resealed) { FleetKeys.folder(of: $0.place) }
    var changes: [[UInt8]: Membership.CollectionChange] = [:]
    for shared in next.members.shared where !old.keys.has(folder: shared.folder) {
      let records = records[shared.folder] ?? []
      changes[shared.folder] = Membership.CollectionChange(
        set: try RecordSet(records.lazy.map { (CollectionKeys.name(of: $0.place), $0.digest) }),
        recordCount: UInt64(records.count),
        horizon: shared.name.flatMap(old.members.shared).flatMap { old.head?.collection($0.folder)?.horizon })
    }
    return changes
  }

  /// Seals the records of collections with new keys under these, in new folders that no head refers to yet.
  ///
  /// These are the records under the verified head, not all that the carrier lists: what is sealed here is signed, and others accept it.
  ///
  /// - Parameter view: All of a state of the carrier; nil if no collection has a new key.
  /// - Returns: The new records; nil if another member has committed meanwhile.
  private func reseal(
    from old: Membership, to next: Membership, _ view: CarrierView?, if condition: CarrierCondition
  ) async throws -> [Resealed]? {
    let renewed = next.keys.collections.filter { keys in
      !old.keys.has(folder: keys.folder) && old.keys.collection(named: keys.name) != nil
    }
    guard let head = old.head, !renewed.isEmpty else { return [] }
    guard let view, view.head == old.stored.head, let pieces = try await view.isCutOff ? [] : pieces() else {
      return nil
    }
    var objects = view.objects
    for (place, record) in pieces { objects[FleetKeys.object(place)] = .some(record) }
    var verified = try connection.readFleets { transaction in
      try checkIsPresent(transaction)
      let backlog = try Backlog(transaction, old.id)
      let rows = try transaction.records(of: old.id).filter { !$0.digest.isEmpty }
      let records = rows.map { (collection: $0.collection, place: $0.name, digest: $0.digest) }
      return (records: records.filter { backlog[$0.collection] == nil }, passed: backlog.entries.map(\.collection))
    }
    // What the store has not taken is verified only now.
    for name in verified.passed where renewed.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
      verified.records += try Self.verified(objects, in: name, under: head, old)
    }
    var resealed: [Resealed] = []
    for (collection, earlier, digest) in verified.records {
      guard let keys = renewed.first(where: { $0.name.utf8.elementsEqual(collection.utf8) }) else { continue }
      let object = FleetKeys.object(earlier)
      var record: Record
      var own: StoredRecord?
      if let bytes = objects[object] ?? nil, ConstantTime.isEqual(try bytes.digest, digest) {
        // With its author's signature.
        record = try Record(opening: bytes, at: earlier, old.keys)
      } else {
        guard view.isCutOff, let again = try written(earlier, by: next) else {
          throw FleetError.damaged(object: object, reason: "it does not match commit \(old.seen)")
        }
        (record, own) = again
      }
      let place = try record.place(keys)
      let sealed = try record.sealed(keys, at: place)
      resealed.append(
        Resealed(
          collection: collection, earlier: earlier, place: place, object: sealed, digest: try sealed.bytes.digest,
          own: own))
    }
    var rest = resealed.map { CarrierChange.put($0.object) }[...]
    while !rest.isEmpty {
      let request = Array(rest.prefix(64))
      rest = rest.dropFirst(64)
      guard try await make(request, if: condition) else { return nil }
      try await onStep(.didResealSome)
    }
    return resealed
  }

  /// Deletes what the head that this host has just committed does not refer to, of a state of the carrier before that: records under earlier keys,
  /// and remains of commits that were cut off.
  ///
  /// Of what others write for a commit of their own, all that was there before is for one that fails; what they have written since may be for one that
  /// succeeds, and stays.
  private func removeRemains(in view: CarrierView) async throws {
    let folders = Set(membership.members.shared.map { Substring($0.folder.hex) })
    let left = view.objects.keys.filter { name in
      name.hasPrefix("s/") || name.hasPrefix("r/") && !folders.contains(name.dropFirst(2).prefix { $0 != "/" })
    }
    _ = try await make(left.sorted().map { .remove(name: $0) })
  }
}
