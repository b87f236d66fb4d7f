import Testing

@testable import CofferCrypto

/// Every change to sealed data must be detected, and must leave nothing in the output.
@Suite("A changed message")
struct XAES256GCMTamperingTests {
  /// One sealed message with all that is needed to open it.
  private struct Sealed {
    var key: [UInt8]
    var nonce: [UInt8]
    var ciphertext: [UInt8]
    var tag: [UInt8]
    var data: [UInt8]

    init(count: Int, dataCount: Int = 20) throws {
      key = (0..<32).map { UInt8($0 * 5 + 1) }
      nonce = (0..<24).map { UInt8($0 * 3 + 2) }
      data = (0..<dataCount).map { UInt8($0 + 100) }
      let plaintext = (0..<count).map { UInt8(truncatingIfNeeded: $0 | 1) }
      let sealed = try XAES256GCM(key: SecretBytes(key))
        .seal(SecretBytes(plaintext), nonce: nonce, additionalData: data)
      ciphertext = Array(sealed.prefix(count))
      tag = Array(sealed.suffix(16))
    }

    /// Opens into a buffer that initially has `ciphertext`, or a pattern, and returns its final contents.
    func open(inPlace: Bool) throws -> (output: [UInt8], error: CryptoError?) {
      let cipher = try XAES256GCM(key: SecretBytes(key))
      let count = ciphertext.count
      var output = (inPlace ? ciphertext : [UInt8](repeating: 0xee, count: count)) + [0x77]
      var error: CryptoError?
      output.withUnsafeMutableBytes { output in
        ciphertext.withUnsafeBytes { ciphertext in
          data.withUnsafeBytes { data in
            let target = output.baseAddress!
            let input = inPlace ? UnsafeRawPointer(target) : ciphertext.baseAddress ?? UnsafeRawPointer(target)
            do throws(CryptoError) {
              try cipher.open(input, count: count, into: target, tag: tag, nonce: nonce, additionalData: data)
            } catch let failure {
              error = failure
            }
          }
        }
      }
      #expect(output.last == 0x77, "written past the end")
      return (output.dropLast(), error)
    }

    func isRefused() throws -> Bool {
      for inPlace in [false, true] {
        let (output, error) = try open(inPlace: inPlace)
        guard error == .authenticationFailed, output.allSatisfy({ $0 == 0 }) else { return false }
      }
      return true
    }
  }

  private func flipped(_ bytes: [UInt8], _ bit: Int) -> [UInt8] {
    var bytes = bytes
    bytes[bit / 8] ^= 1 << UInt8(bit % 8)
    return bytes
  }

  @Test("opens when it is not changed", arguments: [0, 24, 4048])
  func control(count: Int) throws {
    let message = try Sealed(count: count)
    for inPlace in [false, true] {
      let (output, error) = try message.open(inPlace: inPlace)
      #expect(error == nil)
      #expect(output == (0..<count).map { UInt8(truncatingIfNeeded: $0 | 1) })
    }
  }

  @Test("is refused for any bit of its key, nonce, tag and additional data", arguments: [0, 24])
  func bits(count: Int) throws {
    let message = try Sealed(count: count)
    for part in [\Sealed.key, \.nonce, \.tag, \.data] {
      for bit in 0..<message[keyPath: part].count * 8 {
        var changed = message
        changed[keyPath: part] = flipped(message[keyPath: part], bit)
        #expect(try changed.isRefused(), "\(part), bit \(bit)")
      }
    }
  }

  @Test("is refused for any bit of a short ciphertext")
  func shortCiphertext() throws {
    let message = try Sealed(count: 24)
    for bit in 0..<24 * 8 {
      var changed = message
      changed.ciphertext = flipped(message.ciphertext, bit)
      #expect(try changed.isRefused(), "bit \(bit)")
    }
  }

  @Test("is refused for flipped bits all over a page")
  func pageCiphertext() throws {
    let message = try Sealed(count: 4048)
    let last = 4048 * 8 - 1
    for bit in Array(stride(from: 0, through: last, by: 97)) + [last] {
      var changed = message
      changed.ciphertext = flipped(message.ciphertext, bit)
      #expect(try changed.isRefused(), "bit \(bit)")
    }
  }

  @Test("is refused when truncated or extended")
  func ciphertextLength() throws {
    let message = try Sealed(count: 48)
    for count in 0..<48 {
      var changed = message
      changed.ciphertext = Array(message.ciphertext.prefix(count))
      #expect(try changed.isRefused(), "cut to \(count)")
      changed.ciphertext = Array(message.ciphertext.suffix(count))
      #expect(try changed.isRefused(), "last \(count)")
    }
    var changed = message
    changed.ciphertext.append(0)
    #expect(try changed.isRefused())
  }

  @Test("is refused when its additional data is truncated, extended or missing")
  func additionalDataLength() throws {
    let message = try Sealed(count: 24)
    var changed = message
    for count in 0..<20 {
      changed.data = Array(message.data.prefix(count))
      #expect(try changed.isRefused(), "cut to \(count)")
    }
    changed.data = message.data + [0]
    #expect(try changed.isRefused())

    // The end of the additional data is the beginning of the ciphertext now.
    changed.data = message.data + [message.ciphertext[0]]
    changed.ciphertext = Array(message.ciphertext.dropFirst())
    #expect(try changed.isRefused())

    var bare = try Sealed(count: 24, dataCount: 0)
    bare.data = [0]
    #expect(try bare.isRefused())
  }

  @Test("in one array is refused at every truncated length")
  func truncatedMessage() throws {
    let message = try Sealed(count: 24)
    let sealed = message.ciphertext + message.tag
    let cipher = try XAES256GCM(key: SecretBytes(message.key))
    #expect(try cipher.open(sealed, nonce: message.nonce, additionalData: message.data).count == 24)
    for count in 0..<sealed.count {
      #expect(throws: CryptoError.authenticationFailed, "cut to \(count)") {
        try cipher.open(Array(sealed.prefix(count)), nonce: message.nonce, additionalData: message.data)
      }
    }
  }
}
