import CofferStorage
import Foundation

extension CraftedStore {
  // MARK: The schema

  static let schema: [CraftedStore] = joined(
    [
      """
      ALTER TABLE items RENAME TO hidden;
      CREATE VIEW items(collection, key, version, modified, type, metadata, data) AS
      WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 1, 'k' || x, 1, 1, 5, NULL, x'61' FROM n
      """,
      "CREATE VIEW more AS SELECT * FROM items", "CREATE INDEX more ON items(hex(data))", "DROP INDEX history_by_time",
      "DROP TABLE history", "CREATE TRIGGER more AFTER INSERT ON meta BEGIN DELETE FROM items; END",
      "CREATE TABLE more(x DEFAULT (randomblob(9)))", "ALTER TABLE vault ADD COLUMN more TEXT",
      "ALTER TABLE collections RENAME COLUMN flags TO banners", "DROP TABLE declarations",
    ].map { CraftedStore($0, finding: "schema") },
    [0, 4, -1].map { CraftedStore("PRAGMA user_version = \($0)", finding: "schema") },
    [
      CraftedStore("PRAGMA user_version = 1000000", finding: "newer"),
      CraftedStore("DELETE FROM meta", finding: "envelope"),
      CraftedStore("UPDATE meta SET value = x'00' WHERE name = 'store_id'", finding: "envelope"),
      CraftedStore("UPDATE meta SET value = x'00' WHERE name = 'envelope_sequence'", finding: "envelope"),
      CraftedStore("UPDATE meta SET value = x'7fffffffffffffff' WHERE name = 'envelope_sequence'", finding: "envelope"),
      CraftedStore("INSERT INTO meta VALUES ('later', x'00')", finding: nil),
    ])

  // MARK: The envelope

  static let envelope: [CraftedStore] = joined(
    [0, 1].flatMap { copy -> [CraftedStore] in
      let start = copy * Layout.envelopeCopyByteCount
      return [
        CraftedStore("copy \(copy) of the envelope is damaged", finding: "Copy \(copy) of the envelope is damaged") {
          bench in
          try bench.changeFile { $0[start + 100] ^= 1 }
        },
        CraftedStore("copy \(copy) of the envelope is not one", finding: "Copy \(copy) of the envelope is damaged") {
          bench in
          try bench.changeFile { $0[start] ^= 1 }
        },
        CraftedStore("copy \(copy) of the envelope is outdated", finding: "Copy \(copy) of the envelope is outdated") {
          bench in
          let old = Array(try Data(contentsOf: URL(fileURLWithPath: bench.path)))
          let database = try bench.open()
          try database.setLabel("stick of old", forSlot: 1)
          try database.close()
          let copy = start..<start + Layout.envelopeCopyByteCount
          try bench.changeFile { $0.replaceSubrange(copy, with: old[copy]) }
        },
        CraftedStore("copy \(copy) of the envelope has a slot of an unknown kind", finding: "newer") { bench in
          try bench.changeEnvelope(copies: [copy]) { $0[$0.slot(0) + 1] = 9 }
        },
        CraftedStore("copy \(copy) of the envelope has a slot of kind 0", finding: "envelope") { bench in
          try bench.changeEnvelope(copies: [copy]) { $0[$0.slot(0) + 1] = 0 }
        },
      ]
    },
    [
      CraftedStore("an envelope that is damaged", finding: "envelope") { bench in
        try bench.changeFile { for start in [0, Layout.envelopeCopyByteCount] { $0[start + 100] ^= 1 } }
      },
      CraftedStore("an envelope changed without its key", finding: "envelope") { bench in
        try bench.changeEnvelope { _ in }
        try bench.changeFile { file in
          for start in [0, Layout.envelopeCopyByteCount] {
            file[start + 47] ^= 1
            let copy = start..<start + Layout.envelopeCopyByteCount
            file.replaceSubrange(copy, with: try Envelope.checksummed(file[copy]))
          }
        }
      },
      CraftedStore("an envelope of the last sequence", finding: "envelope") { bench in
        try bench.changeEnvelope { $0.replaceSubrange(16..<24, with: [UInt8](repeating: 255, count: 8)) }
      },
      CraftedStore("an envelope of a later sequence than the pages say", finding: nil) { bench in
        try bench.changeEnvelope { $0[23] += 1 }
      },
      CraftedStore("an envelope of another store", finding: "page 1") { bench in
        let other = try CraftingBench(in: bench.folder + "-other")
        defer { try? FileManager.default.removeItem(atPath: other.folder) }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: other.path)).prefix(Layout.envelopeByteCount)
        try bench.changeFile { $0.replaceSubrange(..<Layout.envelopeByteCount, with: bytes) }
        for file in ["key", "other-key"] {
          try FileManager.default.removeItem(atPath: "\(bench.folder)/\(file)")
          try FileManager.default.copyItem(atPath: "\(other.folder)/\(file)", toPath: "\(bench.folder)/\(file)")
        }
      },
      CraftedStore("a slot of costs out of bounds", finding: "Slot 2") { bench in
        try bench.changeEnvelope { $0.replaceSubrange($0.slot(2) + 4..<$0.slot(2) + 8, with: [0, 0, 0, 60]) }
      },
      CraftedStore("a slot stretched in an unknown way", finding: "newer") { bench in
        try bench.changeEnvelope { $0[$0.slot(2) + 2] = 77 }
      },
      CraftedStore("an epoch that does not open", finding: "epoch") { bench in
        // Before the succession.
        try bench.changeEnvelope { $0[$0.count - 105] ^= 1 }
      },
      CraftedStore("an epoch of the last number", finding: "epoch") { bench in
        try bench.changeEpoch(number: .max)
      },
    ])

  // MARK: Page 1

  static let header: [CraftedStore] = joined(
    headerBytes(
      [
        (16, 2), (16, 32), (18, 1), (18, 0), (18, 3), (18, 255), (19, 1), (19, 0), (19, 3), (19, 255), (20, 0),
        (21, 63), (23, 0),
        (44, 9),
        (47, 9), (52, 1), (56, 1), (59, 2), (59, 9),
      ], finding: "header"),
    headerBytes([(0, 0), (100, 9)], finding: "database"),
    [
      CraftedStore("bytes 18 and 19 of page 1 are 1", finding: "header") { bench in
        try bench.changePage(1) { ($0[18], $0[19]) = (1, 1) }
      }
    ],
    [
      CraftedStore("page 1 says that there are fewer pages", finding: "after the last page") { bench in
        try bench.changePage(1) { $0[31] -= 3 }
      },
      CraftedStore("page 1 says that there are more pages", finding: "missing") { bench in
        try bench.changePage(1) { $0[30] = 1 }
      },
      CraftedStore("page 1 does not say how many pages there are", finding: "does not say how many") { bench in
        try bench.changePage(1) { $0[27] &+= 1 }
      },
      CraftedStore("page 1 says that there are free pages", finding: "freelist") { bench in
        try bench.changePage(1) { $0[39] = 200 }
      },
    ])

  private static func headerBytes(_ bytes: [(offset: Int, value: UInt8)], finding: String) -> [CraftedStore] {
    bytes.map { byte in
      CraftedStore("byte \(byte.offset) of page 1 is \(byte.value)", finding: finding) { bench in
        try bench.changePage(1) { $0[byte.offset] = byte.value }
      }
    }
  }

  // MARK: The log

  static let log: [CraftedStore] = joined(
    [
      CraftedStore("a log", finding: nil) { try $0.leaveLog() },
      CraftedStore("a log of version 0", finding: "log") {
        try $0.changeLogHeader { $0.replaceSubrange(4..<8, with: [0, 0, 0, 0]) }
      },
      CraftedStore("a log of a later version", finding: "log") { try $0.changeLogHeader { $0[7] += 1 } },
      CraftedStore("a log with another magic number", finding: "log") { try $0.changeLogHeader { $0[0] = 0 } },
      // Whose frames are those of no commit, as after a truncation: only a record outside of the store has their number.
      CraftedStore("a log with other checksums", finding: nil) { try $0.changeLogHeader { $0[3] ^= 1 } },
      CraftedStore("a log of other pages", finding: "log") { try $0.changeLogHeader { $0[10] = 32 } },
      CraftedStore("a log with other salts", finding: nil) { try $0.changeLogHeader { $0[20] ^= 1 } },
    ],
    [0, 4, 7, 10, 16, 24].map { offset in
      CraftedStore("a log with byte \(offset) flipped", finding: "log") { bench in
        try bench.leaveLog()
        try bench.changeFile("-wal") { $0[offset] ^= 1 }
      }
    },
    [
      CraftedStore("a log with a damaged frame", finding: "log") { bench in
        try bench.leaveLog()
        try bench.changeFile("-wal") { $0[100] ^= 1 }
      },
      CraftedStore("an empty log", finding: nil) { try Data().write(to: URL(fileURLWithPath: $0.path + "-wal")) },
    ])

  // MARK: Files

  static let beside: [CraftedStore] = [
    CraftedStore("bytes after the last page", finding: "after the last page") { bench in
      try bench.changeFile { $0 += [1, 2, 3] }
    },
    CraftedStore("a truncated file", finding: "missing") { bench in
      try bench.changeFile { $0.removeLast(2 * Layout.pageByteCount) }
    },
    CraftedStore("a damaged page", finding: "Page 3") { bench in
      try bench.changeFile { $0[Layout.envelopeByteCount + 2 * Layout.pageByteCount + 9] ^= 1 }
    },
    CraftedStore("a damaged first page", finding: "age 1") { bench in
      try bench.changeFile { $0[Layout.envelopeByteCount + 9] ^= 1 }
    },
    CraftedStore("an envelope without pages", finding: "truncated") { bench in
      try bench.changeFile { $0.removeLast($0.count - Layout.envelopeByteCount) }
    },
    CraftedStore("a folder in the place of the log", finding: "-wal") { bench in
      try FileManager.default.createDirectory(atPath: bench.path + "-wal", withIntermediateDirectories: false)
    },
    CraftedStore("a folder in the place of the shared memory", finding: "-shm") { bench in
      try FileManager.default.createDirectory(atPath: bench.path + "-shm", withIntermediateDirectories: false)
    },
  ]
}

extension [UInt8] {
  /// Where the record of a slot begins in a copy of the envelope; after the last slot, that of the first epoch.
  func slot(_ index: Int) -> Int {
    (0..<index).reduce(58) { start, _ in start + 2 + Int(self[start - 2]) << 8 + Int(self[start - 1]) }
  }
}
