import Testing

@testable import CofferCrypto

@Suite("XAES-256-GCM")
struct XAES256GCMTests {
  private let nonce = Array("ABCDEFGHIJKLMNOPQRSTUVWX".utf8)

  private func cipher(_ byte: UInt8 = 1) throws -> XAES256GCM {
    try XAES256GCM(key: SecretBytes([UInt8](repeating: byte, count: 32)))
  }

  // MARK: - Known answers

  @Test(
    "gives the C2SP vectors",
    arguments: [
      (UInt8(1), "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
      (3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
    ])
  func known(keyByte: UInt8, data: String, expected: String) throws {
    let cipher = try cipher(keyByte)
    let plaintext = SecretBytes(Array("XAES-256-GCM".utf8))
    let sealed = try cipher.seal(plaintext, nonce: nonce, additionalData: Array(data.utf8))
    #expect(hex(sealed) == expected)
    #expect(try cipher.open(sealed, nonce: nonce, additionalData: Array(data.utf8)).isEqual(to: plaintext))
  }

  @Test("gives the C2SP vector accumulated over 10,000 random messages")
  func accumulated() throws {
    var source = SHAKE128()
    var sink = SHAKE128()
    for _ in 0..<10_000 {
      let key = SecretBytes(source.squeeze(32))
      let nonce = source.squeeze(24)
      let plaintext = SecretBytes(source.squeeze(Int(source.squeeze(1)[0])))
      let data = source.squeeze(Int(source.squeeze(1)[0]))

      let cipher = try XAES256GCM(key: key)
      let sealed = try cipher.seal(plaintext, nonce: nonce, additionalData: data)
      let opened = try cipher.open(sealed, nonce: nonce, additionalData: data)
      guard opened.isEqual(to: plaintext) else {
        Issue.record("a message did not come back")
        return
      }
      sink.absorb(sealed)
    }
    #expect(hex(sink.squeeze(32)) == "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939")
  }

  // MARK: - Round trips

  @Test("decrypts messages of every length around the block size", arguments: [0, 1, 15, 16, 17, 31, 4048, 100_000])
  func lengths(count: Int) throws {
    let cipher = try cipher()
    let plaintext = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    for data in [[], [7], [UInt8](repeating: 9, count: 100)] as [[UInt8]] {
      let sealed = try cipher.seal(SecretBytes(plaintext), nonce: nonce, additionalData: data)
      #expect(sealed.count == count + XAES256GCM.tagByteCount)
      #expect(try cipher.open(sealed, nonce: nonce, additionalData: data).exposed == plaintext)
    }
  }

  @Test("seals and opens in place as it does elsewhere, at any address")
  func inPlace() throws {
    let cipher = try cipher()
    let plaintext = (0..<4048).map { UInt8(truncatingIfNeeded: $0) }
    let expected = try cipher.seal(SecretBytes(plaintext), nonce: nonce, additionalData: [1, 2])

    // Everything one byte off alignment.
    var buffer: [UInt8] = [0] + plaintext + [UInt8](repeating: 0, count: 16)
    let shiftedNonce: [UInt8] = [0] + nonce
    try shiftedNonce.withUnsafeBytes { nonce in
      try buffer.withUnsafeMutableBytes { buffer in
        let start = buffer.baseAddress! + 1
        try ([1, 2] as [UInt8]).withUnsafeBytes { data in
          try cipher.seal(
            start, count: 4048, into: start, tag: start + 4048, nonce: nonce.baseAddress! + 1, additionalData: data)
          #expect(Array(buffer.dropFirst()) == expected)
          try cipher.open(
            start, count: 4048, into: start, tag: start + 4048, nonce: nonce.baseAddress! + 1, additionalData: data)
        }
        #expect(Array(buffer[1...4048]) == plaintext)
      }
    }
  }

  @Test("leaves nothing of one message for the next")
  func interleaving() throws {
    let cipher = try cipher()
    let first = try cipher.seal(SecretBytes([1, 2, 3]), nonce: nonce, additionalData: [1])
    #expect(throws: CryptoError.authenticationFailed) {
      try cipher.open(first, nonce: nonce, additionalData: [2])
    }
    #expect(try cipher.seal(SecretBytes([1, 2, 3]), nonce: nonce, additionalData: [1]) == first)
    #expect(try cipher.open(first, nonce: nonce, additionalData: [1]).exposed == [1, 2, 3])
  }

  @Test("gives different ciphertexts for different nonces, wherever they differ")
  func nonces() throws {
    let cipher = try cipher()
    var seen: Set<[UInt8]> = []
    for index in 0..<24 {
      var nonce = nonce
      nonce[index] ^= 0x80
      seen.insert(try cipher.seal(SecretBytes([UInt8](repeating: 0, count: 16)), nonce: nonce, additionalData: []))
    }
    #expect(seen.count == 24)
  }

  // MARK: - Wrong sizes

  @Test("refuses keys of another length", arguments: [0, 16, 31, 33, 64])
  func keySizes(count: Int) {
    #expect(throws: CryptoError.invalidParameter("XAES-256-GCM takes a key of 32 bytes, not \(count)")) {
      try XAES256GCM(key: SecretBytes([UInt8](repeating: 1, count: count)))
    }
  }

  @Test("refuses nonces of another length", arguments: [0, 12, 23, 25])
  func nonceSizes(count: Int) throws {
    let cipher = try cipher()
    let nonce = [UInt8](repeating: 1, count: count)
    let expected = CryptoError.invalidParameter("XAES-256-GCM takes a nonce of 24 bytes, not \(count)")
    #expect(throws: expected) { try cipher.seal(SecretBytes([1]), nonce: nonce, additionalData: []) }
    #expect(throws: expected) {
      try cipher.open([UInt8](repeating: 0, count: 17), nonce: nonce, additionalData: [])
    }
  }

  @Test("refuses lengths beyond OpenSSL's limit, and changes nothing", arguments: [-1, Int(Int32.max) + 1])
  func absurdLengths(count: Int) throws {
    let cipher = try cipher()
    var output: [UInt8] = [5]
    let tag = [UInt8](repeating: 0, count: 16)
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    #expect(throws: CryptoError.self) {
      try cipher.open([0], count: count, into: &output, tag: tag, nonce: nonce, additionalData: none)
    }
    #expect(output == [5])
  }
}
