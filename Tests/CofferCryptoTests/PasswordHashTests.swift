import Testing

@testable import CofferCrypto

@Suite("A password hash")
struct PasswordHashTests {
  private func key(_ hash: PasswordHash, _ password: String, salt: String, count: Int = 64) throws -> String {
    hex(try hash.deriveKey(from: SecretBytes(Array(password.utf8)), salt: Array(salt.utf8), count: count).exposed)
  }

  // MARK: - scrypt

  @Test("by scrypt gives the values of RFC 7914")
  func scrypt() throws {
    #expect(
      try key(.scrypt(log2N: 4, r: 1, p: 1), "", salt: "")
        == "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
        + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906")
    #expect(
      try key(.scrypt(log2N: 10, r: 8, p: 16), "password", salt: "NaCl")
        == "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
        + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640")
    #expect(
      try key(.scrypt(log2N: 14, r: 8, p: 1), "pleaseletmein", salt: "SodiumChloride")
        == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
        + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887")
  }

  @Test("by scrypt works at the default cost, which is above OpenSSL's own memory limit")
  func scryptDefault() throws {
    #expect(try key(.scrypt(log2N: 17, r: 8, p: 1), "password", salt: "NaCl", count: 32).count == 64)
  }

  @Test(
    "by scrypt refuses costs that are undefined or absurd, before it allocates",
    arguments: [
      PasswordHash.scrypt(log2N: 0, r: 8, p: 1),
      .scrypt(log2N: 16, r: 1, p: 1),
      .scrypt(log2N: 33, r: 8, p: 1),
      .scrypt(log2N: 64, r: 8, p: 1),
      .scrypt(log2N: 255, r: .max, p: .max),
      .scrypt(log2N: 17, r: 0, p: 1),
      .scrypt(log2N: 17, r: 8, p: 0),
      .scrypt(log2N: 1, r: 1 << 15, p: 1 << 15),
      .scrypt(log2N: 22, r: 8, p: 1),
      .scrypt(log2N: 32, r: (1 << 30) - 1, p: 1),
      .scrypt(log2N: 1, r: 1, p: 1 << 25),
      .scrypt(log2N: 10, r: 8, p: 1 << 20),
      .scrypt(log2N: 1, r: .max, p: .max),
    ])
  func scryptCosts(hash: PasswordHash) {
    #expect(throws: CryptoError.self) { try hash.checkCost() }
    expectInvalidParameter { try key(hash, "password", salt: "NaCl") }
  }

  @Test(
    "by scrypt accepts costs up to the ceilings",
    arguments: [
      PasswordHash.scrypt(log2N: 1, r: 1, p: 1),
      .scrypt(log2N: 17, r: 8, p: 1),
      .scrypt(log2N: 21, r: 8, p: 1),
      .scrypt(log2N: 21, r: 15, p: 8),
    ])
  func scryptAllowed(hash: PasswordHash) throws {
    try hash.checkCost()
  }

  // MARK: - PBKDF2

  @Test("by PBKDF2-HMAC-SHA-512 gives known values")
  func pbkdf2() throws {
    #expect(
      try key(.pbkdf2HMACSHA512(iterations: 1), "password", salt: "salt")
        == "867f70cf1ade02cff3752599a3a53dc4af34c7a669815ae5d513554e1c8cf252"
        + "c02d470a285a0501bad999bfe943c08f050235d7d68b1da55e63f73b60a57fce")
    #expect(
      try key(.pbkdf2HMACSHA512(iterations: 2), "password", salt: "salt")
        == "e1d9c16aa681708a45f5c7c4e215ceb66e011a2e9f0040713f18aefdb866d53c"
        + "f76cab2868a39b9f7840edce4fef5a82be67335c77a6068e04112754f27ccf4e")
    #expect(
      try key(
        .pbkdf2HMACSHA512(iterations: 4096), "passwordPASSWORDpassword", salt: "saltSALTsaltSALTsaltSALTsaltSALTsalt")
        == "8c0511f4c6e597c6ac6315d8f0362e225f3c501495ba23b868c005174dc4ee71"
        + "115b59f9e60cd9532fa33e0f75aefe30225c583a186cd82bd4daea9724a3d3b8")
  }

  @Test("by PBKDF2 refuses zero iterations and absurdly many", arguments: [0, (1 << 28) + 1, .max] as [UInt32])
  func pbkdf2Costs(iterations: UInt32) {
    expectInvalidParameter { try key(.pbkdf2HMACSHA512(iterations: iterations), "password", salt: "salt") }
  }

  struct Group: Decodable {
    struct Vector: Decodable {
      let tcId: Int
      let password: String
      let salt: String
      let iterationCount: UInt32
      let dkLen: Int
      let dk: String
      let result: String
    }
    let tests: [Vector]
  }

  @Test("by PBKDF2-HMAC-SHA-512 agrees with Wycheproof", .enabled(if: Wycheproof.isPresent, Wycheproof.note))
  func wycheproof() throws {
    var checked = 0
    for vector in try Wycheproof.groups("pbkdf2_hmacsha512", of: Group.self).flatMap(\.tests) {
      let hash = PasswordHash.pbkdf2HMACSHA512(iterations: vector.iterationCount)
      let password = SecretBytes(hex: vector.password)
      let derived = try hash.deriveKey(from: password, salt: bytes(hex: vector.salt), count: vector.dkLen)
      #expect((hex(derived.exposed) == vector.dk) == (vector.result != "invalid"), "vector \(vector.tcId)")
      checked += 1
    }
    #expect(checked > 50)
  }

  // MARK: - Argon2id

  @Test("by Argon2id gives the value of RFC 9106", .enabled(if: PasswordHash.isArgon2idAvailable, "needs OpenSSL 3.2"))
  func argon2idRFC() throws {
    // The RFC's vector has a secret and associated data, which a password hash of ours does not take.
    let (password, salt) = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 16))
    let (secret, data) = ([UInt8](repeating: 3, count: 8), [UInt8](repeating: 4, count: 12))
    let tag = try password.withUnsafeBytes { password in
      try salt.withUnsafeBytes { salt in
        try secret.withUnsafeBytes { secret in
          try data.withUnsafeBytes { data in
            try KeyDerivation.derive(
              count: 32, with: Algorithms.argon2id,
              [
                OpenSSLParameter("pass", .bytes(password)), OpenSSLParameter("salt", .bytes(salt)),
                OpenSSLParameter("secret", .bytes(secret)), OpenSSLParameter("ad", .bytes(data)),
                OpenSSLParameter("memcost", .number(32)), OpenSSLParameter("iter", .number(3)),
                OpenSSLParameter("lanes", .number(4)),
              ])
          }
        }
      }
    }
    #expect(hex(tag.exposed) == "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659")
  }

  @Test("by Argon2id gives a known value", .enabled(if: PasswordHash.isArgon2idAvailable, "needs OpenSSL 3.2"))
  func argon2id() throws {
    let hash = PasswordHash.argon2id(memoryKiB: 64, iterations: 3, lanes: 4)
    let password = SecretBytes(Array("password".utf8))
    let derived = try hash.deriveKey(from: password, salt: [UInt8](repeating: 2, count: 16), count: 32)
    // From Python's `cryptography`.
    #expect(hex(derived.exposed) == "6906f99d4e03819d8ede5d806b4bf5a2100741e2c716734a9a90ed99bf85bded")
  }

  @Test("by Argon2id reports that it is missing", .disabled(if: PasswordHash.isArgon2idAvailable, "it is here"))
  func argon2idMissing() {
    #expect(throws: CryptoError.unavailable(algorithm: "ARGON2ID")) {
      try key(.argon2id(memoryKiB: 64, iterations: 1, lanes: 1), "password", salt: "12345678")
    }
  }

  @Test(
    "by Argon2id refuses costs that are undefined or absurd",
    arguments: [
      PasswordHash.argon2id(memoryKiB: 7, iterations: 1, lanes: 1),
      .argon2id(memoryKiB: 64, iterations: 0, lanes: 1),
      .argon2id(memoryKiB: 64, iterations: 1, lanes: 0),
      .argon2id(memoryKiB: 64, iterations: 1, lanes: 9),
      .argon2id(memoryKiB: .max, iterations: 1, lanes: 1 << 24),
      .argon2id(memoryKiB: (4 << 20) + 1, iterations: 1, lanes: 1),
      .argon2id(memoryKiB: 4 << 20, iterations: 65, lanes: 1),
      .argon2id(memoryKiB: .max, iterations: .max, lanes: .max),
    ])
  func argon2idCosts(hash: PasswordHash) {
    expectInvalidParameter { try key(hash, "password", salt: "12345678") }
  }

  // MARK: - Sizes

  @Test("refuses keys that are empty or too long", arguments: [-1, 0, 129, Int.max])
  func keySizes(count: Int) {
    expectInvalidParameter { try key(.scrypt(log2N: 4, r: 1, p: 1), "password", salt: "salt", count: count) }
    expectInvalidParameter { try key(.pbkdf2HMACSHA512(iterations: 1), "password", salt: "salt", count: count) }
  }

  @Test("by Argon2id refuses a short salt and a short key")
  func argon2idSizes() {
    let hash = PasswordHash.argon2id(memoryKiB: 64, iterations: 1, lanes: 1)
    expectInvalidParameter { try key(hash, "password", salt: "1234567", count: 32) }
    expectInvalidParameter { try key(hash, "password", salt: "12345678", count: 3) }
  }

  private func expectInvalidParameter(
    _ body: () throws -> String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(sourceLocation: sourceLocation) {
      try body()
    } throws: { error in
      if case CryptoError.invalidParameter = error { true } else { false }
    }
  }
}
