import CofferCrypto

/// A new version of the members: its two objects, with the keys in them.
struct MembersEdition {
  let authorityBytes: [UInt8]
  let membersBytes: [UInt8]
  let authority: Authority

  /// The changes that put them on the carrier.
  var changes: [CarrierChange] {
    [
      .put(CarrierObject(name: Authority.object(authority.version), bytes: authorityBytes)),
      .put(CarrierObject(name: Members.object, bytes: membersBytes)),
    ]
  }

  /// The first version.
  init(first members: Members, fleet: [UInt8], by identity: Identity, time: Int64) throws {
    let secrets = FleetKeys.Secrets(
      fleet: fleet, epoch: 1, folder: try RandomSource.bytes(count: Authority.folderByteCount),
      fleetKey: try .random(count: FleetKeys.keyByteCount))
    try self.init(
      members, secrets, previous: [UInt8](repeating: 0, count: SHA256.byteCount), base: .none, identity, time)
  }

  /// The version after the current one of a membership.
  ///
  /// Collections whose folders are new get new keys.
  ///
  /// - Parameter hasNewKey: Whether it begins a new epoch, with another fleet key.
  init(_ members: Members, after membership: Membership, hasNewKey: Bool, time: Int64) throws {
    var secrets = membership.keys.secrets
    if hasNewKey {
      secrets.epoch += 1
      secrets.folder = try RandomSource.bytes(count: Authority.folderByteCount)
      secrets.fleetKey = try .random(count: FleetKeys.keyByteCount)
    }
    try self.init(
      members, secrets, previous: membership.authorityDigest, base: membership.base, membership.identity, time)
  }

  private init(
    _ members: Members, _ earlier: FleetKeys.Secrets, previous: [UInt8], base: Authority.Base, _ identity: Identity,
    _ time: Int64
  ) throws {
    var secrets = earlier
    secrets.collections = try members.shared.map { shared in
      try earlier.collections.first { $0.folder == shared.folder }
        ?? .init(
          folder: shared.folder, name: shared.name ?? "", key: .random(count: FleetKeys.keyByteCount))
    }
    membersBytes = try members.sealed(FleetKeys(secrets))
    authority = Authority(
      fleet: secrets.fleet, version: members.version, time: time, previous: previous, epoch: secrets.epoch,
      folder: secrets.folder, members: try membersBytes.digest, base: base, admins: members.adminKeys)
    authorityBytes = try authority.signed(by: identity)
  }
}

/// The versions of the members on a carrier, verified one by one.
struct AuthorityChain {
  private(set) var authority: Authority
  private(set) var bytes: [UInt8]
  /// The object `members`.
  private(set) var members: [UInt8] = []
  /// The head on which the first version that was read follows.
  private(set) var base: Authority.Base?

  /// Reads from the first version, identified by its digest, to the last.
  static func read(from carrier: any Carrier, first digest: [UInt8]) async throws -> AuthorityChain {
    guard let first = try await carrier.read([Authority.object(1)]).first else {
      throw FleetError.fleetNotFound(carrier: carrier.description)
    }
    var chain = AuthorityChain(authority: try Authority(first: first.bytes, digest: digest), bytes: first.bytes)
    try await chain.goOn(carrier)
    return chain
  }

  /// Continues from a version that was already verified.
  static func read(from carrier: any Carrier, after authority: Authority, _ bytes: [UInt8]) async throws
    -> AuthorityChain
  {
    var chain = AuthorityChain(authority: authority, bytes: bytes)
    try await chain.goOn(carrier)
    return chain
  }

  private init(authority: Authority, bytes: [UInt8]) { (self.authority, self.bytes) = (authority, bytes) }

  private mutating func goOn(_ carrier: any Carrier) async throws {
    for attempt in 1... {
      while true {
        // In batches: a host that was away for long has many to read.
        let last = authority.version
        let names = (1...16).map { Authority.object(last &+ $0) }
        let objects = Dictionary(
          try await carrier.read(names).map { ($0.name, $0.bytes) }, uniquingKeysWith: { first, _ in first })
        for name in names {
          guard let next = objects[name] else { break }
          authority = try Authority(next, after: authority, digest: bytes.digest)
          bytes = next
          base = base ?? authority.base
        }
        if authority.version != last &+ 16 { break }
      }
      members = try await carrier.read([Members.object]).first?.bytes ?? []
      // Another version may have been published meanwhile.
      if try ConstantTime.isEqual(members.digest, authority.members) { return }
      guard attempt < 3 else {
        throw FleetError.damaged(object: Members.object, reason: "it does not match what an admin signed")
      }
    }
  }
}
