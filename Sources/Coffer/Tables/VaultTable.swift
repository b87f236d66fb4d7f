import CofferStorage

/// The table `vault`: the store's vault, if it has one.
struct VaultTable {
  let connection: SQLiteConnection

  /// Whether there is a vault.
  func hasRecord() throws -> Bool {
    try connection.statement("SELECT 1 FROM vault LIMIT 1").hasRow()
  }

  func record() throws -> VaultRecord? {
    try connection.statement(
      "SELECT generation, id, mac, sealed, slots, succession FROM vault ORDER BY generation DESC LIMIT 1"
    ).first { row in
      try VaultRecord(
        id: row.bytes(1), generation: row.integer(0), mac: row.bytes(2), sealedCollections: row.bytes(3),
        slots: row.bytes(4), succession: row.bytes(5))
    }
  }

  /// The MAC of the record, without the rest of it.
  func mac() throws -> [UInt8]? {
    try connection.statement("SELECT mac FROM vault ORDER BY generation DESC LIMIT 1").first { $0.bytes(0) }
  }

  /// Replaces the record.
  func set(_ record: VaultRecord) throws {
    try connection.statement("DELETE FROM vault").run()
    try connection.statement(
      "INSERT INTO vault VALUES (?, ?, ?, ?, ?, ?)", Int64(record.generation), record.id, record.mac,
      record.encodedSealedCollections, record.encodedSlots, record.succession
    ).run()
  }
}
