import Testing

@testable import CofferCrypto

@Suite("An error")
struct CryptoErrorTests {
  @Test("of OpenSSL names the function and the reason, and clears it from the queue")
  func openSSL() {
    #expect(throws: CryptoError.self) {
      // A parameter of the wrong kind makes OpenSSL complain.
      try KeyDerivation.derive(count: 32, with: Algorithms.hkdf, [OpenSSLParameter("digest", .name("no such hash"))])
    }
    let second = CryptoError.failure(of: "EVP_KDF_derive")
    #expect(second == .openSSL(function: "EVP_KDF_derive", reason: "no reason given"))
  }

  @Test("without a text names the command that explains it")
  func number() {
    // One of the system's errors, for which OpenSSL has no words of its own: ENOENT.
    #expect(CryptoError.reason(of: 0x8000_0002) == "error 80000002, which `openssl errstr 80000002` explains")
  }

  @Test("of a missing key has OpenSSL's text")
  func reason() throws {
    let error = #expect(throws: CryptoError.self) {
      try KeyDerivation.derive(count: 32, with: Algorithms.hkdf, [OpenSSLParameter("digest", .name("SHA256"))])
    }
    #expect(error == .openSSL(function: "EVP_KDF_derive", reason: "missing key"))
  }
}
