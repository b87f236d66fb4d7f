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
  let refusal = Refusal()

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
        guard opensRecords else {
          prepared.records[name] = (digest, nil)
          continue
        }
        do {
          let record = try Record(opening: object.bytes, named: name, keys)
          try authors.check(record, object.name)
          prepared.records[name] = (digest, record)
        } catch {
          // Before more of the same arrives.
          refusal.error = error
          throw error
        }
      }
    }
    prepared.set = try RecordSet(prepared.records.lazy.map { ($0.key, $0.value.digest) })
    return prepared
  }
}

/// Why the records that arrive are no use; at once, as the carrier may send without end.
final class Refusal: Sendable {
  private let state = Lock<(any Error)?>(nil)

  var error: (any Error)? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
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
