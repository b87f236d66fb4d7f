import Coffer
import CofferCrypto

/// A sealed collection travels like any other: opened with this store's vault as it leaves, sealed with theirs as it comes.
extension Fleet {
  /// Seals shared collections in the fleet: each host takes their values only where it has sealed them with a vault of its own.
  ///
  /// Until then they wait on that host, see ``FleetWait/Reason/notSealedHere``; what it has of them stays as it is. A collection that is sealed on
  /// the host where it is shared is sealed in the fleet from the start.
  ///
  /// ```swift
  /// try database.seal(collection: "tokens")
  /// try await fleet.seal(collections: ["tokens"])
  /// ```
  ///
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin, `.collectionNotShared`; what ``sync()`` throws.
  @discardableResult
  public func seal(collections: [String]) async throws -> SyncReport { try await setSealed(true, collections) }

  /// Lets members keep shared collections unsealed.
  ///
  /// They stay sealed where they are, until each is unsealed there. A host that may write and has one sealed takes its values then, and gives none.
  ///
  /// - Throws: ``FleetError/notAllowed(role:)`` if this host is not an admin, `.collectionNotShared`; what ``sync()`` throws.
  @discardableResult
  public func unseal(collections: [String]) async throws -> SyncReport { try await setSealed(false, collections) }

  private func setSealed(_ isSealed: Bool, _ collections: [String]) async throws -> SyncReport {
    try await change { members, _ in
      try members.setSealed(isSealed, collections)
      return false
    }
    // What waited for that.
    return try await sync()
  }

  /// Those of these collections that are sealed here.
  static func sealedHere(_ collections: [String], _ transaction: FleetTransaction) throws -> Set<ByteString> {
    Set(try collections.filter(transaction.isSealed).map(ByteString.init))
  }

  /// The records of a collection that this store has passed over, after verifying them against the signed head.
  ///
  /// - Parameter objects: All on the carrier, with the changes in the head's pieces.
  static func verified(
    _ objects: [String: [UInt8]?], in collection: String, under head: Head, _ membership: Membership
  ) throws -> [(collection: String, place: [UInt8], digest: [UInt8])] {
    guard let keys = membership.keys.collection(named: collection) else { return [] }
    var authors = AuthorCheck(membership.members, in: membership.authority.fleet)
    var records: [(collection: String, place: [UInt8], digest: [UInt8])] = []
    for (object, bytes) in objects {
      guard let bytes, let place = membership.keys.place(ofObject: object), FleetKeys.folder(of: place) == keys.folder
      else { continue }
      let record = try Record(opening: bytes, at: place, membership.keys)
      try record.checkCounter(at: place, head)
      try authors.check(record, object)
      records.append((collection, place, try bytes.digest))
    }
    let set = try RecordSet(records.lazy.map { (CollectionKeys.name(of: $0.place), $0.digest) })
    guard let expected = head.collection(keys.folder), UInt64(records.count) == expected.recordCount,
      ConstantTime.isEqual(try set.digest, expected.setDigest)
    else {
      throw FleetError.damaged(object: Head.object, reason: "the records do not match its commit \(head.number)")
    }
    return records
  }
}
