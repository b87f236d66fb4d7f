import COpenSSL
import Testing

@testable import CofferCrypto

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The vectors of the other suites go through it, too: what they use is found in it.
@Suite("The algorithms that OpenSSL lists for Coffer")
struct AlgorithmContextTests {
  @Test("are those in use, with their dependencies")
  func listed() throws {
    let context = try #require(AlgorithmContext())
    let kinds = [
      "AES-256-CTR", "AES-256-ECB", "AES-256-GCM", "ARGON2ID", "BLAKE2B-512", "BLAKE2BMAC", "CTR-DRBG",
      "ED25519", "HKDF", "HMAC", "JITTER", "PBKDF2", "SCRYPT", "SEED-SRC", "SHA2-256", "SHA2-512", "SHAKE-128",
      "X25519",
    ]
    let later: Set = ["ARGON2ID", "JITTER"]
    let names = Set(listedNames(in: context.object))
    #expect(names.subtracting(later) == Set(kinds).subtracting(later))
    #expect(names.isSubset(of: kinds))
    // What a later version has is listed where the default provider has it.
    #expect(names == Set(listedNames(in: nil)).intersection(kinds))
  }

  /// In a process of its own: another test's mistake may complete the list for all.
  @Test("are all found there, need no others, and produce the values of the specifications")
  func found() async {
    await #expect(processExitsWith: .success) {
      func derive(_ hash: PasswordHash) throws -> String {
        hex(try hash.deriveKey(from: SecretBytes(Array("password".utf8)), salt: Array("salt".utf8), count: 8).exposed)
      }
      expectInChild(try derive(.scrypt(log2N: 10, r: 8, p: 1)) == "16dbc8906763c7f0")
      expectInChild(try derive(.pbkdf2HMACSHA512(iterations: 1)) == "867f70cf1ade02cf")
      let context = try OpenSSLLibrary.context.orExit()
      if listedNames(in: context.object).contains("ARGON2ID") {
        expectInChild(try derive(.argon2id(memoryKiB: 64, iterations: 2, lanes: 1)).count == 16)
      }
      let key = SecretBytes([UInt8](repeating: 0x0b, count: 20))
      let message = Array("Hi There".utf8)
      let code = try message.withUnsafeBytes { try HMACSHA256.authenticate($0, key: key) }
      expectInChild(hex(code).hasPrefix("b0344c61d8db38535ca8afceaf0bf12b"))
      expectInChild(
        try hex("abc".utf8.map { $0 }.withUnsafeBytes { try SHA256.digest($0) }).hasPrefix("ba7816bf8f01cfea"))
      let longer = SecretBytes([UInt8](repeating: 0x0b, count: 22))
      let derived = try HKDF.deriveKey(from: longer, salt: [UInt8](0...0x0c), info: [UInt8](0xf0...0xf9), count: 42)
      expectInChild(hex(derived.exposed).hasPrefix("3cb25f25faacd57a90434f64d0362f2a"))
      let seed = SecretBytes(hex: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
      expectInChild(hex(try Ed25519.sign([0x72], seed: seed)).hasPrefix("92a009a9f0d4cab8720e820b5f642540"))
      expectInChild(try X25519.agree(seed, with: X25519.publicKey(of: key.padded)).count == 32)
      let (cipher, block) = (try Algorithms.aes256GCM.get(), try Algorithms.aes256ECB.get())
      for name in [
        EVP_CIPHER_get0_provider(cipher.object), EVP_CIPHER_get0_provider(block.object),
        EVP_MD_get0_provider(try Algorithms.sha256.get().object),
        EVP_MAC_get0_provider(try Algorithms.hmac.get().object),
        EVP_KDF_get0_provider(try Algorithms.hkdf.get().object),
        EVP_KDF_get0_provider(try Algorithms.scrypt.get().object),
        EVP_KDF_get0_provider(try Algorithms.pbkdf2.get().object),
      ].map(provider) {
        expectInChild(name == "coffer")
      }
      expectInChild(!context.isComplete.withLock { $0 })
    }
  }

  @Test("are completed by the default provider if one is missing")
  func missing() throws {
    let context = try #require(AlgorithmContext())
    #expect(EVP_CIPHER_fetch(context.object, "CAMELLIA-256-CBC", nil) == nil)
    ERR_clear_error()
    let camellia = Algorithms.Lookup("CAMELLIA-256-CBC") { EVP_CIPHER_fetch($0, $1, nil) }
    #expect(provider(EVP_CIPHER_get0_provider(try camellia.get(from: context).object)) == "default")
    #expect(EVP_MD_fetch(context.object, "SHA3-256", nil) != nil)
    let none = Algorithms.Lookup("NONE") { EVP_CIPHER_fetch($0, $1, nil) }
    #expect(throws: CryptoError.unavailable(algorithm: "NONE")) { try none.get(from: context) }
  }

  @Test("give the same keys, hashes and codes in many contexts that many threads make and use at once")
  func threads() async throws {
    let expected = try HMACSHA256.authenticate(UnsafeRawBufferPointer(start: nil, count: 0), key: SecretBytes([1]))
    await withTaskGroup(of: String?.self) { group in
      for _ in 0..<8 {
        group.addTask {
          guard let context = AlgorithmContext()?.object, let hmac = EVP_MAC_fetch(context, "HMAC", nil),
            let generator = RAND_get0_private(context)
          else { return nil }
          var bytes = [UInt8](repeating: 0, count: 32)
          guard EVP_RAND_generate(generator, &bytes, 32, 0, 0, nil, 0) == 1, bytes.contains(where: { $0 != 0 }) else {
            return nil
          }
          defer { EVP_MAC_free(hmac) }
          return try? hex(
            HMACSHA256.authenticate(
              UnsafeRawBufferPointer(start: nil, count: 0), key: SecretBytes([1]), by: Algorithm(object: hmac)))
        }
      }
      for await code in group { #expect(code == hex(expected)) }
    }
  }

  // MARK: - Configuration

  @Test("are not used if the configuration asks for FIPS, which the default provider is not")
  func fips() async {
    await #expect(processExitsWith: .success) {
      try configure("alg_section = properties", "[properties]\ndefault_properties = fips=yes")
      expectInChild(OpenSSLLibrary.context == nil)
      do {
        _ = try Algorithms.aes256GCM.get()
        exit(2)
      } catch CryptoError.unavailable(algorithm: "AES-256-GCM") {}
    }
  }

  @Test("are not used if the configuration chooses random generators")
  func generators() async {
    await #expect(processExitsWith: .success) {
      try configure("random = generators", "[generators]\nrandom = HASH-DRBG\ndigest = SHA256")
      expectInChild(OpenSSLLibrary.context == nil)
      _ = try SecretBytes.random(count: 32)
      let primary = try RAND_get0_primary(nil).orExit()
      expectInChild(String(cString: EVP_RAND_get0_name(EVP_RAND_CTX_get0_rand(primary))) == "HASH-DRBG")
    }
  }

  @Test("do not detect a generator that the program chooses by a call, which nonces do not come from")
  func chosenGenerator() async {
    await #expect(processExitsWith: .success) {
      try configure("ssl_conf = none", "[none]")
      expectInChild(RAND_set_DRBG_type(nil, "HASH-DRBG", nil, nil, "SHA256") == 1)
      let context = try OpenSSLLibrary.context.orExit()
      _ = try SecretBytes.random(count: 32)
      let (ours, theirs) = (try RAND_get0_public(context.object).orExit(), try RAND_get0_public(nil).orExit())
      expectInChild(String(cString: EVP_RAND_get0_name(EVP_RAND_CTX_get0_rand(ours))) == "CTR-DRBG")
      expectInChild(String(cString: EVP_RAND_get0_name(EVP_RAND_CTX_get0_rand(theirs))) == "HASH-DRBG")
    }
  }

  @Test("are not used if the configuration adds another provider")
  func otherProvider() async {
    await #expect(processExitsWith: .success) {
      try configure(
        "providers = providers", "[providers]\ndefault = on\nbase = on\n[on]\nactivate = 1")
      expectInChild(OpenSSLLibrary.context == nil)
      expectInChild(provider(EVP_CIPHER_get0_provider(try Algorithms.aes256GCM.get().object)) == "default")
    }
  }

  @Test("are all that a library makes OpenSSL load by default")
  func library() async {
    await #expect(processExitsWith: .success) {
      try configure("ssl_conf = none", "[none]")
      let context = try OpenSSLLibrary.context.orExit()
      _ = try SecretBytes.random(count: 32)
      let primary = try RAND_get0_primary(context.object).orExit()
      expectInChild(provider(EVP_RAND_get0_provider(EVP_RAND_CTX_get0_rand(primary))) == "coffer")
    }
  }

  @Test("work in a program of its own, which reads no configuration")
  func alone() async {
    await #expect(processExitsWith: .success) {
      try configure("alg_section = properties", "[properties]\ndefault_properties = fips=yes")
      OpenSSLLibrary.setUpAlone(withNamesAndWords: false)
      _ = try SecretBytes.random(count: 32)
      _ = try HKDF.deriveKey(from: SecretBytes([1]), salt: [], info: [], count: 32)
      let context = try OpenSSLLibrary.context.orExit()
      let primary = try RAND_get0_primary(context.object).orExit()
      expectInChild(provider(EVP_RAND_get0_provider(EVP_RAND_CTX_get0_rand(primary))) == "coffer")
      expectInChild(!context.isComplete.withLock { $0 })
    }
  }
}

// MARK: -

private func provider(_ provider: OpaquePointer?) -> String? {
  OSSL_PROVIDER_get0_name(provider).map { String(cString: $0) }
}

/// The first names of all listed algorithms of the offered kinds.
private func listedNames(in context: OpaquePointer?) -> [String] {
  final class Names { var all: [String] = [] }
  let names = Names()
  let argument = Unmanaged.passUnretained(names).toOpaque()
  func add(_ text: UnsafePointer<CChar>?, _ argument: UnsafeMutableRawPointer?) {
    guard let text, let argument else { return }
    Unmanaged<Names>.fromOpaque(argument).takeUnretainedValue().all.append(String(cString: text))
  }
  EVP_CIPHER_do_all_provided(context, { add(EVP_CIPHER_get0_name($0), $1) }, argument)
  EVP_MD_do_all_provided(context, { add(EVP_MD_get0_name($0), $1) }, argument)
  EVP_MAC_do_all_provided(context, { add(EVP_MAC_get0_name($0), $1) }, argument)
  EVP_KDF_do_all_provided(context, { add(EVP_KDF_get0_name($0), $1) }, argument)
  EVP_KEYMGMT_do_all_provided(context, { add(EVP_KEYMGMT_get0_name($0), $1) }, argument)
  EVP_KEYEXCH_do_all_provided(context, { add(EVP_KEYEXCH_get0_name($0), $1) }, argument)
  EVP_SIGNATURE_do_all_provided(context, { add(EVP_SIGNATURE_get0_name($0), $1) }, argument)
  EVP_RAND_do_all_provided(context, { add(EVP_RAND_get0_name($0), $1) }, argument)
  return names.all
}

/// Has this process, which has not used OpenSSL yet, read a configuration file.
private func configure(_ entry: String, _ sections: String) throws {
  var path = Array("/tmp/coffer-openssl-XXXXXX".utf8CString)
  let file = mkstemp(&path)
  let text = "openssl_conf = start\n[start]\n\(entry)\n\(sections)\n"
  expectInChild(
    file >= 0 && write(file, text, text.utf8.count) == text.utf8.count && setenv("OPENSSL_CONF", path, 1) == 0)
  close(file)
  atexit { unlink(getenv("OPENSSL_CONF")) }
}

/// In a separate process, whose status is checked.
private func expectInChild(_ condition: Bool, line: Int32 = #line) {
  guard !condition else { return }
  print("not as expected, line \(line)")
  exit(1)
}

extension SecretBytes {
  /// As many bytes as a key on Curve25519 has.
  fileprivate var padded: SecretBytes { SecretBytes(exposed + [UInt8](repeating: 7, count: 32 - count)) }
}

extension Optional {
  fileprivate func orExit() throws -> Wrapped {
    guard let self else { exit(3) }
    return self
  }
}
