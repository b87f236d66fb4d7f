import CofferCrypto

/// The keys that a host has made as it joined: with them an admin replaces those of the invitation.
///
/// There is one object for an invitation, so only the first host can use it.
struct JoinRequest: Equatable {
  let member: MemberID
  /// Its Ed25519 and X25519 keys.
  let signingKey: [UInt8]
  let publicKey: [UInt8]

  static func object(_ member: MemberID) -> String { prefix + member.bytes.hex }

  static let prefix = "j/"

  /// The object, signed with the keys of the invitation and with the host's own.
  static func signed(by invitation: Identity, and own: Identity, in fleet: [UInt8]) throws -> [UInt8] {
    let bytes = [Format.version] + own.member.bytes + own.signingKey + own.publicKey
    return try bytes + invitation.sign(fleet + bytes, as: .join) + own.sign(fleet + bytes, as: .join)
  }

  /// Opens the request of a member, and checks both signatures.
  init(opening bytes: [UInt8], of member: Members.Member, in fleet: [UInt8]) throws {
    let object = Self.object(member.id)
    let (id, signingKey, publicKey, signatures) = try Format.read(bytes, object) { reader in
      let id = MemberID(bytes: try reader.array(MemberID.byteCount))
      let keys = (try reader.array(Ed25519.publicKeyByteCount), try reader.array(X25519.keyByteCount))
      let first = try reader.array(Ed25519.signatureByteCount)
      let second = try reader.array(Ed25519.signatureByteCount)
      try reader.end()
      return (id, keys.0, keys.1, [first, second])
    }
    let signed = fleet + bytes.dropLast(2 * Ed25519.signatureByteCount)
    guard id == member.id,
      try SignedObject.join.isValid(signatures[0], of: signed, by: member.signingKey),
      try SignedObject.join.isValid(signatures[1], of: signed, by: signingKey)
    else { throw FleetError.damaged(object: object, reason: "it was not signed with the invitation") }
    (self.member, self.signingKey, self.publicKey) = (member.id, signingKey, publicKey)
  }
}
