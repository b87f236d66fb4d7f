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
  private(set) var keys: FleetKeys
  /// The sets of the records in the state that the store is in sync with, by the folders of this member's collections.
  private(set) var sets: [[UInt8]: RecordSet]
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
    (identity, keys, members) = try Self.open(stored.members, authority, identities)
    ownIdentity = identities.count > 1 && identity.seed === identities[0].seed ? identities[1] : nil
    sets = try Self.sets(stored.sum)
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
  ) throws -> (Identity, FleetKeys, Members) {
    // An admin's host lists the keys that this host has made as it joined instead of the invitation's.
    for identity in identities.reversed() {
      do {
        let (keys, members) = try Members.open(bytes, of: authority, for: identity)
        return (identity, keys, members)
      } catch is Members.WrappedForOtherKeys {
        continue
      }
    }
    guard identities.count > 1 else {
      throw FleetError.damaged(object: Members.object, reason: "the keys in it are not wrapped for this host")
    }
    throw FleetError.invitationUsed
  }

  private static func sets(_ stored: [UInt8]) throws -> [[UInt8]: RecordSet] {
    var sets: [[UInt8]: RecordSet] = [:]
    var rest = stored.dropFirst()
    while !rest.isEmpty {
      let folder = Array(rest.prefix(Authority.folderByteCount))
      rest = rest.dropFirst(folder.count)
      guard let set = RecordSet(bytes: Array(rest.prefix(RecordSet.byteCount))) else {
        throw CofferError.damaged(part: "fleets", reason: "the sum of a fleet has \(stored.count) bytes")
      }
      sets[folder] = set
      rest = rest.dropFirst(RecordSet.byteCount)
    }
    return sets
  }

  private static func bytes(_ sets: [[UInt8]: RecordSet]) -> [UInt8] {
    var bytes = StoredFleet.emptySum
    for (folder, set) in sets.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) { bytes += folder + set.bytes }
    return bytes
  }

  /// Keeps the keys of the invitation, which many hosts have.
  func dropOwnIdentity() {
    stored.identity = identity.seed
    ownIdentity = nil
  }

  // MARK: Updating

  /// Adopts a later, verified version of the members; a new epoch has new keys.
  func take(_ authority: Authority, _ authorityBytes: [UInt8], members bytes: [UInt8]) throws {
    let earlier = members
    (identity, keys, members) = try Self.open(bytes, authority, [identity] + (ownIdentity.map { [$0] } ?? []))
    if let ownIdentity, identity.seed === ownIdentity.seed {
      stored.identity = ownIdentity.seed
      self.ownIdentity = nil
    }
    // Changes in a new collection have never been searched for.
    if !members.collections(newSince: earlier).isEmpty { setPushed(-1) }
    self.authority = authority
    authorityDigest = try authorityBytes.digest
    (stored.authority, stored.members) = (authorityBytes, bytes)
  }

  /// Adopts a state that the store is about to be in sync with.
  ///
  /// - Parameter revision: Nil keeps the current one, for this host's own commits.
  func take(_ head: Head, _ bytes: [UInt8], _ sets: [[UInt8]: RecordSet], revision: String?? = nil, synced: Int64) {
    self.head = head
    self.sets = sets
    // Numbers that a member has skipped, and that were cut off, do not count: others would refuse the next one.
    let seen = stored.number - Int64(head.number) > Int64(Head.greatestStep) ? 0 : stored.number
    stored.number = max(seen, Int64(head.number))
    (stored.head, stored.sum, stored.synced) = (bytes, Self.bytes(sets), synced)
    if let revision { stored.revision = revision }
  }

  /// Continues a row of the table `fleets`; a store keeps one also of a fleet that it has left.
  func goOn(from row: StoredFleet) {
    stored.id = row.id
    stored.number = max(stored.number, row.number)
  }

  func setRevision(_ revision: String?) { stored.revision = revision }

  /// Records the commit up to which the store's changes were searched; -1 to search all of them.
  func setPushed(_ number: CommitNumber) { stored.pushed = number }

  func setSynced(_ time: Int64) { stored.synced = time }

  func save(_ transaction: FleetTransaction) throws { stored.id = try transaction.save(stored) }

  // MARK: Heads

  /// What a commit changes of a collection.
  struct CollectionChange {
    var set = RecordSet()
    var recordCount: UInt64 = 0
    /// Nil if no removal is forgotten.
    var horizon: UInt64?
  }

  /// The head after the current one.
  struct NextHead {
    var head: Head
    /// The blocks of its log that it completes.
    var blocks: [CarrierChange]
    /// Of this member's collections.
    var sets: [[UInt8]: RecordSet]
  }

  /// - Parameter changes: By folder. A collection that the current head does not have is in it, or empty.
  func nextHead(
    _ changes: [[UInt8]: CollectionChange] = [:], time: Int64, pieces: [Head.PieceReference] = []
  ) throws -> NextHead {
    var log = head?.log ?? HeadLog()
    let blocks = head == nil ? [] : try log.append(stored.head.digest)
    let number = seen + 1
    var sets: [[UInt8]: RecordSet] = [:]
    let collections = try members.shared.map { shared in
      let (folder, earlier) = (shared.folder, head?.collection(shared.folder))
      if keys.has(folder: folder) { sets[folder] = changes[folder]?.set ?? self.sets[folder] ?? RecordSet() }
      if let earlier, changes[folder] == nil { return earlier }
      let change = changes[folder] ?? CollectionChange()
      return try CollectionHead(
        folder: folder, set: change.set, recordCount: change.recordCount,
        horizon: change.horizon ?? earlier?.horizon ?? 0, number: number, by: identity, in: stored.fleet)
    }
    let next = Head(
      number: number, time: time, author: identity.member, membersVersion: members.version,
      authority: authorityDigest, collections: collections, log: log, pieces: pieces)
    return NextHead(head: next, blocks: blocks.map { .put($0) }, sets: sets)
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
