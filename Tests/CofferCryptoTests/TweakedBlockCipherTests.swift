import Testing

@testable import CofferCrypto

@Suite("The tweaked block cipher")
struct TweakedBlockCipherTests {
  private let key = SecretBytes([UInt8](0..<64))

  private func encrypt(_ block: [UInt8], tweak: UInt64) throws -> [UInt8] {
    var block = block
    try TweakedBlockCipher(key: key).encrypt(&block, tweak: tweak)
    return block
  }

  @Test(
    "gives values computed from the definition with Python's `cryptography`",
    arguments: [
      (UInt64(0), "00000000000000000000000000000000", "cd6b103236fbd87dba93e9001e29bc3d"),
      (1, "00112233445566778899aabbccddeeff", "7e01a8722d7b38c0eba5336757dba5b2"),
      (0x0123_4567_89ab_cdef, "7369787465656e206279746520626c6b", "cb6d5e0a9c037b30c768492668a579d2"),
    ])
  func known(tweak: UInt64, plaintext: String, ciphertext: String) throws {
    #expect(hex(try encrypt(bytes(hex: plaintext), tweak: tweak)) == ciphertext)
  }

  @Test("is the XEX formula over AES, for random keys, blocks and tweaks")
  func formula() throws {
    for _ in 0..<100 {
      let key = try SecretBytes.random(count: 64)
      let random = try RandomSource.bytes(count: 24)
      let plaintext = Array(random.prefix(16))
      let tweak = random.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }

      var mask = [UInt8](repeating: 0, count: 8) + random.suffix(8)
      try AES256BlockCipher(key: key.slice(32..<64), .encrypt).transform(&mask, count: 16)
      var expected = zip(plaintext, mask).map { $0 ^ $1 }
      try AES256BlockCipher(key: key.slice(0..<32), .encrypt).transform(&expected, count: 16)
      expected = zip(expected, mask).map { $0 ^ $1 }

      var block = plaintext
      try TweakedBlockCipher(key: key).encrypt(&block, tweak: tweak)
      #expect(block == expected)
    }
  }

  @Test("decrypts every block, at any address", arguments: [0, 1, 255, 1 << 32, UInt64.max])
  func roundTrip(tweak: UInt64) throws {
    let cipher = try TweakedBlockCipher(key: key)
    for offset in 0..<8 {
      let plaintext = try RandomSource.bytes(count: 16)
      let guardBytes = [UInt8](repeating: 0xcc, count: offset)
      var buffer = guardBytes + plaintext + guardBytes
      try buffer.withUnsafeMutableBytes { try cipher.encrypt($0.baseAddress! + offset, tweak: tweak) }
      #expect(Array(buffer[offset..<offset + 16]) != plaintext)
      try buffer.withUnsafeMutableBytes { try cipher.decrypt($0.baseAddress! + offset, tweak: tweak) }
      #expect(buffer == guardBytes + plaintext + guardBytes)
    }
  }

  @Test("gives a different block for each tweak")
  func tweaks() throws {
    let plaintext = [UInt8](repeating: 0, count: 16)
    let tweaks = (0..<64).map { UInt64(1) << UInt64($0) } + [0, 3, .max]
    let blocks = Set(try tweaks.map { try encrypt(plaintext, tweak: $0) })
    #expect(blocks.count == tweaks.count)
  }

  @Test("deciphers to something else under another tweak")
  func wrongTweak() throws {
    let plaintext = [UInt8](repeating: 7, count: 16)
    var block = try encrypt(plaintext, tweak: 1)
    try TweakedBlockCipher(key: key).decrypt(&block, tweak: 2)
    #expect(block != plaintext)
  }

  @Test("refuses keys of another length", arguments: [0, 32, 63, 65])
  func keySizes(count: Int) {
    #expect(throws: CryptoError.invalidParameter("the tweaked cipher takes a key of 64 bytes, not \(count)")) {
      try TweakedBlockCipher(key: SecretBytes([UInt8](repeating: 1, count: count)))
    }
  }

  @Test("refuses a key of two equal halves")
  func equalHalves() {
    #expect(throws: CryptoError.invalidParameter("the two halves of the tweaked cipher's key must differ")) {
      try TweakedBlockCipher(key: SecretBytes([UInt8](0..<32) + [UInt8](0..<32)))
    }
  }
}
