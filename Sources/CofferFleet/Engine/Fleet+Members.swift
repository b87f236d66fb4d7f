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
}

/// A setting that was changed concurrently on two hosts, and its outcome.
public struct FleetConflict: Sendable, Hashable {
  /// Its number on this host.
  public let id: Int64
  /// The collection of the setting.
  public let collection: String
  /// The key of the setting.
  public let key: String
  /// The version of the losing value in the history of the key; 0 for a declaration, which has none.
  public let version: Int64
  /// When it was resolved.
  public let time: Date
  /// The member whose value won; empty where the fleet had removed the setting.
  public let winner: String
  /// The member whose value lost.
  public let loser: String
  /// Whether it is about how the setting is declared, not about its value.
  public let isDeclaration: Bool
}

extension Fleet {
  // MARK: Members

  /// The members known to this host.
  public var members: [FleetMember] {
    membership.members.members.map {
      FleetMember(
        name: $0.name, role: $0.role, standing: $0.standing, invited: Self.date($0.created),
        isThisStore: $0.id == membership.identity.member)
    }
  }

  /// Adds a member, and returns its invitation, which is a secret.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - expires: When the invitation expires; nil for never. A host has to have joined by then, and an admin's host has to have seen that.
  ///   - isForMany: Whether any number of hosts may read with it, as with one that an image of a machine has. Then no host replaces its
  ///     keys, and only removing the member ends it.
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin, `.memberExists`, `.badName`, `.manyMayOnlyRead`; what
  ///   ``sync()`` throws.
  public func invite(
    _ name: String, role: FleetRole, expires: Date? = nil, isForMany: Bool = false
  ) async throws -> Invitation {
    try Members.check(name: name)
    guard !isForMany || role == .reader else { throw FleetError.manyMayOnlyRead }
    let fleet = membership.stored.fleet
    let identity = try Identity.make(fleet: fleet)
    try await change { members, now in
      guard members.member(named: name) == nil else { throw FleetError.memberExists(name: name) }
      members.members.append(
        Members.Member(
          id: identity.member, name: name, role: role, standing: isForMany ? .many : .invited,
          signingKey: identity.signingKey, publicKey: identity.publicKey, created: now,
          joinsBefore: expires.map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) } ?? 0))
      return false
    }
    return Invitation(
      carrier: carrier.description, expires: expires, fleet: fleet, firstAuthority: membership.stored.firstAuthority,
      version: membership.members.version, member: identity.member, seed: identity.seed)
  }

  /// Removes a member.
  ///
  /// Its keys open nothing that is written after this returns: the fleet gets a new key, and all records are sealed under it.
  ///
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin, `.memberNotFound`, `.lastAdmin`; what
  ///   ``sync()`` throws. The member then stays.
  public func remove(_ name: String) async throws {
    try await change { members, _ in
      guard let member = members.member(named: name) else { throw FleetError.memberNotFound(name: name) }
      members.remove(member)
      guard !members.adminKeys.isEmpty else { throw FleetError.lastAdmin }
      return true
    }
  }

  /// Creates a new fleet key, and seals all records under it: after a host was lost and its member removed, or in any
  /// doubt.
  ///
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin; what ``sync()`` throws.
  public func renewKey() async throws { try await change { _, _ in true } }

  /// Sets the shared collections.
  ///
  /// The contents of an added one are merged from all hosts that accept it, see ``accept(collections:)``. Those of a dropped one stay on each host, and leave the carrier: the fleet gets a
  /// new key.
  ///
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin, `.collectionSealed`, `.collectionShared`; what
  ///   ``sync()`` throws.
  public func share(collections: [String]) async throws {
    let names = Array(Set(collections.map(ByteString.init))).sorted().map(\.string)
    try connection.readFleets { try Self.check(names, $0, except: membership.id) }
    try await change { members, _ in
      members.share(names, from: members.version + 1)
    }
    try await sync()
  }

  /// Agrees to collections that were shared after this host joined: from then on it takes and gives their contents.
  ///
  /// They wait until then, see ``FleetStatus/waitingCollections``. On the host of the admin who shares them they do not.
  ///
  /// - Throws: ``FleetError/collectionNotWaiting(_:)``, `.collectionSealed`, `.collectionShared`; what ``sync()`` throws.
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
  /// - Parameter body: Gets the current members and the time; returns whether a new fleet key is needed.
  func change(_ body: (inout Members, Int64) throws -> Bool) async throws {
    try await sync()
    try await turns.take {
      try await edit(body)
      set(.inStep)
    }
  }

  /// How often to try to publish members as any other commit.
  ///
  /// Then no commit of others is waited for: a member could keep an admin from removing it.
  private static let politeAttemptCount = 5

  /// Publishes other members, in a turn.
  func edit(_ body: (inout Members, Int64) throws -> Bool) async throws {
    var report = SyncReport()
    for attempt in 0..<Self.attemptCount {
      let isPolite = attempt < Self.politeAttemptCount
      if attempt > 0 { try await Self.pause(after: attempt) }
      let view = try await pull(comparesAll: !isPolite, report: &report)
      guard membership.mayManage else { throw FleetError.notAllowed(role: membership.me.role) }
      if isPolite { guard try await settleEarlier() else { continue } }
      let now = try connection.readFleets { $0.time }
      var members = membership.members
      // What others commit meanwhile stays in the old folder.
      let needsNewKey = try body(&members, now) || !isPolite
      members.version += 1
      let edition = try MembersEdition(members, after: membership, hasNewKey: needsNewKey, time: now)
      guard edition.membersBytes.count <= pieceByteCount else {
        throw FleetError.tooLarge(
          object: "The list of members", byteCount: edition.membersBytes.count, limit: pieceByteCount)
      }
      if try await publish(edition, over: isPolite ? nil : view) { return }
    }
    throw FleetError.busy
  }

  /// Replaces members and head together; for a new key, seals all records under it in an unused folder first.
  ///
  /// - Parameter view: The state with which this store is in step, to replace also a head that has followed since; nil to do nothing then.
  private func publish(_ edition: MembersEdition, over view: CarrierView?) async throws -> Bool {
    let old = membership
    let condition =
      view == nil
      ? old.condition : CarrierCondition(name: Authority.object(edition.authority.version), bytes: nil)
    let next = try Membership(old.stored, isHeadOpened: false)
    try next.take(edition.authority, edition.authorityBytes, members: edition.membersBytes)
    var set = old.set
    var resealed: [(name: [UInt8], object: CarrierObject, digest: [UInt8])] = []
    let hasNewKey = next.keys.epoch != old.keys.epoch
    if hasNewKey {
      guard let all = try await reseal(from: old, to: next, view, if: condition) else { return false }
      resealed = all
      set = try RecordSet(resealed.lazy.map { (next.keys.name(of: $0.object), $0.digest) })
    }
    let now = try connection.readFleets { $0.time }
    let count = hasNewKey ? UInt64(resealed.count) : old.head?.recordCount ?? 0
    // It follows the current head.
    let following = try old.nextHead(set: set, recordCount: count, time: now)
    var head = following.head
    (head.membersVersion, head.authority) = (next.members.version, next.authorityDigest)
    let bytes = try head.sealed(next.keys, by: next.identity)
    try onStep(.willCommit)
    let changes = edition.changes + following.blocks + [.put(CarrierObject(name: Head.object, bytes: bytes))]
    guard try await carrier.commit(changes, if: condition) else { return false }
    try onStep(.didCommit)
    next.take(head, bytes, set, synced: now)
    try connection.writeFleets { transaction in
      try checkIsPresent(transaction)
      if next.members.collections != old.members.collections {
        try transaction.removeRecords(of: old.id, notIn: next.members.collections)
        // Who shares a collection agrees to it.
        try Consent.adopt(next.members, new: [], of: old.id, transaction)
      }
      for record in resealed {
        guard var row = try transaction.record(named: record.name, of: old.id) else { continue }
        (row.name, row.digest) = (next.keys.name(of: record.object), record.digest)
        try transaction.save(row, of: old.id)
      }
      try next.save(transaction)
    }
    note(bytes)
    membership = next
    try onStep(.didAcknowledge)
    if hasNewKey { _ = try await clean() }
    return true
  }

  /// Seals all records under another key, in a new folder that no head refers to yet.
  ///
  /// These are the records under the verified head, not all that the carrier lists: what is sealed here is signed, and others accept it.
  ///
  /// - Returns: The new records by their old names; nil if another member has committed meanwhile.
  private func reseal(
    from old: Membership, to next: Membership, _ view: CarrierView?, if condition: CarrierCondition
  ) async throws -> [(name: [UInt8], object: CarrierObject, digest: [UInt8])]? {
    guard let head = old.head else { return nil }
    var present = view
    if present == nil { present = try await CarrierView.readAll(carrier, CarrierBound(head, old.keys)) }
    guard let view = present, view.head == old.stored.head else { return nil }
    var objects = view.objects
    for (name, record) in try await pieces(of: head, old.keys) { objects[old.keys.object(name)] = .some(record) }
    let verified = try connection.readFleets { transaction in
      try checkIsPresent(transaction)
      return try transaction.records(of: old.id).filter { !$0.digest.isEmpty }
    }
    var resealed: [(name: [UInt8], object: CarrierObject, digest: [UInt8])] = []
    for row in verified {
      let object = old.keys.object(row.name)
      guard let bytes = objects[object] ?? nil, ConstantTime.isEqual(try bytes.digest, row.digest) else {
        throw FleetError.damaged(object: object, reason: "it does not match commit \(old.seen)")
      }
      // A collection that is no longer shared stays behind.
      guard next.members.shares(row.collection) else { continue }
      // With its author's signature.
      let sealed = try Record(opening: bytes, named: row.name, old.keys).sealed(next.keys)
      resealed.append((row.name, sealed, try sealed.bytes.digest))
    }
    var rest = resealed.map { CarrierChange.put($0.object) }[...]
    while !rest.isEmpty {
      let request = Array(rest.prefix(64))
      rest = rest.dropFirst(64)
      guard try await make(request, if: condition) else { return nil }
      try onStep(.didResealSome)
    }
    return resealed
  }

  /// Deletes what no head refers to from the carrier: records under earlier keys, and remains of commits that were cut off.
  ///
  /// - Returns: False if another member has committed meanwhile.
  func clean() async throws -> Bool {
    guard let head = membership.head,
      let view = try await CarrierView.readAll(carrier, CarrierBound(head, membership.keys)),
      view.head == membership.stored.head
    else { return false }
    let pieces = Set((membership.head?.pieces ?? []).map { Piece.object($0.id, membership.keys) })
    let left = view.objects.keys.filter { name in
      name.hasPrefix("s/") && !pieces.contains(name)
        || name.hasPrefix("r/") && !name.hasPrefix("r/\(membership.keys.folder)/")
    }
    return try await make(left.sorted().map { .remove(name: $0) })
  }

  // MARK: Conflicts

  /// The unresolved conflicts: settings changed concurrently on two hosts, in order.
  ///
  /// - Throws: `CofferError`.
  public func conflicts() throws -> [FleetConflict] {
    try connection.readFleets { try $0.conflicts(of: membership.id) }.map {
      FleetConflict(
        id: $0.id, collection: $0.collection, key: $0.key, version: $0.version, time: Self.date($0.time),
        winner: $0.winner, loser: $0.loser, isDeclaration: $0.declaration != nil)
    }
  }

  /// Sets a setting to the losing value, or declares it as it lost, as a new change, and removes the conflict from the list.
  ///
  /// - Throws: ``FleetError/conflictNotFound(id:)``; `CofferError.versionNotFound` if the history no longer has it.
  public func restore(_ conflict: FleetConflict) throws {
    try check(conflict)
    if conflict.isDeclaration { return try restoreDeclaration(conflict) }
    try connection.readWrite { transaction in
      try transaction.restoreObject(
        forKey: conflict.key, inCollection: conflict.collection, version: conflict.version)
    }
    try dismiss(conflict)
  }

  /// Makes the losing declaration that of the fleet; the next sync pushes it.
  private func restoreDeclaration(_ conflict: FleetConflict) throws {
    try connection.writeFleets { transaction in
      let lost = try transaction.conflicts(of: membership.id).first { $0.id == conflict.id }?.declaration
      guard let lost, var row = try transaction.declaration(conflict.key, in: conflict.collection, of: membership.id)
      else { throw FleetError.conflictNotFound(id: conflict.id) }
      row.declaration?.content = lost
      row.declaration?.own = try transaction.ownDeclaration(conflict.key, in: conflict.collection)?.json
      (row.version, row.isRemoved) = (StoredRecord.notInStep, false)
      try transaction.save(row, of: membership.id)
      transaction.noteDeclarations(of: lost.application)
      try transaction.removeConflict(conflict.id, of: membership.id)
    }
  }

  /// Removes a conflict from the list; the losing value stays in the history of its key.
  ///
  /// - Throws: ``FleetError/conflictNotFound(id:)``; `CofferError`.
  public func dismiss(_ conflict: FleetConflict) throws {
    try check(conflict)
    try connection.writeFleets { try $0.removeConflict(conflict.id, of: membership.id) }
  }

  private func check(_ conflict: FleetConflict) throws {
    guard try conflicts().contains(conflict) else { throw FleetError.conflictNotFound(id: conflict.id) }
  }

  /// Sets the rule for settings of a collection that were changed both here and elsewhere, on this host only.
  ///
  /// By default the later change wins; on a reader's host, the change from elsewhere. A reader's own changes are never shared: with
  /// `.oursWins` they stay in effect on its host only.
  ///
  /// - Throws: ``FleetError/collectionWaits(_:)``; `CofferError`.
  public func setRule(_ rule: FleetRule, forCollection collection: String) throws {
    try connection.writeFleets { transaction in
      let waiting = try Consent(transaction, membership.id, membership.members).waiting
      guard !waiting.contains(where: { $0.utf8.elementsEqual(collection.utf8) }) else {
        throw FleetError.collectionWaits(collection)
      }
      try transaction.setRule(rule.rawValue, for: collection, of: membership.id)
    }
  }
}
