import Coffer
import CofferCrypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A store's membership in a fleet: some of its collections are shared with the stores of other hosts, through a carrier
/// that is not trusted.
///
/// ```swift
/// let fleet = try await Fleet.join(invitation, database, at: carrier)
/// try await fleet.sync()  // Or `run()`, which keeps the store in sync.
/// ```
///
/// Programs read and write their store as usual, also offline. One program per host syncs it; all others are notified of
/// changes from elsewhere as of any other program's commits.
///
/// Concurrent changes on two hosts are a conflict: the later change wins, and the other one stays in the history of its
/// key, see ``conflicts()``.
///
/// After an error the store keeps and serves its contents; ``sync()`` can be called again.
public actor Fleet {
  let connection: Connection
  let database: Database
  let carrier: any Carrier
  var membership: Membership
  var condition = FleetCondition.unknown
  var problems: [String] = []
  /// The digests of the last heads that this has taken or published, newest last.
  private(set) var recentHeads: [[UInt8]] = []
  let turns = Turns()
  private var observers: [Int: AsyncStream<FleetStatus>.Continuation] = [:]
  private var lastObserver = 0
  /// Whether the store is no longer a member.
  private var hasEnded = false
  /// Where tests interrupt.
  var onStep: @Sendable (Step) async throws -> Void = { _ in }

  /// The steps between which a host can be cut off.
  enum Step: CaseIterable, Sendable {
    case willCommit, didStage, didCommit, didAcknowledge, didSettle, didResealSome, willApply, didApply
  }

  init(_ database: Database, _ connection: Connection, _ carrier: any Carrier, _ membership: sending Membership) {
    (self.database, self.connection, self.carrier) = (database, connection, carrier)
    self.membership = membership
  }

  /// The collections that the pull in progress agrees to.
  var agreeing: [String] = []

  private static let recentHeadCount = 64

  /// Remembers a head, which the carrier's stream of changes may deliver later.
  func note(_ head: [UInt8]) {
    guard let digest = try? head.digest else { return }
    if recentHeads.count == Self.recentHeadCount { recentHeads.removeFirst() }
    recentHeads.append(digest)
  }

  func setOnStep(_ body: @escaping @Sendable (Step) async throws -> Void) { onStep = body }

  // MARK: Making and joining

  /// Creates a fleet on a carrier, with this store as its first admin.
  ///
  /// The first sync pushes the contents of the collections.
  ///
  /// - Parameters:
  ///   - name: The name of the fleet.
  ///   - collections: The shared collections. One that is sealed here is sealed in the fleet, see ``seal(collections:)``.
  ///   - member: The name of this host.
  ///   - retentionDays: How long removals are remembered. A host that was away longer adopts the fleet's state.
  ///   - greatestAge: How old the last commit may be, in whole seconds, before hosts are ``FleetCondition/stale(since:)``: a carrier may
  ///     withhold commits for so long unnoticed. Hosts that write commit at least four times in it, and have to run, or to sync, so often. Nil for any age.
  /// - Throws: ``FleetError/fleetExists(carrier:)``, `.alreadyJoined`, `.collectionShared`, `.badName`;
  ///   ``CarrierError``; `CofferError`.
  public static func create(
    _ name: String, in database: Database, at carrier: any Carrier, collections: [String], as member: String,
    retentionDays: Int = 90, greatestAge: Duration? = nil
  ) async throws -> Fleet {
    try check(name: name, member: member)
    let connection = try database.makeConnection()
    let collections = Array(Set(collections.map(ByteString.init))).sorted().map(\.string)
    let sealed = try connection.readFleets { transaction in
      try check(collections, transaction)
      return try sealedHere(collections, transaction)
    }
    let fleet = try RandomSource.bytes(count: Members.fleetIDByteCount)
    let identity = try Identity.make(fleet: fleet)
    let now = try connection.readFleets { $0.time }
    var members = Members(
      version: 1, fleetName: name, retentionDays: UInt32(clamping: max(1, retentionDays)), shared: [],
      members: [
        Members.Member(
          id: identity.member, name: member, role: .admin, standing: .admitted, signingKey: identity.signingKey,
          publicKey: identity.publicKey, created: now)
      ])
    try members.share(collections, from: 1) { sealed.contains(ByteString($0)) }
    members.greatestAge = Members.greatestAge(greatestAge)
    let edition = try MembersEdition(first: members, fleet: fleet, by: identity, time: now)
    let stored = StoredFleet(
      fleet: fleet, carrier: carrier.description, member: identity.member.bytes, identity: identity.seed,
      firstAuthority: try edition.authorityBytes.digest, authority: edition.authorityBytes,
      members: edition.membersBytes, sum: StoredFleet.emptySum)
    let membership = try Membership(stored)
    let first = try membership.nextHead(time: now)
    let bytes = try first.head.sealed(membership.keys, by: identity)
    // The store records it first: a fleet whose admin is lost could never be used.
    try connection.writeFleets { transaction in
      try check(collections, transaction)
      try membership.save(transaction)
    }
    do {
      let isMade = try await carrier.commit(
        edition.changes + [.put(CarrierObject(name: Head.object, bytes: bytes))],
        if: CarrierCondition(name: Head.object, bytes: nil))
      guard isMade else { throw FleetError.fleetExists(carrier: carrier.description) }
    } catch {
      // If the answer was lost, it may still exist.
      let present = try? await carrier.read([Head.object])
      guard present?.first?.bytes == bytes else {
        try connection.writeFleets { try $0.remove(membership.id) }
        throw error
      }
    }
    membership.take(first.head, bytes, first.sets, synced: now)
    try connection.writeFleets { try membership.save($0) }
    return Fleet(database, connection, carrier, membership)
  }

  /// Joins a fleet with an invitation, and pulls its settings.
  ///
  /// The fleet's settings win over existing ones, and its removals, too; what loses stays in the history of its key, see ``conflicts()``.
  /// Existing settings that the fleet does not have are pushed by the first sync. Collections that this host is not ready for wait, see
  /// ``FleetStatus/waits``.
  ///
  /// This host makes keys of its own, and the invitation is void. Until an admin's host has synced, it only reads; see
  /// ``FleetStatus/isAdmitted``.
  ///
  /// - Throws: ``FleetError/invitationExpired(_:)``, `.invitationUsed`, `.olderThanInvitation`, `.fleetNotFound`, `.removed`, `.alreadyJoined`,
  ///   `.collectionShared`, `.damaged`; ``CarrierError``; `CofferError`.
  public static func join(
    _ invitation: Invitation, _ database: Database, at carrier: any Carrier
  ) async throws -> Fleet {
    let connection = try database.makeConnection()
    let now = try connection.readFleets { transaction in
      guard try !transaction.fleets().contains(where: { $0.fleet == invitation.fleet }) else {
        throw FleetError.alreadyJoined
      }
      return transaction.time
    }
    let membership = try await membership(for: invitation, at: carrier, now)
    let fleet = Fleet(database, connection, carrier, membership)
    do {
      try await fleet.takeAll()
    } catch {
      await fleet.unclaim()
      throw error
    }
    return fleet
  }

  /// Checks the names and the carrier for ``create(_:in:at:collections:as:retentionDays:greatestAge:)``, without a store.
  package static func checkCreation(_ name: String, at carrier: any Carrier, as member: String) async throws {
    try check(name: name, member: member)
    // An empty commit, which also makes the folder of a file carrier.
    guard try await carrier.commit([], if: CarrierCondition(name: Head.object, bytes: nil)) else {
      throw FleetError.fleetExists(carrier: carrier.description)
    }
  }

  private static func check(name: String, member: String) throws {
    try Members.check(name: name)
    try Members.check(name: member)
  }

  /// Checks that an invitation is valid for the fleet at a carrier, without a store.
  package static func check(_ invitation: Invitation, at carrier: any Carrier) async throws {
    _ = try await membership(for: invitation, at: carrier, Int64(Date().timeIntervalSince1970 * 1000))
  }

  /// The membership of an invitation, after verifying the carrier's members against it.
  private static func membership(
    for invitation: Invitation, at carrier: any Carrier, _ now: Int64
  ) async throws -> sending Membership {
    let chain = try await AuthorityChain.read(from: carrier, first: invitation.firstAuthority)
    guard chain.authority.fleet == invitation.fleet else {
      throw FleetError.fleetNotFound(carrier: carrier.description)
    }
    // A former member could show an old copy of the carrier, in which it is still a member.
    guard chain.authority.version >= invitation.version else {
      throw FleetError.olderThanInvitation(carrier: carrier.description)
    }
    let own = try SecretBytes.random(count: Identity.seedByteCount)
    let membership = try Membership(
      StoredFleet(
        fleet: invitation.fleet, carrier: carrier.description, member: invitation.member.bytes,
        identity: SecretBytes(joining: [invitation.seed, own]), firstAuthority: invitation.firstAuthority,
        authority: chain.bytes, members: chain.members, sum: StoredFleet.emptySum))
    let me = membership.me
    if me.isExpired(at: now) { throw FleetError.invitationExpired(date(me.joinsBefore)) }
    if me.standing == .many {
      membership.dropOwnIdentity()
    } else if try await !carrier.read([JoinRequest.object(me.id)]).isEmpty {
      throw FleetError.invitationUsed
    }
    return membership
  }

  /// The addresses of the carriers of a store's fleets.
  ///
  /// - Throws: `CofferError`.
  public static func carriers(of database: Database) throws -> [String] {
    try database.makeConnection().readFleets { try $0.fleets().map(\.carrier) }
  }

  /// The fleet that a store is a member of.
  ///
  /// - Parameter carrier: The one at the address that ``carriers(of:)`` returns.
  /// - Throws: ``FleetError/notJoined``, `.removed`; `CofferError`.
  public static func open(in database: Database, at carrier: any Carrier) throws -> Fleet {
    let connection = try database.makeConnection()
    let stored = try connection.readFleets { try $0.fleets().first { $0.carrier == carrier.description } }
    guard let stored else { throw FleetError.notJoined }
    return Fleet(database, connection, carrier, try Membership.reading(stored))
  }

  /// Leaves the fleet: the store keeps its settings, and stops sharing them.
  ///
  /// It also keeps what it was in step with: if it joins again, what the fleet has removed meanwhile does not come back.
  ///
  /// The member stays in the fleet's list until an admin removes it.
  ///
  /// - Parameter evenAsLastAdmin: Whether the last admin that this host knows of may leave. No one can then invite or remove
  ///   members, or renew the key.
  /// - Throws: ``FleetError/lastAdminLeaves``; `CofferError`.
  public func leave(evenAsLastAdmin: Bool = false) async throws {
    try await turns.take {
      let admins = membership.members.members.filter(\.mayManage)
      if !evenAsLastAdmin, admins.count == 1, admins[0].id == membership.identity.member {
        throw FleetError.lastAdminLeaves
      }
      try connection.writeFleets { transaction in
        // Of what waits for consent the records are known, and were never taken: a host that joins again has to take them.
        for name in try Consent(transaction, membership.id, membership.members).waiting {
          try transaction.removeRecords(in: name, of: membership.id)
        }
        try transaction.leave(membership.id)
      }
      set(.left, isLast: true)
    }
  }

  /// Refuses collections that cannot be shared.
  static func check(_ collections: [String], _ transaction: FleetTransaction, except own: Int64? = nil) throws {
    for other in try transaction.fleets() where other.id != own {
      guard let shared = try? Membership(other).members.collections else { continue }
      if let both = collections.first(where: { name in shared.contains { $0.utf8.elementsEqual(name.utf8) } }) {
        throw FleetError.collectionShared(both)
      }
    }
  }

  static func date(_ milliseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

  // MARK: State

  /// The state of the fleet here, without contacting the carrier.
  ///
  /// - Throws: `CofferError`.
  public func status() throws -> FleetStatus {
    let (agreed, waits, changes, declarations, conflicts, twin) = try connection.readFleets { transaction in
      let readiness = try Readiness(transaction, membership)
      let agreed = readiness.consent.agreed
      return (
        agreed, try readiness.waits(transaction, membership),
        try transaction.localChanges(of: membership.stored, in: agreed, withValues: false),
        try transaction.localDeclarations(of: membership.stored, in: agreed),
        try transaction.conflicts(of: membership.id).count,
        try Twin.known(to: transaction, of: membership.id, membership.members)
      )
    }
    return FleetStatus(
      fleet: membership.members.fleetName, carrier: carrier.description, member: membership.me.name,
      role: membership.me.role, isAdmitted: membership.ownIdentity == nil, collections: agreed,
      hasAllCollections: membership.me.access == .all, sealedCollections: membership.members.sealedCollections,
      waits: waits,
      commit: membership.seen, committed: membership.head.map { Self.date($0.time) },
      committer: membership.head.flatMap { membership.members.author($0.author)?.name } ?? "",
      isStale: try staleness() != nil, greatestAge: greatestAge.map { .milliseconds($0) },
      lastInStep: membership.stored.synced == 0 ? nil : Self.date(membership.stored.synced), condition: condition,
      unpushedCount: changes.reduce(0) { $0 + $1.count }, unpushedDeclarationCount: declarations.count,
      conflictCount: conflicts, problems: problems, twin: twin.map(FleetTwin.init))
  }

  /// The state of the fleet here, now and whenever it changes; a slow consumer gets the newest.
  ///
  /// The stream ends once the store is no longer a member: after ``leave(evenAsLastAdmin:)``, or when a sync throws ``FleetError/removed``.
  ///
  /// - Throws: `CofferError`.
  public func states() throws -> AsyncStream<FleetStatus> {
    let (stream, continuation) = AsyncStream.makeStream(of: FleetStatus.self, bufferingPolicy: .bufferingNewest(1))
    lastObserver += 1
    let number = lastObserver
    observers[number] = continuation
    continuation.onTermination = { [weak self] _ in
      guard let self else { return }
      Task { await self.removeObserver(number) }
    }
    continuation.yield(try status())
    if hasEnded { continuation.finish() }
    return stream
  }

  private func removeObserver(_ number: Int) { observers[number] = nil }

  func set(_ condition: FleetCondition, isLast: Bool = false) {
    self.condition = condition
    hasEnded = hasEnded || isLast
    let status = observers.isEmpty ? nil : try? status()
    for observer in observers.values {
      if let status { observer.yield(status) }
      if isLast { observer.finish() }
    }
  }
}
