import CofferCrypto
import Foundation

@testable import Coffer
@testable import CofferStorage
@testable import PrefsCommands

/// What fuzzing begins with: of each target a few inputs that are right.
enum FuzzSeeds {
  /// Writes each into `FOLDER/TARGET/seed-NUMBER`.
  static func write(to folder: String) throws {
    for (target, inputs) in try all() {
      try FileManager.default.createDirectory(atPath: "\(folder)/\(target)", withIntermediateDirectories: true)
      for (index, bytes) in inputs.enumerated() {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/\(target)/seed-\(index)"))
      }
    }
  }

  private static func all() throws -> [String: [[UInt8]]] {
    var seeds = try storage().merging(values()) { $0 + $1 }
    for (target, inputs) in texts { seeds[target, default: []] += inputs.map { Array($0.utf8) } }
    return seeds
  }

  // MARK: Storage

  private static func storage() throws -> [String: [[UInt8]]] {
    var vault = try VaultRecord.make(
      id: FuzzStore.storeID, slot: PreparedSecret(.key(FuzzStore.rootKey), label: "seed", owner: FuzzStore.storeID))
    try vault.record.setSealed(true, "tokens", key: vault.key)
    let list = vault.record.encodedSealedCollections
    let codec = try PageCodec(keys: [FuzzStore.epochKeys()])
    var page = [UInt8](repeating: 0, count: Layout.pageByteCount)
    try page.withUnsafeMutableBytes { page in
      guard let start = page.baseAddress else { return }
      try codec.encrypt(start, at: .database(page: 1), into: start)
    }
    let pages = try samplePages()
    let frames = pages.enumerated().map { index, page in
      let isLast = index == pages.count - 1
      return [0, 0, 0, UInt8(index + 1), 0, 0, 0, isLast ? UInt8(pages.count) : 0]
        + [UInt8](repeating: 0, count: 16) + page
    }
    let log = [UInt8](repeating: 0, count: Layout.logHeaderByteCount) + frames.joined()
    return [
      "envelope": [try envelope()],
      "vault-record": [[UInt8(list.count)] + vault.record.mac + list + vault.record.encodedSlots],
      "key-text": [
        Array("coffer-key-1:\(String(repeating: "0f", count: 32))\n".utf8),
        RecoveryKey.text(of: SecretBytes(count: 20) { _ in }).withUnsafeBytes(Array.init),
      ],
      "page": [[0] + [UInt8](repeating: 0, count: Layout.frameHeaderByteCount) + page],
      "log": [[3] + log, [7] + log, [1] + log, [0] + log.prefix(5000)],
      "tree-page": [[1] + pages[0]] + pages.dropFirst().prefix(6).map { [2] + $0 },
      "record": [[0, 0, 6, 0, 1, 23, 20, 7, 1, 104, 101, 108, 108, 111, 1, 2, 3, 4, 64, 9, 33, 251, 84, 68, 45, 24]],
      "salvage": [Array(pages.joined())],
    ]
  }

  /// The head of the envelope of a store, up to its padding.
  private static func envelope() throws -> [UInt8] {
    let root = FuzzStore.rootKey
    let slot = try Slot(
      id: 0, PreparedSecret(.key(root), label: "seed", owner: FuzzStore.storeID), wrapping: root,
      owner: FuzzStore.storeID)
    let epoch = try Epoch(number: 1, created: 0, rootKey: root, storeID: FuzzStore.storeID)
    let bytes = try Envelope(storeID: FuzzStore.storeID, created: 0, slots: [slot], epochs: [epoch])
      .encoded(rootKey: root)
    let end = bytes.dropLast(SHA256.byteCount).lastIndex { $0 != 0 } ?? 0
    return Array(bytes[...end])
  }

  /// The pages of a small store with every table in use, in plaintext.
  private static func samplePages() throws -> [[UInt8]] {
    let path = NSTemporaryDirectory() + "coffer-seeds-\(getpid()).coffer"
    defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
    let database = try Database.create(at: path, key: .key(FuzzStore.rootKey))
    let connection = try database.makeConnection()
    try connection.readWrite { transaction in
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: "c")
      try transaction.setObject("old", forKey: "key", inCollection: "c", withMetadata: 1)
    }
    try connection.readWrite { transaction in
      try transaction.setObject("new", forKey: "key", inCollection: "c")
      // Overflow pages.
      try transaction.setObject(Data(repeating: 7, count: 6000), forKey: "long", inCollection: "c")
    }
    try connection.close()
    try database.close()
    let pages = try PageReader(Store.open(at: path, key: .key(FuzzStore.rootKey), isReadOnly: true))
    return try (1...pages.pageCount).map { Array(try pages.page($0).get().prefix(Layout.payloadByteCount)) }
  }

  // MARK: Values

  private static let sample: Value = [
    "bool": true, "int": -7, "double": 1.5, "text": "é🗝", "data": .data(Data([0, 255])),
    "date": .date(Date(timeIntervalSinceReferenceDate: 0.5)), "list": [1, ["nested": .null]],
    "uuid": .uuid(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))),
  ]

  private static func values() throws -> [String: [[UInt8]]] {
    let url = Value.url(URL(fileURLWithPath: "/tmp/x y"))
    let stored = try [sample, url, .uint64(.max), .json("{\"a\":[1,2]}")].map { value in
      let stored = try value.stored
      return [stored.kind.rawValue] + stored.bytes.withUnsafeBytes(Array.init)
    }
    let sealed = try FuzzTarget.sealingKey.get().seal(sample.stored, .object, "key", in: "collection")
    let list: [String: Value] = [
      "a": [1, 2.5, true, "é"], "d": .data(Data([1, 2])), "t": .date(Date(timeIntervalSinceReferenceDate: 0)),
    ]
    return [
      "value": stored,
      "change-log": [[0, 3, 0, 2, 12, 1, 97, 13, 2, 98, 99, 4, 3, 0], [1]],
      "sealed-value": [sealed.bytes.withUnsafeBytes(Array.init)] + stored,
      "property-list": [
        try PropertyListFile.bytes(.value(.dictionary(list)), isBinary: true),
        try PropertyListFile.bytes(.value(.dictionary(list)), isBinary: false),
        Array(URLArchive.data(URL(fileURLWithPath: "/tmp/x"))),
        Array("{ a = (1, \"b\\U00e9\", <0aff>); /* c */ \"d e\" = { f = g; }; }".utf8),
      ],
      "file-plist": [
        try PropertyListFile.bytes(.value(.dictionary(list)), isBinary: true),
        try PropertyListFile.bytes(.value(.dictionary(list)), isBinary: false),
      ],
    ]
  }

  // MARK: Text

  private static let texts: [String: [String]] = [
    "json": ["{\"a\":[1,-2.5e3,true,null,\"\\u00e9\\ud83d\\udddd\\n\"],\"b\":{\"c\":18446744073709551615}}"],
    "settings-text": [
      "{\"a\": 1}", "2026-01-31T08:30:00.25Z", "( a, b )", "0x1F", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
    ],
    "file-json": [
      "{\"a\":{\"$date\":\"2026-01-31T08:30:00.250Z\"},\"b\":{\"$data\":\"AP8=\"},\"c\":[1,{\"$dict\":{}}]}"
    ],
    "file-yaml": [
      "a: [1, .inf, 0x1f, ~]\nb: !!binary AP8=\nc: |\n  text\n  more\nd: &x {e: 'f', g: \"\\u00e9\"}\nh: *x\n",
      "a: 2026-01-31 08:30:00Z\n? b\n: - c\n  - d: e\n", "$date: {a: <<}\nb: !!str 12\n",
    ],
    "file-toml": [
      "a = 1_000\nb = [1.5, inf]\nt = 2026-01-31T08:30:00Z\n[c.d]\ne = \"\\u00e9\"\n[[f]]\ng = '''x\ny'''\n",
      "a.b.c = {d = true, e = 0xff}\nl = 08:30:00\n",
    ],
    "file-env": ["export A='b c'\nB=\"d\\\"\\$e\" # comment\nC=f\\ g\nD=\n", "A=$'x'\n"],
    "argument-value": [
      "\u{0}\u{0}text", "\u{1}\u{0}-42", "\u{2}\u{0}1e300", "\u{3}\u{0}yes", "\u{4}\u{0}2026-01-31T08:30:00Z",
      "\u{5}\u{2}00ff", "\u{6}\u{0}https://example.org/a?b", "\u{8}\u{0}[1, 2]", "\u{9}\u{0}{a = b;}",
      "\u{b}\u{0}<plist><dict/></plist>", "\u{c}\u{0}3.5",
    ],
    "argument-text": [
      "net.*\u{0}net.proxy", "[!a-c]?\\*\u{0}d\u{0}12h\u{0}forever", "a/b\u{0}/c/d\u{0}.env.local\u{0}-5",
    ],
    "template": ["user={{prefs:net/user}}\npass={{prefs:é}}\n", "no reference { {prefs: }}"],
  ]
}
