import CofferCrypto

/// The state of a shared collection after the last commit that changed it, signed by the member that did.
///
/// A head has that of each collection. Who does not have a collection can only repeat what was signed before.
struct CollectionHead: Equatable, Sendable {
  /// That of the collection's records.
  var folder: [UInt8]
  /// The digest of the `RecordSet` of its records, and their number.
  var setDigest: [UInt8]
  var recordCount: UInt64
  /// The number of the commit up to which removals may be missing among the records.
  var horizon: UInt64 = 0
  /// The number of the head in which it was made, and the author.
  var number: UInt64
  var author: MemberID
  /// The author's, over all of the above.
  var signature = [UInt8](repeating: 0, count: Ed25519.signatureByteCount)

  init(
    folder: [UInt8], set: RecordSet, recordCount: UInt64, horizon: UInt64, number: UInt64, by identity: Identity,
    in fleet: [UInt8]
  ) throws {
    (self.folder, self.recordCount, self.horizon) = (folder, recordCount, horizon)
    (self.number, author) = (number, identity.member)
    setDigest = try set.digest
    signature = try identity.sign(fleet + signed, as: .collection)
  }

  /// Whether a member that may write in the collection has signed it.
  func isSigned(in fleet: [UInt8], by members: Members) throws -> Bool {
    guard let member = members[author], member.mayWrite, member.access.includes(folder) else { return false }
    return try SignedObject.collection.isValid(signature, of: fleet + signed, by: member.signingKey)
  }

  /// Whether it may come after another one of the collection in the log of heads.
  func follows(_ earlier: CollectionHead) -> Bool { number > earlier.number || self == earlier }

  // MARK: Bytes

  static let byteCount =
    Authority.folderByteCount + SHA256.byteCount + 3 * 8 + MemberID.byteCount + Ed25519.signatureByteCount

  private var signed: [UInt8] {
    var bytes = folder + setDigest
    bytes.append(number: recordCount)
    bytes.append(number: horizon)
    bytes.append(number: number)
    return bytes + author.bytes
  }

  var bytes: [UInt8] { signed + signature }

  init(_ reader: inout ByteReader) throws(MalformedObject) {
    folder = try reader.array(Authority.folderByteCount)
    setDigest = try reader.array(SHA256.byteCount)
    (recordCount, horizon, number) = (try reader.number(), try reader.number(), try reader.number())
    author = MemberID(bytes: try reader.array(MemberID.byteCount))
    signature = try reader.array(Ed25519.signatureByteCount)
  }
}
