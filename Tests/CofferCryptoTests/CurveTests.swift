import CofferCrypto
import Testing

@Suite("Ed25519")
struct Ed25519Tests {
  struct Vector {
    let seed, publicKey, message, signature: String
  }

  /// RFC 8032, 7.1.
  static let vectors = [
    Vector(
      seed: "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
      publicKey: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", message: "",
      signature:
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5"
        + "f0595bbe24655141438e7a100b"),
    Vector(
      seed: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
      publicKey: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", message: "72",
      signature:
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2e"
        + "aeb4302aeeb00d291612bb0c00"),
    Vector(
      seed: "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
      publicKey: "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", message: "af82",
      signature:
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15"
        + "e9716ed28dc027beceea1ec40a"),
  ]

  @Test("gives the keys and signatures of RFC 8032", arguments: vectors)
  func known(vector: Vector) throws {
    let seed = SecretBytes(hex: vector.seed)
    let (message, signature) = (bytes(hex: vector.message), bytes(hex: vector.signature))
    #expect(hex(try Ed25519.publicKey(seed: seed)) == vector.publicKey)
    #expect(hex(try Ed25519.sign(message, seed: seed)) == vector.signature)
    #expect(try Ed25519.isValid(signature, of: message, publicKey: bytes(hex: vector.publicKey)))
  }

  @Test("refuses a signature with any bit flipped, of another message, under another key, and of another length")
  func tampering() throws {
    let vector = Self.vectors[2]
    let (message, signature) = (bytes(hex: vector.message), bytes(hex: vector.signature))
    let publicKey = bytes(hex: vector.publicKey)
    for bit in 0..<(signature.count * 8) {
      var wrong = signature
      wrong[bit / 8] ^= 1 << (bit % 8)
      #expect(try !Ed25519.isValid(wrong, of: message, publicKey: publicKey))
    }
    #expect(try !Ed25519.isValid(signature, of: message + [0], publicKey: publicKey))
    #expect(try !Ed25519.isValid(signature, of: message, publicKey: bytes(hex: Self.vectors[0].publicKey)))
    #expect(try !Ed25519.isValid(Array(signature.dropLast()), of: message, publicKey: publicKey))
    #expect(try !Ed25519.isValid([], of: message, publicKey: publicKey))
  }

  @Test("refuses keys of another length", arguments: [0, 31, 33])
  func lengths(count: Int) throws {
    let key = [UInt8](repeating: 1, count: count)
    #expect(throws: CryptoError.invalidParameter("ED25519 takes a key of 32 bytes, not \(count)")) {
      try Ed25519.sign([], seed: SecretBytes(key))
    }
    #expect(throws: CryptoError.invalidParameter("ED25519 takes a key of 32 bytes, not \(count)")) {
      try Ed25519.isValid([UInt8](repeating: 0, count: 64), of: [], publicKey: key)
    }
  }
}

@Suite("X25519")
struct X25519Tests {
  /// RFC 7748, 5.2 and 6.1.
  @Test("gives the values of RFC 7748")
  func known() throws {
    let scalar = SecretBytes(hex: "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    let point = bytes(hex: "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    #expect(
      hex(try X25519.agree(scalar, with: point).exposed)
        == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
    let own = SecretBytes(hex: "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    #expect(
      hex(try X25519.publicKey(of: own)) == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
    let other = bytes(hex: "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    #expect(
      hex(try X25519.agree(own, with: other).exposed)
        == "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
  }

  @Test("gives both sides the same secret")
  func agreement() throws {
    let (a, b) = (try SecretBytes.random(count: 32), try SecretBytes.random(count: 32))
    let (one, other) = (
      try X25519.agree(a, with: X25519.publicKey(of: b)), try X25519.agree(b, with: X25519.publicKey(of: a))
    )
    #expect(one.isEqual(to: other))
  }

  @Test("refuses a public key that makes every secret zero, and one of another length")
  func hostileKeys() throws {
    let own = try SecretBytes.random(count: 32)
    #expect(throws: CryptoError.self) { try X25519.agree(own, with: [UInt8](repeating: 0, count: 32)) }
    #expect(throws: CryptoError.self) { try X25519.agree(own, with: [1] + [UInt8](repeating: 0, count: 31)) }
    #expect(throws: CryptoError.invalidParameter("X25519 takes a key of 32 bytes, not 31")) {
      try X25519.agree(own, with: [UInt8](repeating: 9, count: 31))
    }
  }
}

@Suite("SHAKE128, by OpenSSL")
struct ExtendableOutputTests {
  @Test(
    "agrees with the implementation of these tests for all lengths", arguments: [0, 1, 167, 168, 169, 500])
  func compared(count: Int) throws {
    let message = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    var reference = SHAKE128()
    reference.absorb(message)
    var output = [UInt8](repeating: 0, count: 2048)
    try output.withUnsafeMutableBytes { try CofferCrypto.SHAKE128.fill($0, from: message) }
    #expect(output == reference.squeeze(2048))
  }
}

@Suite("An object sealed with XAES-256-GCM")
struct SealedObjectTests {
  @Test("opens with the same inputs, and not if any is changed")
  func objects() throws {
    let cipher = try XAES256GCM(key: .random(count: 32))
    for text in [[], [UInt8]("a setting".utf8)] {
      var object: [UInt8] = [1]
      try text.withUnsafeBytes { try cipher.seal($0, additionalData: [7], appendingTo: &object) }
      #expect(object.count == 1 + text.count + XAES256GCM.overheadByteCount)
      #expect(try cipher.withOpened(object.dropFirst(), additionalData: [7]) { Array($0) } == text)
      #expect(throws: CryptoError.authenticationFailed) {
        try cipher.withOpened(object.dropFirst(), additionalData: [8]) { _ in }
      }
      for index in 1..<object.count {
        object[index] ^= 1
        #expect(throws: CryptoError.authenticationFailed) {
          try cipher.withOpened(object.dropFirst(), additionalData: [7]) { _ in }
        }
        object[index] ^= 1
      }
    }
    #expect(throws: CryptoError.authenticationFailed) {
      try cipher.withOpened([UInt8](repeating: 0, count: 39)[...], additionalData: []) { _ in }
    }
  }
}
