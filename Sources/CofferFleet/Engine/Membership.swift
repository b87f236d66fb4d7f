import Coffer
import CofferCrypto

/// A store's membership in a fleet: the contents of its tables, verified and opened.
final class Membership: @unchecked Sendable {
  // Unchecked: only the `Fleet` that made it, an actor, uses it.
  private(set) var stored: StoredFleet
  /// The keys with which this store is listed.
  private(set) var identity: Identity
  /// The keys that this host has made as it joined, until an admin's host lists them instead of the invitation's.
  private(set) var ownIdentity: Identity?
  private(set) var authority: Authority
  private(set) var authorityDigest: [UInt8]
  private(set) var members: Members
  private(set) var fleetKey: SecretBytes
  private(set) var keys: FleetKeys
  /// The set of the records in the state that the store is in sync with.
  var set: RecordSet
  /// The head of that state; nil before the first sync.
  private(set) var head: Head?

  /// The fleet's row in the table `fleets`.
  var id: Int64 { stored.id ?? 0 }

  /// The highest head number seen so far.
  var seen: UInt64 { UInt64(clamping: stored.number) }

  /// This store's own member.
  var me: Members.Member {
    // Otherwise opening the fleet key would have failed.
    members[identity.member]!
  }

  /// Whether others accept this host's changes.
  var mayWrite: Bool { me.mayWrite }

  /// Whether others accept this host's changes of the members.
  var mayManage: Bool { me.mayManage }

  /// - Throws: ``FleetError/removed`` if this host is not among the members.
  convenience init(_ stored: StoredFleet) throws {
    try self.init(stored, isHeadOpened: true)
  }

  /// The membership in the tables of a store.
  ///
  /// - Throws: ``FleetError/removed``; `CofferError.damaged`: what was verified before it was stored cannot be the carrier's fault.
  static func reading(_ stored: StoredFleet) throws -> Membership {
    do {
      return try Membership(stored)
    } catch FleetError.damaged(let object, let reason) {
      throw CofferError.damaged(part: "fleets", reason: "the \(object) of a fleet: \(reason)")
    }
  }

  /// - Parameter isHeadOpened: Whether to open the current head; false if another one replaces it at once.
  init(_ stored: StoredFleet, isHeadOpened: Bool) throws {
    self.stored = stored
    let identities = try Self.identities(stored)
    authority = try Authority(verified: stored.authority)
    authorityDigest = try stored.authority.digest
    (identity, fleetKey, keys, members) = try Self.open(stored.members, authority, identities)
    ownIdentity = identities.count > 1 && identity.seed === identities[0].seed ? identities[1] : nil
    guard let set = RecordSet(bytes: stored.sum) else {
      throw CofferError.damaged(part: "fleets", reason: "the sum of a fleet has \(stored.sum.count) bytes")
    }
    self.set = set
    if isHeadOpened, !stored.head.isEmpty {
      head = try Head(opening: stored.head, keys, members: members, authority: authorityDigest)
    }
  }

  /// The keys that the store may be listed with: the invitation's before its own.
  private static func identities(_ stored: StoredFleet) throws -> [Identity] {
    try stored.identity.withUnsafeBytes { bytes in
      try stride(from: 0, to: bytes.count, by: Identity.seedByteCount).map { start in
        let seed = SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[start..<start + Identity.seedByteCount]))
        return try Identity(member: MemberID(bytes: stored.member), seed: seed, fleet: stored.fleet)
      }
    }
  }

  private static func open(
    _ bytes: [UInt8], _ authority: Authority, _ identities: [Identity]
  ) throws -> (Identity, SecretBytes, FleetKeys, Members) {
    if identities.count > 1, let own = identities.last {
      if let (key, keys, members) = try? open(bytes, authority, own) { return (own, key, keys, members) }
    }
    do {
      let (key, keys, members) = try open(bytes, authority, identities[0])
      return (identities[0], key, keys, members)
    } catch FleetError.damaged where identities.count > 1 {
      // The list is what an admin has signed, and has other keys.
      throw FleetError.invitationUsed
    }
  }

  private static func open(
    _ bytes: [UInt8], _ authority: Authority, _ identity: Identity
  ) throws -> (SecretBytes, FleetKeys, Members) {
    let key = try Members.fleetKey(in: bytes, of: authority, for: identity)
    let keys = try FleetKeys(fleetKey: key, fleet: authority.fleet, epoch: authority.epoch, folder: authority.folder)
    let members = try Members(opening: bytes, keys, of: authority)
    guard members[identity.member] != nil else { throw FleetError.removed }
    return (key, keys, members)
  }

  /// What a store keeps until its own keys are listed.
  static func seeds(_ invitation: SecretBytes, _ own: SecretBytes) -> SecretBytes {
    SecretBytes(count: invitation.count + own.count) { both in
      invitation.withUnsafeBytes { both.copyMemory(from: $0) }
      own.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: both[invitation.count...]).copyMemory(from: $0)
      }
    }
  }

  /// Keeps the keys of the invitation, which many hosts have.
  func dropOwnIdentity() {
    stored.identity = identity.seed
    ownIdentity = nil
  }

  // MARK: Updating

  /// Adopts a later, verified version of the members; a new epoch has new keys.
  func take(_ authority: Authority, _ authorityBytes: [UInt8], members bytes: [UInt8]) throws {
    let version = members.version
    (identity, fleetKey, keys, members) = try Self.open(bytes, authority, [identity] + (ownIdentity.map { [$0] } ?? []))
    if let ownIdentity, identity.seed === ownIdentity.seed {
      stored.identity = ownIdentity.seed
      self.ownIdentity = nil
    }
    // Changes in a new collection have never been searched for.
    if !members.collections(newSince: version).isEmpty { setPushed(-1) }
    self.authority = authority
    authorityDigest = try authorityBytes.digest
    (stored.authority, stored.members) = (authorityBytes, bytes)
  }

  /// Adopts a state that the store is about to be in sync with.
  ///
  /// - Parameter revision: Nil keeps the current one, for this host's own commits.
  func take(_ head: Head, _ bytes: [UInt8], _ set: RecordSet, revision: String?? = nil, synced: Int64) {
    self.head = head
    self.set = set
    stored.number = max(stored.number, Int64(head.number))
    (stored.head, stored.sum, stored.synced) = (bytes, set.bytes, synced)
    if let revision { stored.revision = revision }
  }

  /// Continues a row of the table `fleets`.
  func setID(_ id: Int64?) { stored.id = id }

  func setRevision(_ revision: String?) { stored.revision = revision }

  /// Records the commit up to which the store's changes were searched; -1 to search all of them.
  func setPushed(_ number: CommitNumber) { stored.pushed = number }

  func setSynced(_ time: Int64) { stored.synced = time }

  func save(_ transaction: FleetTransaction) throws { stored.id = try transaction.save(stored) }

  // MARK: Heads

  /// The head after the current one, and the blocks of its log that it completes.
  func nextHead(
    set: RecordSet, recordCount: UInt64, time: Int64, horizon: UInt64? = nil, pieces: [Head.PieceReference] = []
  ) throws -> (head: Head, blocks: [CarrierChange]) {
    var log = head?.log ?? HeadLog()
    let blocks = head == nil ? [] : try log.append(stored.head.digest)
    let next = Head(
      number: seen + 1, time: time, author: identity.member, membersVersion: members.version,
      authority: authorityDigest, setDigest: try set.digest, recordCount: recordCount,
      horizon: horizon ?? head?.horizon ?? 0, log: log, pieces: pieces)
    return (next, blocks.map { .put($0) })
  }

  /// The place of the current head in the log.
  var base: Authority.Base {
    get throws { try head.map { Authority.Base(index: $0.log.count, head: try stored.head.digest) } ?? .none }
  }

  /// The condition of a commit: the head is still the one that the store is in sync with.
  var condition: CarrierCondition {
    CarrierCondition(name: Head.object, bytes: stored.head.isEmpty ? nil : stored.head)
  }
}
