import Coffer
import CofferCompat
import CofferCrypto
import CofferMaintenance
import CofferStorage
import Foundation

/// The store in `Tests/Interop/vectors`, with which others can check their readers: its contents, and how it is created.
package enum StoreVector {
  /// Nothing is secret here.
  package static let key = SecretBytes(count: 32) { $0.copyBytes(from: 0..<32) }
  package static let vaultKey = SecretBytes(count: 32) { $0.copyBytes(from: 32..<64) }
  package static let passphrase = "correct horse battery staple"

  /// The contents of the store, except for later changes by `make(in:)`.
  package struct Setting: Sendable {
    package let collection: String
    package let key: String
    package let value: Value
    package var metadata: Value?
  }

  private static let author = Author(program: "vector", user: "maker", host: "nowhere", actor: nil)
  /// In the year 2200, and 2100.
  private static let dates = (
    expires: Date(timeIntervalSince1970: 7_258_118_400), due: Date(timeIntervalSince1970: 4_102_444_800.5)
  )

  package static let settings: [Setting] = [
    Setting(collection: "", key: "theme", value: "dark"),
    Setting(collection: "", key: "", value: "no name"),
    Setting(collection: "é/🗝", key: "a/b\n\0c", value: ""),
    Setting(collection: "kinds", key: "bool", value: true),
    Setting(collection: "kinds", key: "int", value: -2),
    Setting(collection: "kinds", key: "uint64", value: .uint64(.max)),
    Setting(collection: "kinds", key: "double", value: .double(-0.0)),
    Setting(collection: "kinds", key: "string", value: "e\u{301}\0"),
    Setting(collection: "kinds", key: "data", value: .data(Data([0, 255]))),
    Setting(collection: "kinds", key: "date", value: .date(Date(timeIntervalSinceReferenceDate: -0.25))),
    Setting(collection: "kinds", key: "url", value: .url(URL(string: "https://example.org/?q=%20")!)),
    Setting(
      collection: "kinds", key: "url.relative",
      value: .url(URL(string: "../b", relativeTo: URL(string: "https://example.org/a/")!)!)),
    Setting(collection: "kinds", key: "uuid", value: .uuid(UUID(uuidString: "6BA7B810-9DAD-11D1-80B4-00C04FD430C8")!)),
    Setting(collection: "kinds", key: "array", value: [1, .null, [], "x", 2.5]),
    Setting(collection: "kinds", key: "dictionary", value: ["z": [:], "": 1, "é": .json("[-0]")]),
    Setting(collection: "kinds", key: "json", value: .json(#"{"a":[1,-0,"inf"],"b":"x/y"}"#)),
    Setting(collection: "kinds", key: "secret", value: .secret(Secret("hush"))),
    Setting(collection: "kinds", key: "metadata", value: 1, metadata: ["by": "hand"]),
    Setting(collection: "sealed", key: "token", value: .secret(Secret("open sesame")), metadata: "of the cave"),
    Setting(collection: "sealed", key: "list", value: [1, "two"]),
  ]

  // MARK: Making

  /// Recreates the store, and writes it, its log and their contents to `folder`.
  ///
  /// - Returns: The SHA-256 of the store and of its log.
  package static func make(in folder: String) throws -> (store: String, log: String) {
    let scratch = try ScratchFolder()
    let path = scratch.path + "/settings.coffer"
    var database = try Database.create(at: path, key: .key(key), options: .quiet)
    database.core.setAuthor(author)
    try database.setLabel("file", forSlot: 0)
    try database.addSlot(
      .passphrase(Secret(passphrase).bytes), label: "é", stretching: .scrypt(log2N: 14, r: 8, p: 1))
    let recoveryKey = try database.addRecoveryKey(label: "paper").text.withUnsafeBytes {
      String(decoding: $0, as: UTF8.self)
    }
    try database.vault.create(key: .key(vaultKey), label: "vault")
    try database.seal(collection: "sealed")
    var connection = try database.makeConnection()
    try connection.readWrite { transaction in
      try transaction.setHistoryLimits(
        HistoryLimits(maximumCount: 2, maximumAge: .seconds(3_155_760_000)), forCollection: "past")
      try transaction.setHistoryLimits(HistoryLimits(maximumCount: 1, maximumAge: nil), forCollection: "sealed")
      for setting in settings {
        try transaction.setObject(
          setting.value, forKey: setting.key, inCollection: setting.collection, withMetadata: setting.metadata)
      }
    }
    try connection.readWrite {
      try $0.setObject("for a while", forKey: "expires", inCollection: "dated", expires: dates.expires)
      try $0.setObject("to be renewed", forKey: "due", inCollection: "dated", expires: nil, due: dates.due)
    }
    // The last of them names the actor.
    database.core.setAuthor(Author(program: "vector", user: "maker", host: "nowhere", actor: "somebody"))
    for number in 1...4 {
      try connection.readWrite {
        try $0.setObject("value \(number)", forKey: "present", inCollection: "past", withMetadata: number)
        try $0.setObject("value \(number)", forKey: "removed", inCollection: "past")
        try $0.setObject(Secret("value \(number)"), forKey: "changed", inCollection: "sealed", withMetadata: number)
      }
    }
    try database.close()

    // Only in the log, as after a crash.
    database = try Database.open(at: path, key: .key(key), options: .quiet)
    database.core.setAuthor(author)
    // This has long expired for any reader.
    database.core.clock.stop(at: 1_767_225_600_000)
    let expiry = Date(timeIntervalSince1970: 1_767_229_200)
    try database.vault.unlock(.key(vaultKey))
    connection = try database.makeConnection()
    try connection.readWrite { try $0.removeObject(forKey: "removed", inCollection: "past") }
    try connection.readWrite {
      try $0.setObject("in the log", forKey: "newest")
      try $0.setObject("gone", forKey: "expired", inCollection: "dated", expires: expiry)
    }
    // Expired for readers, but not removed yet.
    database.core.clock.stop(at: expiry.milliseconds)
    let contents = try contents(of: database, recoveryKey: recoveryKey)
    // Without SQLite's locks on the files: they are not open elsewhere.
    let (store, log) = try (
      Data(contentsOf: URL(fileURLWithPath: path)), Data(contentsOf: URL(fileURLWithPath: path + "-wal"))
    )
    try database.close()

    let target = URL(fileURLWithPath: folder, isDirectory: true)
    try encoded(contents).write(to: target.appendingPathComponent("store-1.json"))
    try Data(dump(store).utf8).write(to: target.appendingPathComponent("store-1.hex"))
    try Data(dump(log).utf8).write(to: target.appendingPathComponent("store-1-wal.hex"))
    return (try digest(store), try digest(log))
  }

  package static func digest(_ data: Data) throws -> String {
    HexText.text(try data.withUnsafeBytes(SHA256.digest))
  }

  // MARK: Files

  package static func encoded(_ contents: Contents) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(contents) + Data("\n".utf8)
  }

  private static let lineByteCount = 32

  /// Lines of an offset and 32 bytes; those that are all zeros are left out.
  package static func dump(_ data: Data) -> String {
    stride(from: 0, to: data.count, by: lineByteCount).map { offset in
      let bytes = data[offset..<min(offset + lineByteCount, data.count)]
      guard bytes.contains(where: { $0 != 0 }) else { return "" }
      let digits = String(offset, radix: 16)
      return String(repeating: "0", count: 8 - digits.count) + digits + ": " + HexText.text(bytes) + "\n"
    }.joined()
  }

  /// The bytes of which a text is the dump.
  package static func bytes(ofDump text: String) -> Data? {
    var data = Data()
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ":")
      guard parts.count == 2, let offset = Int(parts[0], radix: 16), offset >= data.count,
        let bytes = HexText.bytes(parts[1].trimmingCharacters(in: .whitespaces))
      else { return nil }
      data += Data(count: offset - data.count) + bytes
    }
    return data
  }
}

// MARK: - Contents

extension StoreVector {
  /// Everything in the store that a reader can know, with the secrets that open it.
  package struct Contents: Codable, Equatable {
    package struct Collection: Codable, Equatable {
      package let name: String
      package let isSealed: Bool
      package let historyCount: Int?
      package let historyAge: Int64?
    }

    /// Bytes are hexadecimal: those of a plaintext value, and of metadata after their kind.
    package struct Item: Codable, Equatable {
      package let collection: String
      package let key: String
      package let kind: UInt8
      package let data: String
      package let metadata: String?
      package let version: Int64
      package let modified: Int64
      package var expires: Int64?
      package var due: Int64?
      package var author: String?
      /// Of earlier values.
      package var ended: Int64?
      package var time: Int64?
      package var endedBy: String?
    }

    package let key: String
    package let passphrase: String
    package let recoveryKey: String
    package let vaultKey: String
    package let storeID: String
    package let lastCommit: CommitNumber
    package let collections: [Collection]
    package let items: [Item]
    package let history: [Item]
  }

  /// What is in a store, as Coffer reads it.
  package static func contents(of database: Database, recoveryKey: String) throws -> Contents {
    try database.makeConnection().read { transaction in
      var (items, history): ([Contents.Item], [Contents.Item]) = ([], [])
      let collections = try transaction.allCollections()
      for collection in collections {
        for key in try transaction.allKeys(inCollection: collection) {
          guard let row = try transaction.serializedRow(forKey: key, inCollection: collection),
            let item = try transaction.item(forKey: key, inCollection: collection)
          else { continue }
          items.append(
            Contents.Item(
              collection: collection, key: key, kind: row.object.kind.rawValue, data: HexText.text(row.object.bytes),
              metadata: row.metadata.map { HexText.text([$0.kind.rawValue] + $0.bytes) }, version: item.version,
              modified: milliseconds(item.modified), expires: item.expires.map(milliseconds),
              due: item.due.map(milliseconds), author: item.author?.text))
        }
        for key in try transaction.allKeysWithHistory(inCollection: collection) {
          for item in try transaction.history(forKey: key, inCollection: collection).reversed() {
            history.append(
              Contents.Item(
                collection: collection, key: key, kind: item.value.kind.rawValue, data: HexText.text(bytes(item.value)),
                metadata: item.metadata.map { HexText.text([$0.kind.rawValue] + bytes($0)) }, version: item.version,
                modified: milliseconds(item.modified), expires: item.expires.map(milliseconds),
                author: item.author?.text,
                ended: item.endVersion, time: milliseconds(item.ended), endedBy: item.endedBy?.text))
          }
        }
      }
      return Contents(
        key: HexText.text(key.withUnsafeBytes(Array.init)), passphrase: passphrase, recoveryKey: recoveryKey,
        vaultKey: HexText.text(vaultKey.withUnsafeBytes(Array.init)), storeID: try database.status().storeID,
        lastCommit: try transaction.commitNumber(),
        collections: try collections.map { name in
          let limits = try transaction.historyLimits(forCollection: name)
          return Contents.Collection(
            name: name, isSealed: try transaction.isSealed(collection: name), historyCount: limits?.maximumCount,
            historyAge: limits?.maximumAge.map { $0.components.seconds * 1000 })
        },
        items: items, history: history)
    }
  }

  /// The bytes of the few kinds of earlier values in the store.
  private static func bytes(_ value: Value) -> [UInt8] {
    switch value {
    case .string(let text): Array(text.utf8)
    case .secret(let secret): secret.withUnsafeBytes(Array.init)
    case .int(let number): (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    default: fatalError("there are no earlier values of kind \(value.kind)")
    }
  }

  private static func milliseconds(_ date: Date) -> Int64 { Int64((date.timeIntervalSince1970 * 1000).rounded()) }
}
