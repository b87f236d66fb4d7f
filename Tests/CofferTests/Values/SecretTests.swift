import CofferCompat
import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("A secret") struct SecretTests {
  private struct Account: Codable {
    var name: String
    var password: Secret
  }

  @Test("is read from a descriptor up to its end, without a last newline, and not beyond a limit")
  func readingFrom() throws {
    func read(_ text: String, limit: Int = 8) throws -> String {
      let pipe = Pipe()
      try pipe.fileHandleForWriting.write(contentsOf: Data(text.utf8))
      try pipe.fileHandleForWriting.close()
      let secret = try SecretBytes(readingFrom: pipe.fileHandleForReading.fileDescriptor, limit: limit)
      return secret.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
    for (text, expected) in [("abc", "abc"), ("abc\n", "abc"), ("a\nb\n\n", "a\nb\n"), ("12345678", "12345678")] {
      #expect(try read(text) == expected)
    }
    for text in ["", "\n", "123456789"] {
      #expect {
        _ = try read(text)
      } throws: {
        if case CofferError.keyUnavailable = $0 { true } else { false }
      }
    }
    #expect {
      _ = try SecretBytes(readingFrom: -1)
    } throws: {
      "\($0)".contains("Bad file descriptor")
    }
  }

  @Test("reads back unchanged, empty, text or bytes, as object and as metadata")
  func roundTrip() throws {
    let store = try TemporaryStore()
    let connection = try store.open().makeConnection()
    let bytes = (0...255).map { UInt8($0) }.withUnsafeBytes { Secret(copying: $0) }
    let secrets = [Secret(""), Secret("påss"), bytes, Secret(SecretBytes(copying: "x".utf8))]
    #expect(secrets[1].withUnsafeBytes { Array($0) } == Array("påss".utf8))
    try connection.readWrite { transaction in
      for (number, secret) in secrets.enumerated() {
        try transaction.setObject(secret, forKey: "\(number)", withMetadata: secret)
      }
    }
    let again = try store.open().makeConnection()
    try again.read { transaction in
      for (number, secret) in secrets.enumerated() {
        let row = try #require(
          try transaction.row(forKey: "\(number)", as: Secret.self, metadata: Secret.self))
        #expect(row.object == secret && row.metadata == secret)
        #expect(try transaction.value(forKey: "\(number)") == .secret(secret))
        #expect(try transaction.info(forKey: "\(number)")?.kind == .secret)
      }
    }
    #expect(secrets[1].revealed() == "påss" && bytes.revealed() == nil && bytes.count == 256)
  }

  @Test("is compared by its bytes, and hashed by its length")
  func comparison() {
    #expect(Secret("a") == Secret("a") && Secret("a") != Secret("b") && Secret("a") != Secret("ab"))
    #expect(Secret("a").hashValue == Secret("b").hashValue)
    #expect(Value.secret(Secret("a")) != .string("a"))
  }

  @Test("shows its length and nothing else, however it is printed, reflected or dumped")
  func redaction() throws {
    let secret = Secret("hunter2")
    let serialized = SerializedValue(try Value.secret(secret).stored)
    let held = HeldItem(
      object: HeldValue(try Value.secret(secret).stored), metadata: try Value.secret(secret).stored)
    let account = Account(name: "ada", password: secret)
    var texts = ["\(secret)", String(reflecting: secret), "\(Value.secret(secret))", "\(account)", "\([secret])"]
    texts += ["\(serialized)", String(reflecting: serialized), "\(held)", "\(Optional(secret) as Any)"]
    for object in [secret, Value.secret(secret), serialized, held, account, [secret: secret]] as [Any] {
      var text = ""
      dump(object, to: &text)
      texts.append(text)
    }
    for text in texts {
      #expect(!text.contains("hunter2") && !text.contains("104, 117") && !text.contains("68756e"), "\(text)")
    }
    #expect("\(secret)" == "<secret: 7 bytes>")
  }

  @Test("reads as no other type, and nothing else reads as one")
  func types() throws {
    let connection = try Database.inMemory().makeConnection()
    try connection.readWrite { transaction in
      try transaction.setObject(Secret("hunter2"), forKey: "secret")
      try transaction.setObject("text", forKey: "text")
    }
    try connection.read { transaction in
      func expectRefusal(_ body: () throws -> Void) {
        #expect {
          try body()
        } throws: { error in
          guard case CofferError.notDecodable? = error as? CofferError else { return false }
          return !"\(error)".contains("hunter2")
        }
      }
      expectRefusal { _ = try transaction.object(forKey: "secret", as: String.self) }
      expectRefusal { _ = try transaction.object(forKey: "secret", as: Data.self) }
      expectRefusal { _ = try transaction.object(forKey: "secret", as: Account.self) }
      expectRefusal { _ = try transaction.object(forKey: "text", as: Secret.self) }
    }
  }

  @Test("must be stored by itself: inside another value it is refused, with a reason and without its text")
  func nesting() throws {
    let connection = try Database.inMemory().makeConnection()
    let account = Account(name: "ada", password: Secret("hunter2"))
    func expectRefusal(_ object: some Encodable) {
      #expect {
        try connection.readWrite { try $0.setObject(object, forKey: "k") }
      } throws: { error in
        guard case CofferError.notEncodable(_, _, let reason)? = error as? CofferError else { return false }
        return reason.contains("by itself") && !"\(error)".contains("hunter2")
      }
    }
    expectRefusal(account)
    expectRefusal([Secret("hunter2")])
    expectRefusal(["k": Secret("hunter2")])
    expectRefusal(["k": .array([.secret(Secret("hunter2"))])] as Value)
    #expect(throws: EncodingError.self) { try JSONEncoder().encode(account) }
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(Secret.self, from: Data("\"x\"".utf8)) }
    #expect(try connection.read { try $0.commitNumber() } == 0)
  }

  @Test("cannot be in a property list, and is not text for the getters of UserDefaults")
  func preferences() throws {
    let preferences = try Preferences.inMemory()
    try preferences.set(Secret("hunter2"), forKey: "token")
    #expect(preferences.string(forKey: "token") == nil)
    #expect(preferences.object(forKey: "token") as? Secret == Secret("hunter2"))
    #expect(preferences.object(forKey: "token", as: Secret.self) == Secret("hunter2"))
    #expect(throws: CofferError.self) { try preferences.exportPropertyList() }
  }

  @Test("can be serialized and set again, and sealed bytes cannot be set as a value")
  func serialized() throws {
    let connection = try Database.inMemory().makeConnection()
    try connection.readWrite { transaction in
      try transaction.setObject(Secret("hunter2"), forKey: "k")
      let serialized = try #require(try transaction.serializedObject(forKey: "k"))
      #expect(serialized.kind == .secret && serialized.bytes == Data("hunter2".utf8))
      let other = try SerializedValue(kind: .secret, bytes: serialized.bytes)
      #expect(other == serialized)
      try transaction.setSerializedObject(other, forKey: "copy")
      let copy = try transaction.object(forKey: "copy", as: Secret.self)
      #expect(copy == Secret("hunter2"))
    }
    #expect(throws: CofferError.self) { try SerializedValue(kind: .sealed, bytes: Data(count: 60)) }
  }
}
