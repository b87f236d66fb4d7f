import CofferCrypto

/// Digests, hashes and opens records while more are being read from the carrier.
struct Preparation: Sendable {
  let fleetKey: SecretBytes
  let fleet: [UInt8]
  let epoch: UInt32
  let folder: [UInt8]
  let members: Members
  /// Whether to open the records too: if the store has none of them yet.
  let opensRecords: Bool

  init(_ membership: Membership) {
    let authority = membership.authority
    (fleetKey, fleet) = (membership.fleetKey, authority.fleet)
    (epoch, folder, members) = (authority.epoch, authority.folder, membership.members)
    opensRecords = membership.stored.head.isEmpty
  }

  func records(of pages: AsyncStream<[CarrierObject]>) async throws -> PreparedRecords {
    // The ciphers of the membership's keys belong to another thread.
    let keys = try FleetKeys(fleetKey: fleetKey, fleet: fleet, epoch: epoch, folder: folder)
    var prepared = PreparedRecords(folder: keys.folder)
    var authors = AuthorCheck(members, in: fleet)
    for await page in pages {
      for object in page {
        guard let name = keys.name(ofObject: object.name) else { continue }
        let digest = try object.bytes.digest
        // Applying the record reports why it does not open, or was not signed.
        let record = opensRecords ? try? Record(opening: object.bytes, named: name, keys) : nil
        let isSigned = record.map { (try? authors.check($0, object.name)) != nil } ?? false
        prepared.records[name] = (digest, isSigned ? record : nil)
      }
    }
    prepared.set = try RecordSet(prepared.records.lazy.map { ($0.key, $0.value.digest) })
    return prepared
  }
}

/// Processed records.
///
/// Do not trust them before the head has the digest of `set`.
struct PreparedRecords: Sendable {
  /// The folder of the keys: other keys give all records other names.
  let folder: String
  /// All of them.
  var set = RecordSet()
  /// By name; opened, and their authors checked.
  var records: [[UInt8]: (digest: [UInt8], record: Record?)] = [:]
}
