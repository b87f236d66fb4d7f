import CofferCrypto

/// Digests, hashes and opens records while more are being read from the carrier.
struct Preparation: Sendable {
  let secrets: FleetKeys.Secrets
  let members: Members
  /// Whether to open the records too: if the store has none of them yet.
  let opensRecords: Bool
  let refusal = Refusal()

  init(_ membership: Membership) {
    (secrets, members) = (membership.keys.secrets, membership.members)
    opensRecords = membership.stored.head.isEmpty
  }

  func records(of pages: AsyncStream<[CarrierObject]>) async throws -> PreparedRecords {
    // The ciphers of the membership's keys belong to another thread.
    let keys = try FleetKeys(secrets)
    var prepared = PreparedRecords(folders: keys.collections.map(\.folder))
    var authors = AuthorCheck(members, in: secrets.fleet)
    for await page in pages {
      for object in page {
        guard let place = keys.place(ofObject: object.name) else { continue }
        let digest = try object.bytes.digest
        guard opensRecords else {
          prepared.records[place] = (digest, nil)
          continue
        }
        do {
          let record = try Record(opening: object.bytes, at: place, keys)
          try authors.check(record, object.name)
          prepared.records[place] = (digest, record)
        } catch {
          // Before more of the same arrives.
          refusal.error = error
          throw error
        }
      }
    }
    prepared.sets = try RecordSet.sets(prepared.records.lazy.map { ($0.key, $0.value.digest) })
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
/// Do not trust them before the head has the digests of `sets`.
struct PreparedRecords: Sendable {
  /// The folders of the collections whose records they are: other keys have others.
  let folders: [[UInt8]]
  /// All of them, by folder.
  var sets: [[UInt8]: RecordSet] = [:]
  /// By place; opened, and their authors checked.
  var records: [[UInt8]: (digest: [UInt8], record: Record?)] = [:]
}
