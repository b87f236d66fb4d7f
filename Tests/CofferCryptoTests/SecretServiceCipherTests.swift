import Testing

@testable import CofferCrypto

/// The reference values were computed with Python's integers and its package cryptography.
@Suite("What the Secret Service's clients agree on")
struct SecretServiceCipherTests {
  private static let expectedPublicKey =
    "457120764f3a1e6fd58103e41a4093a6c8bc1d97cb8759de41c21afdd2d3048a5ef3d88ce24aa6ba4fe30bcfb0b0f75abf1a"
    + "8aeaff3723f1bf53740c902005e1199fabad7c538e94a7034fd585339a02f3634893f748929d2a7257643e398130541ae641"
    + "24c17d4507a97f1cbebeb7b933642b8df479eb59e36cfeffbf1671dd"
  private static let expectedSecret =
    "e8364b20d67f76af5e1609cb35562b851607ad95a291a44a689167ae558dde27afcf37fc3075fc480275db9bebb8bf48e9c4"
    + "51d9bf28b4966424c7b910f41ce2085a1390abfc73f3661369f8c3fba88d4e6f41cf0bcb598a5d146f0f8ecdaf723fe9485b"
    + "d09263bd8e549396f87aca358598976a8296c8daa209c67e1c1cf579"

  @Test("both sides get the same secret, the one that Python computes")
  func agreement() throws {
    let (own, other) = (Self.secret(1...32), Self.secret(101...132))
    let publicKey = try OakleyGroup.publicKey(of: own)
    let secret = try OakleyGroup.agree(own, with: OakleyGroup.publicKey(of: other))
    #expect(publicKey.count == 128 && secret.count == 128)
    #expect(hex(publicKey) == Self.expectedPublicKey)
    #expect(secret.withUnsafeBytes { hex($0) } == Self.expectedSecret)
    #expect(try OakleyGroup.agree(other, with: publicKey).isEqual(to: secret))
  }

  @Test(
    "a public key with a known power, or outside of the group, is refused",
    arguments: [[], [0], [1], Array(repeating: 0xFF, count: 128), primeMinusOne, [2] + Array(repeating: 0, count: 128)])
  func badKeys(_ key: [UInt8]) {
    #expect(throws: CryptoError.self) { try OakleyGroup.agree(Self.secret(1...32), with: key) }
  }

  @Test("a ciphertext opens, and any other is refused")
  func ciphers() throws {
    let key = Self.secret(0...15)
    let ciphertext = bytes(hex: "3fb07bb54708de15bd6f6ac7ed62ce00ce4e66e4f0a773c7a82fa5f6104ae299")
    func open(_ bytes: [UInt8], _ vector: [UInt8] = Array(16...31)) throws -> SecretBytes {
      try AES128CBC.decrypt(bytes.withUnsafeBytes { SecretBytes(copying: $0) }, key: key, vector: vector)
    }
    #expect(try open(ciphertext).isEqual(to: SecretBytes(copying: "a secret of some length")))
    for (bytes, vector) in [
      ([], Array(16...31)), (ciphertext.dropLast(), Array(16...31)), (ciphertext, Array(16...30)),
      (ciphertext.dropLast() + [ciphertext[31] ^ 1], Array(16...31)),
    ] as [([UInt8], [UInt8])] {
      #expect(throws: CryptoError.self) { try open(bytes, vector) }
    }
  }

  @Test("what is encrypted opens again, under another vector each time", arguments: [0, 1, 15, 16, 17, 1000])
  func roundTrip(_ count: Int) throws {
    let (key, secret) = (Self.secret(0...15), try SecretBytes.random(count: count))
    let (first, second) = (try AES128CBC.encrypt(secret, key: key), try AES128CBC.encrypt(secret, key: key))
    #expect(first.vector != second.vector && first.bytes.count == (count / 16 + 1) * 16)
    let sealed = first.bytes.withUnsafeBytes { SecretBytes(copying: $0) }
    #expect(try AES128CBC.decrypt(sealed, key: key, vector: first.vector).isEqual(to: secret))
  }

  private static func secret(_ bytes: ClosedRange<UInt8>) -> SecretBytes {
    Array(bytes).withUnsafeBytes { SecretBytes(copying: $0) }
  }

  private static let primeMinusOne = bytes(
    hex: "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef95"
      + "19b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7edee386bfb"
      + "5a899fa5ae9f24117c4b1fe649286651ece65381fffffffffffffffe")
}
