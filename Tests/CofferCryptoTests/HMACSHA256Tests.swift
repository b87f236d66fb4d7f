import Testing

@testable import CofferCrypto

@Suite("HMAC-SHA-256")
struct HMACSHA256Tests {
  private func code(_ message: [UInt8], key: [UInt8]) throws -> String {
    hex(try message.withUnsafeBytes { try HMACSHA256.authenticate($0, key: SecretBytes(key)) })
  }

  @Test("gives the values of RFC 4231")
  func known() throws {
    let short = [UInt8](repeating: 0x0b, count: 20)
    #expect(
      try code(Array("Hi There".utf8), key: short)
        == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
    #expect(
      try code(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
        == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    #expect(
      try code([UInt8](repeating: 0xdd, count: 50), key: [UInt8](repeating: 0xaa, count: 20))
        == "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe")
    #expect(
      try code([UInt8](repeating: 0xcd, count: 50), key: [UInt8](1...25))
        == "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b")
    let long = [UInt8](repeating: 0xaa, count: 131)
    #expect(
      try code(Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8), key: long)
        == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    let text =
      "This is a test using a larger than block-size key and a larger than block-size data. "
      + "The key needs to be hashed before being used by the HMAC algorithm."
    #expect(
      try code(Array(text.utf8), key: long) == "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2")
  }

  @Test("takes an empty key and an empty message")
  func empty() throws {
    #expect(try code([], key: []) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
  }

  struct Group: Decodable {
    struct Vector: Decodable {
      let tcId: Int
      let key: String
      let msg: String
      let tag: String
      let result: String
    }
    let tagSize: Int
    let tests: [Vector]
  }

  @Test("agrees with Wycheproof", .enabled(if: Wycheproof.isPresent, Wycheproof.note))
  func wycheproof() throws {
    var checked = 0
    for group in try Wycheproof.groups("hmac_sha256", of: Group.self) {
      for vector in group.tests {
        // Shorter tags in the file are the beginning of the whole one.
        let tag = try code(bytes(hex: vector.msg), key: bytes(hex: vector.key)).prefix(group.tagSize / 4)
        #expect((tag == vector.tag) == (vector.result != "invalid"), "vector \(vector.tcId)")
        checked += 1
      }
    }
    #expect(checked > 150)
  }
}
