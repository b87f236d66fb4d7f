import Coffer
import CofferStorage
import Foundation

// Statements name no columns that they do not change, and count none.

extension CraftedStore {
  // MARK: Values

  /// Bytes that are no value of their kind.
  static let values: [CraftedStore] = joined(
    [
      "0, data = x''", "0, data = x'61'", "1, data = x''", "1, data = x'02'", "1, data = x'0101'", "2, data = x'00'",
      "3, data = x'00'", "4, data = x''", "5, data = x'ff'", "7, data = x'00'", "8, data = x'ff'",
      "8, data = x'680061007a'", "9, data = zeroblob(15)",
      "10, data = x'05ffffffffffffffff7f'", "10, data = x'0502'", "10, data = x'6300'", "10, data = x'0e00'",
      "10, data = x'0d0161'", "10, data = x'0501ff'", "11, data = x'01'", "11, data = x'01ff0000'",
      "11, data = x'0161'", "12, data = x'ff'", "14, data = x''", "14, data = zeroblob(60)",
      "15, data = x''", "99, data = x'00'", "-1, data = x'00'", "256, data = x'00'", "261, data = x'61'",
      "10, data = x'\(nested(130))'",
    ].flatMap { value in
      [
        CraftedStore("UPDATE items SET type = \(value) WHERE key = 'k3'", finding: "The value for \"k3\""),
        CraftedStore("UPDATE history SET type = \(value) WHERE key = 'k0'", finding: "An earlier value for \"k0\""),
      ]
    },
    [
      "x''", "x'00'", "x'63'", "x'05ff'", "x'0102'", "x'0e'", "x'02'",
    ].map {
      CraftedStore("UPDATE items SET metadata = \($0) WHERE key = 'noted'", finding: "The value for \"noted\"")
    },
    [
      // Readers may accept these (FORMAT.md, Values).
      "3, data = x'0000000000000001'", "4, data = x'7ff8000000000000'", "7, data = x'7fefffffffffffff'",
      "7, data = x'7ff8000000000000'", "7, data = x'7ff0000000000000'", "11, data = x'0162000001610000'",
      "11, data = x'0161000001610000'", "12, data = x'7b'",
      "13, data = x'61'", "13, data = x'ff'", "10, data = x'05810061'", "10, data = x'\(nested(100))'",
    ].map { CraftedStore("UPDATE items SET type = \($0) WHERE key = 'k3'", finding: nil) })

  /// The bytes of arrays in arrays, in hexadecimal.
  private static func nested(_ depth: Int) -> String {
    var bytes: [UInt8] = []
    for _ in 0..<depth {
      var element: [UInt8] = [10]
      var count = bytes.count
      while count > 127 {
        element.append(UInt8(count & 127) | 128)
        count >>= 7
      }
      bytes = element + [UInt8(count)] + bytes
    }
    return HexText.text(bytes)
  }

  // MARK: Rows

  static let items: [CraftedStore] = joined(
    ends("UPDATE items SET version = # WHERE key = 'k3'", finding: "\"k3\" in \"c\" refers to commit"),
    ends("UPDATE items SET type = # WHERE key = 'k3'", finding: "The value for \"k3\""),
    ends("UPDATE items SET collection = # WHERE key = 'k3'", finding: "The value for \"k3\" refers to collection"),
    ["modified", "expires", "due"].flatMap {
      ends("UPDATE items SET \($0) = # WHERE key = 'k3'", finding: "", harmless: ends)
    },
    [
      CraftedStore("UPDATE items SET collection = 77 WHERE key = 'k3'", finding: "refers to collection 77"),
      CraftedStore("UPDATE items SET version = 500 WHERE key = 'k3'", finding: "refers to commit 500"),
      CraftedStore("UPDATE items SET key = CAST(x'6bff' AS TEXT) WHERE key = 'k3'", finding: "is not UTF-8"),
      CraftedStore("UPDATE items SET author = CAST(x'ff' AS TEXT) WHERE key = 'k3'", finding: nil),
      CraftedStore("UPDATE items SET author = 'a'||char(10)||'b' WHERE key = 'k3'", finding: nil),
      // Long expired, and not removed yet.
      CraftedStore("UPDATE items SET expires = 1000 WHERE key = 'k3'", finding: nil),
      CraftedStore("DELETE FROM items", finding: "no line that it was removed"),
    ])

  static let collections: [CraftedStore] = joined(
    ends("UPDATE collections SET id = # WHERE name = 'c'", finding: "refers to collection"),
    ends("UPDATE collections SET flags = # WHERE name = 'n'", finding: "\"n\"", harmless: [0]),
    ["count", "age"].flatMap {
      ends(
        "UPDATE collections SET history_\($0) = # WHERE name = 'c'", finding: "The limits of the history of \"c\"",
        harmless: [.max, 1 << 60])
    },
    ends("UPDATE sqlite_sequence SET seq = #", finding: "last ID of a collection", harmless: [1 << 60]),
    [
      CraftedStore("UPDATE collections SET flags = flags | 8 WHERE name = 'n'", finding: "\"n\" is newer"),
      CraftedStore("UPDATE collections SET flags = flags | 1 WHERE name = 'n'", finding: "The declaration of \"n\""),
      CraftedStore(
        "UPDATE collections SET flags = flags & ~1 WHERE name = 'tokens'", finding: "The declaration of \"tokens\""),
      CraftedStore("INSERT INTO collections(name) VALUES ('tokens@dev')", finding: "The declaration of \"tokens@dev\""),
      CraftedStore("UPDATE collections SET flags = flags | 2 WHERE name = 'n'", finding: "The limits of the history"),
      CraftedStore(
        "UPDATE collections SET history_count = NULL WHERE name = 'c'", finding: "The limits of the history"),
      CraftedStore("UPDATE collections SET name = CAST(x'6bff' AS TEXT) WHERE name = 'n'", finding: "is not UTF-8"),
      CraftedStore("UPDATE collections SET name = 'elsewhere' WHERE name = 'n'", finding: nil),
      CraftedStore("UPDATE collections SET name = 'elsewhere' WHERE name = 'tokens'", finding: "\"elsewhere\""),
      CraftedStore("DELETE FROM collections WHERE name = 'n'", finding: "refers to collection"),
      CraftedStore("DELETE FROM collections", finding: "refers to collection"),
      CraftedStore("DELETE FROM sqlite_sequence", finding: "collection"),
      CraftedStore("INSERT INTO sqlite_sequence VALUES ('collections', 1)", finding: "collection"),
    ])

  static let history: [CraftedStore] = joined(
    ["version", "ended", "type"].flatMap {
      ends("UPDATE history SET \($0) = # WHERE key = 'k0'", finding: "An earlier value for \"k0\"")
    },
    ["modified", "time"].flatMap {
      ends("UPDATE history SET \($0) = # WHERE key = 'k0'", finding: "", harmless: ends)
    },
    [
      CraftedStore("UPDATE history SET collection = 77 WHERE key = 'k0'", finding: "refers to collection 77"),
      CraftedStore("UPDATE history SET ended = 500 WHERE key = 'k0'", finding: "ended with commit 500"),
      CraftedStore("UPDATE history SET metadata = x'' WHERE key = 'k0'", finding: "An earlier value for \"k0\""),
      CraftedStore("UPDATE history SET key = CAST(x'6bff' AS TEXT) WHERE key = 'k0'", finding: "is not UTF-8"),
      CraftedStore("DELETE FROM history", finding: nil),
    ])

  // MARK: The change log

  static let changes: [CraftedStore] = joined(
    ends(
      "UPDATE OR REPLACE changes SET sequence = # WHERE sequence = (SELECT max(sequence) FROM changes)",
      finding: "change log"),
    ["total", "time", "writer"].flatMap { ends("UPDATE changes SET \($0) = #", finding: "change log") },
    [
      "UPDATE changes SET keys = x'00ffffffffffffffffff010001'",
      "UPDATE changes SET keys = x'0001000104ffffffffffffffff7f'",
      "UPDATE changes SET keys = x'ff' WHERE sequence = 2", "UPDATE changes SET keys = x'' WHERE sequence = 2",
      "UPDATE changes SET noise = x'' WHERE sequence = 2", "UPDATE changes SET author = 'a' WHERE sequence = 2",
      "UPDATE changes SET author = CAST(x'ff' AS TEXT) WHERE sequence = 2", "UPDATE changes SET link = x''",
      "UPDATE changes SET link = zeroblob(16) WHERE sequence = (SELECT max(sequence) FROM changes)",
      "DELETE FROM changes", "DELETE FROM changes WHERE sequence = 3", "DELETE FROM changes WHERE sequence < 3",
      "INSERT OR REPLACE INTO meta VALUES ('log_start', x'00')",
      "INSERT OR REPLACE INTO meta VALUES ('log_start', NULL)",
    ].map { CraftedStore($0, finding: "change log") },
    [
      // The chain is whole: only the next commit has no number.
      CraftedStore("a change log at the last number", finding: "change log") { bench in
        try bench.change { try $0.changeLog.begin(after: ChangeLog.maximumNumber - 1) }
      },
      // As if no row had been removed.
      CraftedStore(
        "INSERT OR REPLACE INTO meta VALUES ('log_start', x'ff\(String(repeating: "00", count: 31))')", finding: nil),
      // Only a record outside of the store has its number (SECURITY.md, the change log).
      CraftedStore("DELETE FROM changes WHERE sequence = (SELECT max(sequence) FROM changes)", finding: nil),
      CraftedStore("a change log that starts later", finding: nil) { bench in
        try bench.change { try $0.changeLog.begin(after: 50) }
      },
    ])

  // MARK: The vault

  static let vault: [CraftedStore] = joined(
    [
      "generation = 0", "generation = -1", "generation = 4294967296", "generation = 99", "id = x'00'",
      "id = zeroblob(16)", "mac = x''", "mac = zeroblob(32)", "sealed = x''", "sealed = x'00'",
      "sealed = x'ffffffff61'",
      "sealed = x'00000001620000000161'", "sealed = x'00000001610000000161'",
      "sealed = x'00000001ff'", "slots = x''", "slots = x'ffff'", "slots = CAST(slots || slots AS BLOB)",
      "slots = CAST(slots || x'0001ff' AS BLOB)", "slots = substr(slots, 1, 60)",
    ].map { CraftedStore("UPDATE vault SET \($0)", finding: "vault") },
    [
      CraftedStore(
        "CREATE TEMP TABLE other AS SELECT * FROM vault; UPDATE other SET generation = 7; INSERT INTO vault SELECT * FROM other",
        finding: "2 vaults"),
      CraftedStore("DELETE FROM vault", finding: "tokens"),
      CraftedStore("a vault of the last generation", finding: "vault") { bench in
        try bench.changeVault(generation: Int64(UInt32.max)) { _, _ in }
      },
      CraftedStore("a vault of a later generation than its values", finding: "\"k\" in \"tokens\"") { bench in
        try bench.changeVault(generation: 5) { _, _ in }
      },
      CraftedStore("a vault that lists a collection that is not sealed", finding: "The declaration of \"n\"") { bench in
        try bench.changeVault { try $0.setSealed(true, "n", key: $1) }
      },
      CraftedStore("a vault that lists a collection that is missing", finding: "The declaration of \"none\"") { bench in
        try bench.changeVault { try $0.setSealed(true, "none", key: $1) }
      },
      CraftedStore("a vault that does not list a sealed collection", finding: "The declaration of \"tokens\"") {
        bench in
        try bench.changeVault { try $0.setSealed(false, "tokens", key: $1) }
      },
    ],
    [
      "type = 5, data = CAST('planted' AS BLOB)", "metadata = CAST(x'05' || 'planted' AS BLOB)",
      "type = 13, data = CAST('planted' AS BLOB), metadata = NULL", "data = substr(data, 1, 20)",
      "data = CAST(x'00000000' || substr(data, 5) AS BLOB)", "data = CAST(x'00000007' || substr(data, 5) AS BLOB)",
      "data = CAST(substr(data, 1, length(data) - 1) || x'' AS BLOB)", "key = 'elsewhere'",
    ].flatMap { change in
      [
        CraftedStore("UPDATE items SET \(change) WHERE type = 14", finding: "in \"tokens\""),
        CraftedStore("UPDATE history SET \(change) WHERE type = 14", finding: "in \"tokens\""),
      ]
    },
    [
      CraftedStore(
        "UPDATE items SET (type, data) = (SELECT type, data FROM items WHERE type = 14) WHERE key = 'k3'",
        finding: "The value for \"k3\"")
    ])

  // MARK: Fleets

  /// For a store that has been in a fleet; others refuse these statements.
  static let fleets: [CraftedStore] = joined(
    [
      "fleet = x''", "member = x''", "identity = x''", "first = x''", "head = x'00'", "authority = x''",
      "authority = x'00'", "members = x''", "members = x'00'", "sum = x''",
    ].map { CraftedStore("UPDATE fleets SET \($0)", finding: "fleets is damaged") },
    ends("UPDATE fleets SET number = #", finding: "fleets is damaged", harmless: [0, 1 << 60]),
    ends("UPDATE fleets SET sequence = #", finding: "fleets is damaged", harmless: [-1, 0, 1 << 60]),
    ends("UPDATE fleets SET synced = #", finding: "", harmless: ends),
    ends("UPDATE fleet_records SET version = #", finding: "fleets is damaged", harmless: [-1, 0, 1 << 60]),
    ends("UPDATE fleet_records SET counter = #", finding: "fleets is damaged", harmless: [1 << 60]),
    ends("UPDATE fleet_records SET clock = #", finding: "", harmless: ends),
    ends("UPDATE fleet_records SET fleet = #", finding: "fleets is damaged"),
    ends("UPDATE fleet_records SET removed = #", finding: "fleets is damaged", harmless: [0]),
    ["name = x''", "author = x''"].map {
      CraftedStore("UPDATE fleet_records SET \($0)", finding: "fleets is damaged")
    },
    [
      "'c', 'k', id, x'05', 0, 2, zeroblob(16), 1, x'', 1, 'a', NULL, '{', NULL",
      "'c', 'k', id, x'05', 1, 2, zeroblob(15), 1, x'', 1, 'a', NULL, '{', NULL",
      "'c', 'k', id, x'05', 1, 2, zeroblob(16), 1 << 61, x'', 1, 'a', NULL, '{', NULL",
      "'c', 'k', id, x'05', 1, 2, zeroblob(16), 1, x'', 7, 'a', NULL, '{', NULL",
      "'c', 'k', id, x'05', 1, 2, zeroblob(16), 1, x'', 1, NULL, NULL, '{', NULL",
      "'c', 'k', 77, x'05', 1, 2, zeroblob(16), 1, x'', 1, 'a', NULL, '{', NULL",
    ].map { CraftedStore("INSERT INTO fleet_declarations SELECT \($0) FROM fleets", finding: "fleets is damaged") },
    [
      // From another host, maybe of a later version.
      CraftedStore(
        """
        INSERT INTO fleet_declarations SELECT 'c', 'k0', id, x'05', 1, 2, zeroblob(16), 1, x'', 1, 'a', NULL, '{', NULL FROM fleets
        """, finding: nil),
      CraftedStore("INSERT INTO fleet_lost_declarations VALUES (77, 'a', NULL, '{}')", finding: "fleets is damaged"),
      CraftedStore("INSERT INTO fleet_rules SELECT id, 'c', 77 FROM fleets", finding: "fleets is damaged"),
      CraftedStore("INSERT INTO fleet_rules VALUES (77, 'c', 0)", finding: "fleets is damaged"),
      CraftedStore("UPDATE fleets SET carrier = 'gopher://x'", finding: nil),
      CraftedStore("UPDATE fleet_records SET digest = x'00'", finding: nil),
      CraftedStore(
        "INSERT INTO fleet_conflicts SELECT 1, id, 'c', 'k0', 7, 9223372036854775807, '', '' FROM fleets", finding: nil),
    ])
}
