import Coffer
import CofferCrypto

extension Fleet {
  /// Whether an error says that the carrier has no state that follows the one that this store is in step with: anyone who can write there can
  /// cause that.
  static func mayCutOff(_ error: any Error) -> Bool {
    switch error {
    case FleetError.damaged, FleetError.rolledBack, FleetError.forked, CarrierError.garbled: true
    // A head of a newer version is written again by its author. Of the members there can be only one next version.
    case FleetError.newerFormat(let object, _, _): object == Head.object
    default: false
    }
  }

  /// The records of the state that this store is in step with, on a carrier whose state cannot be verified.
  ///
  /// They count only as far as they have the digests that this store knows.
  ///
  /// - Parameter damage: Why it cannot; thrown if there is no earlier state, or another admin has changed the members since.
  func verifiedView(behind damage: any Error) async throws -> CarrierView {
    guard let head = membership.head, try await !nextAuthority().isSigned, try await hasAuthority() else {
      throw damage
    }
    var pieces: [Piece.Change] = []
    do {
      pieces = try await self.pieces(of: head, membership.keys)
    } catch FleetError.damaged {
      // Another commit has moved them to their own objects, or they are lost.
    }
    let listed = try await listedView(head)
    var view = if let listed { listed } else { try await knownView() }
    for (place, record) in pieces { view.objects[FleetKeys.object(place)] = .some(record) }
    (view.head, view.isCutOff) = (membership.stored.head, true)
    return view
  }

  /// All that the carrier lists; nil if it has no head, or more than was written.
  private func listedView(_ head: Head) async throws -> CarrierView? {
    do {
      return try await CarrierView.readAll(carrier, CarrierBound(head, membership.keys))
    } catch CarrierError.garbled {
      return nil
    }
  }

  /// What this store knows of, by name.
  private func knownView() async throws -> CarrierView {
    let names = try connection.readFleets { try $0.records(of: membership.id) }.map { FleetKeys.object($0.name) }
    var objects: [String: [UInt8]?] = [:]
    for object in try await carrier.read(names) { objects[object.name] = .some(object.bytes) }
    return CarrierView(head: [], objects: objects, isComplete: false, revision: CarrierRevision(text: ""))
  }

  /// A record that the carrier no longer has as this store took it, as its admin writes it again: commits that are cut off may have replaced it.
  ///
  /// - Returns: The record, and the store's row for it; nil if the store has not taken it.
  /// - Throws: `CofferError.vaultLocked` if its value is sealed, and cannot be read now.
  func written(_ name: [UInt8], by admin: Membership) throws -> (Record, StoredRecord)? {
    try connection.readFleets { transaction in
      guard var row = try transaction.record(named: name, of: admin.id),
        try Consent(transaction, admin.id, admin.members).isAgreed(row.collection)
      else { return nil }
      let content: Record.Content
      if let declaration = row.declaration {
        content = declaration.content.map { .declaration($0) } ?? .declarationTombstone
      } else if let item = try transaction.item(row.key, in: row.collection) {
        content = .value(item.value)
        // With a change of this host that was to be pushed; otherwise it is no later than it was, and wins over nothing that was.
        if item.version != row.version {
          let clock = HybridClock.next(at: item.modified, after: row, now: transaction.time)
          row.clock = Int64(bitPattern: clock.rawValue)
        }
        (row.version, row.isRemoved, row.expires) = (item.version, false, item.value.dates.expires)
      } else {
        content = .tombstone
        (row.version, row.isRemoved, row.expires) = (0, true, nil)
      }
      row.counter += 1
      row.author = admin.identity.member.bytes
      var records = [
        Record(
          collection: row.collection, key: row.key, counter: UInt64(row.counter), clock: row.hybridClock,
          author: admin.identity.member, writer: transaction.authorText, content: content)
      ]
      try Record.sign(&records, by: admin.identity, in: admin.authority.fleet)
      return (records[0], row)
    }
  }

  /// The condition of a version of the members that replaces any head: no admin has published one meanwhile.
  func unpublishedCondition() async throws -> CarrierCondition {
    let next = try await nextAuthority()
    return CarrierCondition(
      name: Authority.object(membership.authority.version + 1), bytes: next.isSigned ? nil : next.bytes)
  }

  /// Whether the carrier has the version of the members that this store knows: without it, others could not follow to the next one.
  private func hasAuthority() async throws -> Bool {
    try await carrier.read([Authority.object(membership.authority.version)]).first?.bytes == membership.stored.authority
  }

  /// What is in the place of the next version of the members, and whether an admin has signed it.
  private func nextAuthority() async throws -> (bytes: [UInt8]?, isSigned: Bool) {
    let bytes = try await carrier.read([Authority.object(membership.authority.version + 1)]).first?.bytes
    guard let bytes else { return (nil, false) }
    do {
      _ = try Authority(bytes, after: membership.authority, digest: membership.authorityDigest)
      return (bytes, true)
    } catch FleetError.damaged {
      return (bytes, false)
    }
  }
}
