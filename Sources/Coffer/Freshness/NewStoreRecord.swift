import CofferStorage

/// The record of a store that is being created: it takes the place of that of an earlier store of the same name.
struct NewStoreRecord {
  private let freshness: Freshness
  /// nil if nothing is remembered of the new store.
  private var record: [UInt8]?

  init(_ freshness: Freshness) { self.freshness = freshness }

  /// Seals the state of the new store as a record.
  mutating func remember(_ store: Store, _ connection: SQLiteConnection) throws {
    let end = try ChangeLog(connection: connection).end()
    record = try store.seal(Witness(envelope: store.envelopeSequence, commit: end.number, link: end.link))
  }

  /// Runs `name`, which gives the store its name, when the record is there: no other file passes for the new store, even one
  /// that gets the name first.
  func keep(ofStoreAt path: String, _ user: UInt32, _ name: () throws -> Void) throws {
    guard let anchor = freshness.anchor(ofStoreAt: path, user: user) else { return try name() }
    try anchor.replacingAlone(storeAt: path) { try keep(in: anchor, ofStoreAt: path, name) }
  }

  private func keep(in anchor: any FreshnessAnchor, ofStoreAt path: String, _ name: () throws -> Void) throws {
    let earlier = anchor.record(ofStoreAt: path)
    // Another anchor may have one record for all paths, as for the only store of a device.
    guard record != nil || earlier != nil && anchor is FileAnchor else { return try name() }
    anchor.keep(record, ofStoreAt: path)
    // After a power failure, the earlier record would speak of another store.
    if earlier != nil { (anchor as? any SynchronizedAnchor)?.synchronizeRecord(ofStoreAt: path) }
    do {
      try name()
    } catch {
      anchor.keep(earlier, ofStoreAt: path)
      throw error
    }
  }
}
