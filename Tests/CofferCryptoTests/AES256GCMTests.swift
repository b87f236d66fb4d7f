import Testing

@testable import CofferCrypto

@Suite("AES-256-GCM, under XAES")
struct AES256GCMTests {
  /// Seals and opens once, and gives ciphertext ‖ tag.
  private func roundTrip(key: [UInt8], nonce: [UInt8], plaintext: [UInt8], data: [UInt8]) throws -> [UInt8] {
    let gcm = try AES256GCM()
    let count = plaintext.count
    // One byte more, so that there is an address also where nothing is sealed.
    var buffer = plaintext + [UInt8](repeating: 0, count: AES256GCM.tagByteCount + 1)
    var sealed: [UInt8] = []
    try buffer.withUnsafeMutableBytes { buffer in
      let start = buffer.baseAddress!
      try data.withUnsafeBytes { data in
        try gcm.seal(
          start, count: count, into: start, tag: start + count, key: key, nonce: nonce, additionalData: data)
        sealed = Array(buffer.dropLast())
        try gcm.open(
          start, count: count, into: start, tag: start + count, key: key, nonce: nonce, additionalData: data)
      }
      #expect(Array(buffer.prefix(count)) == plaintext)
    }
    return sealed
  }

  @Test("gives the values of McGrew and Viega's specification, cases 13 to 16")
  func known() throws {
    let zeroKey = [UInt8](repeating: 0, count: 32)
    let zeroNonce = [UInt8](repeating: 0, count: 12)
    #expect(
      hex(try roundTrip(key: zeroKey, nonce: zeroNonce, plaintext: [], data: []))
        == "530f8afbc74536b9a963b4f1c4cb738b")
    #expect(
      hex(try roundTrip(key: zeroKey, nonce: zeroNonce, plaintext: [UInt8](repeating: 0, count: 16), data: []))
        == "cea7403d4d606b6e074ec5d3baf39d18" + "d0d1c8a799996bf0265b98b5d48ab919")

    let key = bytes(hex: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308")
    let nonce = bytes(hex: "cafebabefacedbaddecaf888")
    let plaintext = bytes(
      hex: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255")
    let ciphertext =
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
      + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"
    #expect(
      hex(try roundTrip(key: key, nonce: nonce, plaintext: plaintext, data: []))
        == ciphertext + "b094dac5d93471bdec1a502270e3cc6c")
    let data = bytes(hex: "feedfacedeadbeeffeedfacedeadbeefabaddad2")
    #expect(
      hex(try roundTrip(key: key, nonce: nonce, plaintext: Array(plaintext.prefix(60)), data: data))
        == ciphertext.prefix(120) + "76fc6ece0f4e1768cddf8853bb2d551b")
  }

  struct Group: Decodable {
    struct Vector: Decodable {
      let tcId: Int
      let key: String
      let iv: String
      let aad: String
      let msg: String
      let ct: String
      let tag: String
      let result: String
    }
    let ivSize: Int
    let keySize: Int
    let tagSize: Int
    let tests: [Vector]
  }

  @Test("agrees with Wycheproof", .enabled(if: Wycheproof.isPresent, Wycheproof.note))
  func wycheproof() throws {
    var checked = 0
    for group in try Wycheproof.groups("aes_gcm", of: Group.self)
    where group.keySize == 256 && group.ivSize == 96 && group.tagSize == 128 {
      for vector in group.tests {
        let (key, nonce, data) = (bytes(hex: vector.key), bytes(hex: vector.iv), bytes(hex: vector.aad))
        if vector.result == "valid" {
          let sealed = try roundTrip(key: key, nonce: nonce, plaintext: bytes(hex: vector.msg), data: data)
          #expect(hex(sealed) == vector.ct + vector.tag, "vector \(vector.tcId)")
        } else {
          let ciphertext = bytes(hex: vector.ct)
          var output = [UInt8](repeating: 0xaa, count: ciphertext.count + 1)
          #expect(throws: CryptoError.authenticationFailed, "vector \(vector.tcId)") {
            try data.withUnsafeBytes { data in
              try AES256GCM().open(
                ciphertext, count: ciphertext.count, into: &output, tag: bytes(hex: vector.tag),
                key: key, nonce: nonce, additionalData: data)
            }
          }
          #expect(output.dropLast().allSatisfy { $0 == 0 }, "vector \(vector.tcId)")
        }
        checked += 1
      }
    }
    #expect(checked > 60)
  }
}
