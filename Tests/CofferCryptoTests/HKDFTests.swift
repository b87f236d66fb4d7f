import Testing

@testable import CofferCrypto

@Suite("HKDF-SHA-256")
struct HKDFTests {
  private func output(_ inputKey: [UInt8], salt: [UInt8], info: [UInt8], count: Int) throws -> String {
    hex(try HKDF.deriveKey(from: SecretBytes(inputKey), salt: salt, info: info, count: count).exposed)
  }

  @Test("gives the values of RFC 5869")
  func known() throws {
    let key = [UInt8](repeating: 0x0b, count: 22)
    #expect(
      try output(key, salt: [UInt8](0...0x0c), info: [UInt8](0xf0...0xf9), count: 42)
        == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
    #expect(
      try output([UInt8](0...0x4f), salt: [UInt8](0x60...0xaf), info: [UInt8](0xb0...0xff), count: 82)
        == "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
        + "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
        + "cc30c58179ec3e87c14c01d5c1f3434f1d87")
    #expect(
      try output(key, salt: [], info: [], count: 42)
        == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")
  }

  @Test("treats an empty salt as 32 zero bytes")
  func emptySalt() throws {
    let zeros = [UInt8](repeating: 0, count: 32)
    #expect(try output([1], salt: [], info: [2], count: 32) == output([1], salt: zeros, info: [2], count: 32))
  }

  @Test("refuses lengths that the RFC does not define", arguments: [-1, 0, 8161, Int.max])
  func lengths(count: Int) throws {
    #expect(throws: CryptoError.invalidParameter("HKDF-SHA256 returns 1 to 8160 bytes, not \(count)")) {
      try HKDF.deriveKey(from: SecretBytes([1]), salt: [], info: [], count: count)
    }
  }

  @Test("gives as much as the RFC defines")
  func longest() throws {
    #expect(try HKDF.deriveKey(from: SecretBytes([1]), salt: [], info: [], count: 8160).count == 8160)
  }

  @Test("refuses an empty input key")
  func emptyKey() {
    #expect(throws: CryptoError.invalidParameter("HKDF needs an input key of at least one byte")) {
      try HKDF.deriveKey(from: SecretBytes([]), salt: [], info: [], count: 32)
    }
  }

  struct Group: Decodable {
    struct Vector: Decodable {
      let tcId: Int
      let ikm: String
      let salt: String
      let info: String
      let size: Int
      let okm: String
      let result: String
    }
    let tests: [Vector]
  }

  @Test("agrees with Wycheproof", .enabled(if: Wycheproof.isPresent, Wycheproof.note))
  func wycheproof() throws {
    var checked = 0
    for vector in try Wycheproof.groups("hkdf_sha256", of: Group.self).flatMap(\.tests) {
      let (salt, info) = (bytes(hex: vector.salt), bytes(hex: vector.info))
      if vector.result == "invalid" {
        #expect(throws: CryptoError.self, "vector \(vector.tcId)") {
          try output(bytes(hex: vector.ikm), salt: salt, info: info, count: vector.size)
        }
      } else {
        let okm = try output(bytes(hex: vector.ikm), salt: salt, info: info, count: vector.size)
        #expect(okm == vector.okm, "vector \(vector.tcId)")
      }
      checked += 1
    }
    #expect(checked > 80)
  }
}
