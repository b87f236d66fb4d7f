import CofferStorage

/// The table `meta`, which ties the pages to their envelope.
package struct Metadata {
  let connection: SQLiteConnection

  package init(connection: SQLiteConnection) {
    self.connection = connection
  }

  /// Writes the store's ID, and the sequence of its first envelope.
  package func bind(to store: Store) throws {
    let envelope = store.envelope
    try connection.beginWrite(.full)
    do {
      try set("store_id", envelope.storeID)
      try setEnvelopeSequence(envelope.sequence)
      try ChangeLog(connection: connection).append(ChangeSet(), time: Clock.millisecondsSince1970, writer: 0)
      try connection.commit()
    } catch {
      try? connection.rollback()
      throw error
    }
  }

  /// Writes the sequence of the newest envelope, in the current transaction.
  func setEnvelopeSequence(_ sequence: UInt64) throws {
    try set("envelope_sequence", Self.bytes(sequence))
  }

  /// The last row dropped from the change log because of its age; nil if there is none.
  func logStart() throws -> ChangeLog.End? {
    let bytes = try connection.statement("SELECT value FROM meta WHERE name = 'log_start'").first { $0.bytes(0) }
    guard let bytes else { return nil }
    guard let link = bytes.dropFirst(16).withUnsafeBytes(ChangeLink.init) else {
      throw StorageError.damaged(part: "change log", reason: "its header does not parse")
    }
    func number(_ range: Range<Int>) -> Int64 { bytes[range].reduce(0) { $0 << 8 | Int64($1) } }
    return ChangeLog.End(number: number(0..<8), total: number(8..<16), link: link)
  }

  func setLogStart(_ end: ChangeLog.End?) throws {
    guard let end else { return try connection.execute("DELETE FROM meta WHERE name = 'log_start'") }
    let numbers = [end.number, end.total].flatMap { Self.bytes(UInt64(bitPattern: $0)) }
    try set("log_start", numbers + end.link.bytes)
  }

  /// Refuses an envelope other than this store's newest.
  ///
  /// - Returns: Whether the pages have the number of the envelope, and not only of an earlier one.
  func check(against store: Store) throws -> Bool {
    var storeID: [UInt8]?
    var envelopeSequence: [UInt8]?
    try connection.statement("SELECT name, value FROM meta").query { row in
      switch row.text(0) {
      case "store_id": storeID = row.bytes(1)
      case "envelope_sequence": envelopeSequence = row.bytes(1)
      default: break
      }
    }
    guard storeID == store.storeID else {
      throw StorageError.damaged(part: "envelope", reason: "it belongs to another store")
    }
    guard let bytes = envelopeSequence, bytes.count == 8 else {
      throw StorageError.damaged(part: "envelope", reason: "the pages do not identify it")
    }
    let sequence = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    // It may have been changed since it was read.
    if sequence > store.envelope.sequence { try store.refresh() }
    guard sequence <= store.envelope.sequence else {
      throw StorageError.damaged(part: "envelope", reason: "it is older than the pages; an old copy was put back")
    }
    return sequence == store.envelope.sequence
  }

  private static func bytes(_ value: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: value)
    return bytes
  }

  private func set(_ name: String, _ value: [UInt8]) throws {
    try connection.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)", name, value).run()
  }
}
