import Testing

@testable import CofferCrypto

@Suite("SHA-256")
struct SHA256Tests {
  @Test(
    "gives the values of FIPS 180",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
    ])
  func known(message: String, digest: String) throws {
    #expect(hex(try Array(message.utf8).withUnsafeBytes { try SHA256.digest($0) }) == digest)
  }

  @Test("takes an empty buffer without an address")
  func nullBuffer() throws {
    let digest = try SHA256.digest(UnsafeRawBufferPointer(start: nil, count: 0))
    #expect(digest.count == SHA256.byteCount)
    #expect(hex(digest).hasPrefix("e3b0c442"))
  }
}
