import Coffer
import CofferCrypto
import CofferMaintenance
import CofferStorage
import Foundation

/// A folder with a whole store, of which one thing is changed past all that Coffer checks, with the keys of the store.
package final class CraftingBench: Sendable {
  package let folder: String
  package var path: String { folder + "/settings.coffer" }
  package var keyFile: String { folder + "/key" }
  /// The key of a second slot, labelled "stick".
  package var otherKeyFile: String { folder + "/other-key" }
  package var vaultKeyFile: String { folder + "/vault-key" }

  /// - Parameter folder: One that holds a store already, or that is made, with a store of everything that a store can hold
  ///   but a fleet.
  package init(in folder: String) throws {
    self.folder = folder
    guard !FileManager.default.fileExists(atPath: path) else { return }
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    for file in [keyFile, otherKeyFile, vaultKeyFile] { try KeyFile.create(at: file) }
    try makeStore()
  }

  /// A copy of its files in a new folder.
  package func copy(to folder: String) throws -> CraftingBench {
    try FileManager.default.copyItem(atPath: self.folder, toPath: folder)
    return try CraftingBench(in: folder)
  }

  private func makeStore() throws {
    let database = try Database.create(at: path, key: .keyFile(keyFile), options: .quiet)
    try database.addSlot(.keyFile(otherKeyFile), label: "stick")
    try database.addSlot(
      .passphrase(Secret("battery staple").bytes), label: "words", stretching: .scrypt(log2N: 14, r: 8, p: 1))
    try database.vault.create(key: .keyFile(vaultKeyFile), label: "vault")
    try database.seal(collection: "tokens")
    let connection = try database.makeConnection()
    try connection.readWrite { transaction in
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: "c")
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: "tokens")
      for number in 0..<20 { try transaction.setObject("value \(number)", forKey: "k\(number)", inCollection: "c") }
      try transaction.setObject("first", forKey: "k", inCollection: "tokens", withMetadata: "note")
      try transaction.setObject(1, forKey: "count", inCollection: "n")
      try transaction.setObject(["one"], forKey: "list", inCollection: "n")
      try transaction.setObject("noted", forKey: "noted", inCollection: "n", withMetadata: ["by": "hand"])
      try transaction.setObject(8080, forKey: "port", inCollection: "shop")
      try transaction.setObject("dark", forKey: "theme")
      try transaction.setObject("short", forKey: "expires", inCollection: "dated", expires: Date.distantFuture)
      try transaction.makeEnvironment("dev", of: "c")
      try transaction.declare(Self.declarations, by: "shop", version: "1")
    }
    try connection.readWrite { transaction in
      try transaction.setObject("later", forKey: "k0", inCollection: "c")
      try transaction.setObject("second", forKey: "k", inCollection: "tokens", withMetadata: "note")
      try transaction.setObject("other", forKey: "k1", inCollection: "c@dev")
    }
    try database.close()
  }

  private static let declarations = [
    Declaration(
      "port", in: "shop", type: .int, default: .int(80), limits: [.range(minimum: .int(1), maximum: .int(65535))]),
    Declaration("name", in: "shop", type: .string, limits: [.pattern("[a-z]+")]),
  ]

  /// The version of the first value of `k0` in `c`.
  package func firstVersion() throws -> Int64? {
    let database = try open()
    defer { try? database.close() }
    return try database.makeConnection().read { try $0.history(forKey: "k0", inCollection: "c").last?.version }
  }

  // MARK: Tables

  package func open() throws -> Database { try Database.open(at: path, key: .keyFile(keyFile), options: .quiet) }

  /// Changes the tables in a commit of its own, which the change log does not mention.
  package func execute(_ sql: String) throws { try change { try $0.connection.execute(sql) } }

  /// Does the same with anything that a session can do.
  package func change(_ body: (Session) throws -> Void) throws {
    let database = try open()
    defer { try? database.close() }
    try database.makeConnection().perform { session in
      try session.connection.beginWrite(.full)
      do {
        try body(session)
        try session.connection.commit()
      } catch {
        try? session.connection.rollback()
        throw error
      }
    }
  }

  /// Changes the record of the vault, whose MAC is right afterwards.
  package func changeVault(generation: Int64? = nil, _ body: (inout VaultRecord, SecretBytes) throws -> Void) throws {
    try change { session in
      guard let record = try session.vaultRecord() else { return }
      let key = try record.open(.keyFile(vaultKeyFile))
      let number = generation ?? Int64(record.generation)
      var changed = try VaultRecord(
        id: record.id, generation: number, mac: record.mac, sealedCollections: record.encodedSealedCollections,
        slots: record.encodedSlots, succession: [UInt8](repeating: number == 1 ? 0 : 1, count: record.succession.count))
      try body(&changed, key)
      _ = try changed.apply(.label(changed.slots[0].id, "crafted"), key: key)
      try session.connection.execute(
        """
        UPDATE vault SET generation = \(changed.generation), mac = x'\(HexText.text(changed.mac))',
        sealed = x'\(HexText.text(changed.encodedSealedCollections))', slots = x'\(HexText.text(changed.encodedSlots))',
        succession = x'\(HexText.text(changed.succession))'
        """)
    }
  }

  // MARK: Files

  /// Changes the bytes of the closed store, or of a file beside it.
  package func changeFile(_ suffix: String = "", _ body: (inout [UInt8]) throws -> Void) throws {
    let url = URL(fileURLWithPath: path + suffix)
    var bytes = Array(try Data(contentsOf: url))
    try body(&bytes)
    try Data(bytes).write(to: url)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path + suffix)
  }

  private func secret(_ name: String) throws -> SecretBytes {
    let database = try open()
    defer { try? database.close() }
    guard let secret = try database.storeOnDisk().secrets.first(where: { $0.name == name }) else {
      throw CofferError.keyUnavailable(reason: name)
    }
    return secret.key
  }

  /// Changes what the MAC of the envelope covers, in some of its copies, which are whole and authentic afterwards.
  package func changeEnvelope(copies: [Int] = [0, 1], _ body: (inout [UInt8]) throws -> Void) throws {
    let rootKey = try secret("root key")
    try changeFile { file in
      for start in copies.map({ $0 * Layout.envelopeCopyByteCount }) {
        let whole = Array(file[start..<start + Envelope.checkedByteCount])
        let key = try HKDF.deriveKey(
          from: rootKey, salt: Array(whole[24..<40]), info: Array("coffer v1 envelope MAC".utf8), count: 32)
        func mac(_ bytes: some Sequence<UInt8>) throws -> [UInt8] {
          try Array(bytes).withUnsafeBytes { try HMACSHA256.authenticate($0, key: key) }
        }
        // Wherever the MAC lies: it follows what it covers.
        let end = try (56..<whole.count - 32).first { try mac(whole[..<$0]) == Array(whole[$0..<$0 + 32]) }
        guard let end else { throw CofferError.damaged(part: "envelope", reason: "it has no MAC") }
        var bytes = Array(whole[..<end])
        try body(&bytes)
        bytes += try mac(bytes)
        bytes += [UInt8](repeating: 0, count: whole.count - bytes.count)
        file.replaceSubrange(start..<start + Layout.envelopeCopyByteCount, with: try Envelope.checksummed(bytes))
      }
    }
  }

  /// Gives the epoch another number.
  package func changeEpoch(number: UInt32) throws {
    let rootKey = try secret("root key")
    let digits = withUnsafeBytes(of: number.bigEndian) { Array($0) }
    // Both copies are to be the same.
    let newNonce = try RandomSource.bytes(count: 24)
    try changeEnvelope { bytes in
      let storeID = Array(bytes[24..<40])
      let cipher = try XAES256GCM(
        key: HKDF.deriveKey(from: rootKey, salt: storeID, info: Array("coffer v1 epoch wrapping".utf8), count: 32))
      let start = bytes.slot(Int(bytes[54]))
      let (header, nonce) = (start..<start + 12, start + 12..<start + 36)
      let wrapped = start + 36..<start + 84
      let key = try cipher.open(
        Array(bytes[wrapped]), nonce: Array(bytes[nonce]), additionalData: bytes[header] + storeID)
      bytes.replaceSubrange(start..<start + 4, with: digits)
      bytes.replaceSubrange(nonce, with: newNonce)
      bytes.replaceSubrange(
        wrapped, with: try cipher.seal(key, nonce: Array(bytes[nonce]), additionalData: bytes[header] + storeID))
    }
    try changeFile { file in
      for page in stride(from: Layout.envelopeByteCount, to: file.count, by: Layout.pageByteCount) {
        file.replaceSubrange(page + 4088..<page + 4092, with: digits)
      }
    }
  }

  /// Changes a page of the database file.
  package func changePage(_ number: UInt32, _ body: (inout [UInt8]) throws -> Void) throws {
    let cipher = try XAES256GCM(key: try secret("page key"))
    var place = Array("coffer/1".utf8)
    for part in [1, number] { withUnsafeBytes(of: part.bigEndian) { place.append(contentsOf: $0) } }
    try changeFile { file in
      let start = Layout.envelopeByteCount + Int(number - 1) * Layout.pageByteCount
      let end = start + Layout.payloadByteCount
      let nonce = Array(file[end..<end + XAES256GCM.nonceByteCount])
      let tag = end + nonce.count..<end + nonce.count + XAES256GCM.tagByteCount
      var page = try cipher.open(Array(file[start..<end] + file[tag]), nonce: nonce, additionalData: place)
        .withUnsafeBytes(Array.init)
      try body(&page)
      let newNonce = try RandomSource.bytes(count: nonce.count)
      let sealed = try cipher.seal(
        SecretBytes(count: page.count) { $0.copyBytes(from: page) }, nonce: newNonce, additionalData: place)
      file.replaceSubrange(start..<end, with: sealed[..<page.count])
      file.replaceSubrange(end..<end + nonce.count, with: newNonce)
      file.replaceSubrange(tag, with: sealed[page.count...])
    }
  }

  // MARK: The log

  /// Leaves a log with a commit, as after a crash.
  package func leaveLog() throws {
    let database = try open()
    // The last connection that closes removes the log.
    let connection = try database.makeConnection()
    // The second one says that the first was synced.
    for text in ["in the log first", "in the log"] {
      try connection.readWrite { try $0.setObject(text, forKey: "k2", inCollection: "c") }
    }
    // Without SQLite's locks on the files: a copy is opened later.
    var files: [String: Data] = [:]
    for suffix in ["", "-wal"] { files[suffix] = try Data(contentsOf: URL(fileURLWithPath: path + suffix)) }
    try withExtendedLifetime(connection) { try database.close() }
    for (suffix, data) in files {
      try data.write(to: URL(fileURLWithPath: path + suffix))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path + suffix)
    }
  }

  /// Leaves a log, and changes its deciphered header, whose checksum is right afterwards.
  package func changeLogHeader(_ body: (inout [UInt8]) -> Void) throws {
    let cipher = try TweakedBlockCipher(key: try secret("log header key"))
    try leaveLog()
    try changeFile("-wal") { log in
      var header = Array(log[..<Layout.logHeaderByteCount])
      try header.withUnsafeMutableBytes { try cipher.decrypt($0.baseAddress! + 16, tweak: 0) }
      body(&header)
      header.replaceSubrange(24..<32, with: Self.checksum(header[..<24], isBigEndian: header[3] & 1 == 1))
      try header.withUnsafeMutableBytes { try cipher.encrypt($0.baseAddress! + 16, tweak: 0) }
      log.replaceSubrange(..<Layout.logHeaderByteCount, with: header)
    }
  }

  // https://www.sqlite.org/fileformat2.html#checksum_algorithm
  private static func checksum(_ bytes: ArraySlice<UInt8>, isBigEndian: Bool) -> [UInt8] {
    let words = stride(from: bytes.startIndex, to: bytes.endIndex, by: 4).map { start in
      (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes[start + (isBigEndian ? $1 : 3 - $1)]) }
    }
    var (first, second) = (UInt32(0), UInt32(0))
    for pair in stride(from: 0, to: words.count, by: 2) {
      first = first &+ words[pair] &+ second
      second = second &+ words[pair + 1] &+ first
    }
    return [first, second].flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) } }
  }
}
