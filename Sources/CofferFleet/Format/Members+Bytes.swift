import Coffer
import CofferCrypto

/// The object: the fleet key and that of a ring, wrapped for each member, then the list of members, sealed under the fleet key.
///
/// A *ring* has the keys of the collections of all members that have the same ones. Its own key is another one in each version, so it opens nothing
/// that was shared before a member came.
extension Members {
  private static let wrappedByteCount = 2 * FleetKeys.keyByteCount + XAES256GCM.overheadByteCount

  /// - Parameter keys: Those of all collections.
  func sealed(_ keys: FleetKeys) throws -> [UInt8] {
    var bytes = [Format.version]
    bytes.append(number: version)
    let ephemeral = try SecretBytes.random(count: X25519.keyByteCount)
    let ephemeralKey = try X25519.publicKey(of: ephemeral)
    bytes += ephemeralKey
    bytes.append(number: UInt16(members.count))
    var rings: [CollectionAccess: (number: Int, key: SecretBytes)] = [:]
    for member in members {
      let ring = try rings[member.access] ?? (rings.count, .random(count: FleetKeys.keyByteCount))
      rings[member.access] = ring
      bytes += member.id.bytes
      let agreed = try X25519.agree(ephemeral, with: member.publicKey)
      let wrapping = try Self.wrappingKey(agreed, ephemeralKey, member.publicKey, keys.fleet)
      let data = Self.additionalData(keys.fleet, version, keys.epoch, member.id)
      try SecretBytes(joining: [keys.secrets.fleetKey, ring.key]).withUnsafeBytes {
        try XAES256GCM(key: wrapping).seal($0, additionalData: data, appendingTo: &bytes)
      }
    }
    // The keys are authenticated by the list that they open, the whole object by the authority's signature.
    let body = try body(keys, rings)
    var sealed = Array(bytes.prefix(5))
    try body.withUnsafeBytes { try keys.seal($0, for: .members, into: &sealed) }
    return bytes + sealed.dropFirst(5)
  }

  /// The list has a member with other keys than those of the identity.
  struct WrappedForOtherKeys: Error {}

  /// Opens the object with a member's private key.
  ///
  /// - Throws: ``FleetError/removed`` if no key is wrapped for the member; ``WrappedForOtherKeys``.
  static func open(
    _ bytes: [UInt8], of authority: Authority, for identity: Identity
  ) throws -> (FleetKeys, Members) {
    guard ConstantTime.isEqual(try bytes.digest, authority.members) else {
      throw FleetError.damaged(object: object, reason: "it does not match what an admin signed")
    }
    return try Format.read(bytes, object) { reader in
      let version = try reader.number(UInt32.self)
      let ephemeralKey = try reader.array(X25519.keyByteCount)
      var ids: [MemberID] = []
      var wrapped: [UInt8]?
      for _ in 0..<(try reader.number(UInt16.self)) {
        ids.append(MemberID(bytes: try reader.array(MemberID.byteCount)))
        let keys = try reader.array(wrappedByteCount)
        if ids.last == identity.member { wrapped = keys }
      }
      guard let wrapped else { throw FleetError.removed }
      let unwrapped = try unwrap(wrapped, ephemeralKey, version, authority, identity)
      var secrets = FleetKeys.Secrets(
        fleet: authority.fleet, epoch: authority.epoch, folder: authority.folder,
        fleetKey: unwrapped.slice(0..<FleetKeys.keyByteCount))
      let ringKey = unwrapped.slice(FleetKeys.keyByteCount..<2 * FleetKeys.keyByteCount)
      let sealed = Array(bytes.prefix(5)) + Array(reader.rest())
      let body = try FleetKeys(secrets).withOpened(sealed, behind: 5, for: .members) { try Body(version, &$0) }
      let members = body.members
      guard let own = members.members.first(where: { $0.id == identity.member }) else { throw FleetError.removed }
      guard members.members.map(\.id) == ids, version == authority.version, members.adminKeys == authority.admins
      else { throw MalformedObject(reason: "it does not match its authority") }
      secrets.collections = try body.collections(own, ringKey, authority.fleet)
      guard Set(secrets.collections.map { ByteString($0.name) }).count == secrets.collections.count else {
        throw MalformedObject(reason: "it shares a collection twice")
      }
      return (try FleetKeys(secrets), members.named(secrets.collections))
    }
  }

  private static func unwrap(
    _ wrapped: [UInt8], _ ephemeralKey: [UInt8], _ version: UInt32, _ authority: Authority, _ identity: Identity
  ) throws -> SecretBytes {
    guard let agreed = try? X25519.agree(identity.agreementKey, with: ephemeralKey) else {
      throw MalformedObject(reason: "its ephemeral key is invalid")
    }
    let wrapping = try wrappingKey(agreed, ephemeralKey, identity.publicKey, authority.fleet)
    do {
      return try XAES256GCM(key: wrapping).open(
        Array(wrapped.dropFirst(XAES256GCM.nonceByteCount)), nonce: Array(wrapped.prefix(XAES256GCM.nonceByteCount)),
        additionalData: additionalData(authority.fleet, version, authority.epoch, identity.member))
    } catch CryptoError.authenticationFailed {
      // An admin has signed the whole object.
      throw WrappedForOtherKeys()
    }
  }

  private static func wrappingKey(
    _ agreed: SecretBytes, _ ephemeralKey: [UInt8], _ publicKey: [UInt8], _ fleet: [UInt8]
  ) throws -> SecretBytes {
    try HKDF.deriveKey(
      from: agreed, salt: fleet, info: Array("coffer fleet v1 wrapping".utf8) + ephemeralKey + publicKey, count: 32)
  }

  private static func additionalData(
    _ fleet: [UInt8], _ version: UInt32, _ epoch: UInt32, _ member: MemberID
  ) -> [UInt8] {
    var data = Array("coffer fleet v1 wrapping".utf8) + fleet
    data.append(number: version)
    data.append(number: epoch)
    return data + member.bytes
  }

  private func body(
    _ keys: FleetKeys, _ rings: [CollectionAccess: (number: Int, key: SecretBytes)]
  ) throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(text: fleetName)
    bytes.append(number: retentionDays)
    bytes.append(number: greatestAge)
    bytes.append(number: UInt16(shared.count))
    for collection in shared {
      bytes += collection.folder
      bytes.append(number: collection.since)
      let cipher = try Self.nameCipher(keys.key(of: collection.folder), keys.fleet, collection.folder)
      var name: [UInt8] = []
      try Self.padded(collection).withUnsafeBytes { try cipher.seal($0, into: &name) }
      bytes.append(number: UInt32(name.count))
      bytes += name
    }
    bytes.append(number: UInt16(rings.count))
    for (access, ring) in rings.sorted(by: { $0.value.number < $1.value.number }) {
      let indices = shared.indices.filter { access.includes(shared[$0].folder) }
      bytes.append(access == .all ? 1 : 0)
      bytes.append(number: UInt16(indices.count))
      for index in indices { bytes.append(number: UInt16(index)) }
      let secrets = try SecretBytes(joining: indices.map { try keys.key(of: shared[$0].folder) })
      let data = Self.additionalData(ofRing: ring.number, version, keys.fleet)
      try secrets.withUnsafeBytes {
        try XAES256GCM(key: ring.key).seal($0, additionalData: data, appendingTo: &bytes)
      }
    }
    bytes.append(number: UInt16(members.count))
    for member in members {
      bytes += member.id.bytes
      bytes.append(member.role.rawValue)
      bytes.append(member.standing.rawValue)
      bytes.append(number: UInt16(rings[member.access]?.number ?? 0))
      bytes += member.signingKey + member.publicKey
      bytes.append(number: member.created)
      bytes.append(number: member.joinsBefore)
      bytes.append(text: member.name)
    }
    bytes.append(number: UInt16(former.count))
    for member in former {
      bytes += member.id.bytes + member.signingKey
      bytes.append(text: member.name)
    }
    return bytes
  }

  // MARK: Collections

  fileprivate static func additionalData(ofRing number: Int, _ version: UInt32, _ fleet: [UInt8]) -> [UInt8] {
    var data = Array("coffer fleet v1 ring".utf8) + fleet
    data.append(number: version)
    data.append(number: UInt16(number))
    return data
  }

  fileprivate static func nameCipher(_ key: SecretBytes, _ fleet: [UInt8], _ folder: [UInt8]) throws -> Cipher {
    try Cipher("collection", key, fleet, folder)
  }

  /// Its length does not tell which name it is.
  private static func padded(_ collection: SharedCollection) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(text: collection.name ?? "")
    bytes.append(collection.isSealed ? 1 : 0)
    return bytes + [UInt8](repeating: 0, count: (64 - bytes.count % 64) % 64)
  }
}

/// The list of members, as all of them can read it.
private struct Body {
  private(set) var members: Members
  /// Of each shared collection, in the order of the list.
  private var names: [[UInt8]] = []
  private var rings: [Ring] = []
  private var ringNumbers: [MemberID: Int] = [:]

  private struct Ring {
    var access: CollectionAccess
    /// The collections whose keys are in it.
    var indices: [Int] = []
    var sealed: [UInt8] = []
  }

  /// The collections of a member, with the key of its ring.
  func collections(
    _ member: Members.Member, _ key: SecretBytes, _ fleet: [UInt8]
  ) throws -> [FleetKeys.Secrets.Collection] {
    let number = ringNumbers[member.id] ?? 0
    let ring = rings[number]
    let keys = try XAES256GCM(key: key).open(
      Array(ring.sealed.dropFirst(XAES256GCM.nonceByteCount)),
      nonce: Array(ring.sealed.prefix(XAES256GCM.nonceByteCount)),
      additionalData: Members.additionalData(ofRing: number, members.version, fleet))
    return try ring.indices.enumerated().map { place, index in
      let folder = members.shared[index].folder
      let start = place * FleetKeys.keyByteCount
      let key = keys.slice(start..<start + FleetKeys.keyByteCount)
      return try Members.nameCipher(key, fleet, folder).withOpened(names[index], behind: 0) { reader in
        let name = try reader.text()
        let isSealed = try reader.number(UInt8.self)
        guard isSealed <= 1 else { throw MalformedObject(reason: "a collection has an unknown flag") }
        return FleetKeys.Secrets.Collection(folder: folder, name: name, isSealed: isSealed == 1, key: key)
      }
    }
  }

  init(_ version: UInt32, _ reader: inout ByteReader) throws(MalformedObject) {
    let (fleetName, retentionDays, greatestAge) = (
      try reader.text(), try reader.number(UInt32.self), try reader.number(UInt32.self)
    )
    var shared: [SharedCollection] = []
    for _ in 0..<(try reader.number(UInt16.self)) {
      let folder = try reader.array(Authority.folderByteCount)
      let since = try reader.number(UInt32.self)
      guard 1...version ~= since, shared.count < Members.maximumCollectionCount,
        shared.last.map({ $0.folder.lexicographicallyPrecedes(folder) }) ?? true
      else { throw MalformedObject(reason: "its collections are out of order") }
      shared.append(SharedCollection(folder: folder, name: nil, since: since))
      names.append(Array(try reader.counted()))
    }
    for _ in 0..<(try reader.number(UInt16.self)) { rings.append(try Self.ring(shared, &reader)) }
    members = Members(
      version: version, fleetName: fleetName, retentionDays: retentionDays, shared: shared, members: [])
    members.greatestAge = greatestAge
    for _ in 0..<(try reader.number(UInt16.self)) { members.members.append(try member(&reader)) }
    for _ in 0..<(try reader.number(UInt16.self)) {
      let id = MemberID(bytes: try reader.array(MemberID.byteCount))
      let signingKey = try reader.array(Ed25519.publicKeyByteCount)
      members.former.append(Members.Former(id: id, name: try reader.text(), signingKey: signingKey))
    }
    let (present, former) = (members.members, members.former)
    guard Set(present.map(\.id) + former.map(\.id)).count == present.count + former.count else {
      throw MalformedObject(reason: "it lists a member twice")
    }
    try reader.end()
  }

  private static func ring(_ shared: [SharedCollection], _ reader: inout ByteReader) throws(MalformedObject) -> Ring {
    let isOfAll = try reader.number(UInt8.self)
    var indices: [Int] = []
    for _ in 0..<(try reader.number(UInt16.self)) {
      let index = Int(try reader.number(UInt16.self))
      guard shared.indices.contains(index), indices.last.map({ $0 < index }) ?? true else {
        throw MalformedObject(reason: "a ring has an unknown collection")
      }
      indices.append(index)
    }
    guard isOfAll == 0 || isOfAll == 1 && indices.count == shared.count else {
      throw MalformedObject(reason: "a ring does not have all collections")
    }
    let sealed = try reader.array(indices.count * FleetKeys.keyByteCount + XAES256GCM.overheadByteCount)
    return Ring(
      access: isOfAll == 1 ? .all : .some(Set(indices.map { shared[$0].folder })), indices: indices, sealed: sealed)
  }

  private mutating func member(_ reader: inout ByteReader) throws(MalformedObject) -> Members.Member {
    let id = MemberID(bytes: try reader.array(MemberID.byteCount))
    guard let role = FleetRole(rawValue: try reader.number()) else {
      throw MalformedObject(reason: "a member has an unknown role")
    }
    guard let standing = FleetStanding(rawValue: try reader.number()), standing != .many || role == .reader else {
      throw MalformedObject(reason: "a member has an unknown standing")
    }
    let ring = Int(try reader.number(UInt16.self))
    guard rings.indices.contains(ring), role != .admin || rings[ring].access == .all else {
      throw MalformedObject(reason: "a member has an unknown ring")
    }
    ringNumbers[id] = ring
    let (signingKey, publicKey) = (try reader.array(Ed25519.publicKeyByteCount), try reader.array(X25519.keyByteCount))
    let (created, joinsBefore) = (try reader.number(Int64.self), try reader.number(Int64.self))
    return Members.Member(
      id: id, name: try reader.text(), role: role, standing: standing, access: rings[ring].access,
      signingKey: signingKey, publicKey: publicKey, created: created, joinsBefore: joinsBefore)
  }
}
