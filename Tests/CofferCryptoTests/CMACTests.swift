import Foundation
import Testing

@testable import CofferCrypto

/// AES-CMAC (NIST SP 800-38B) of any message, put together of the parts that XAES-256-GCM derives its keys with, for one
/// block each.
private struct CMAC: ~Copyable {
  private let cipher: AES256BlockCipher
  private var subkeys: [[UInt8]] = []

  init(key: SecretBytes) throws {
    let cipher = try AES256BlockCipher(key: key, .encrypt)
    var block = [UInt8](repeating: 0, count: 16)
    var subkeys: [[UInt8]] = []
    try block.withUnsafeMutableBytes { bytes in
      let start = try #require(bytes.baseAddress)
      try cipher.transform(start, count: 16)
      for _ in 0..<2 {
        XAES256GCM.double(start)
        subkeys.append(Array(bytes))
      }
    }
    self.cipher = cipher
    self.subkeys = subkeys
  }

  borrowing func tag(of message: [UInt8]) throws -> [UInt8] {
    let isWhole = !message.isEmpty && message.count % 16 == 0
    var padded = message
    if !isWhole {
      padded.append(0x80)
      while padded.count % 16 != 0 { padded.append(0) }
    }
    for index in 0..<16 { padded[padded.count - 16 + index] ^= subkeys[isWhole ? 0 : 1][index] }
    var state = [UInt8](repeating: 0, count: 16)
    for start in stride(from: 0, to: padded.count, by: 16) {
      for index in 0..<16 { state[index] ^= padded[start + index] }
      try state.withUnsafeMutableBytes { try cipher.transform(#require($0.baseAddress), count: 16) }
    }
    return state
  }
}

@Suite("The parts of AES-CMAC") struct CMACTests {
  private struct Group: Decodable {
    struct Vector: Decodable {
      let tcId: Int
      let key: String
      let msg: String
      let tag: String
      let result: String
    }

    let keySize: Int
    let tagSize: Int
    let tests: [Vector]
  }

  @Test("agree with Wycheproof", .enabled(if: Wycheproof.isPresent, Wycheproof.note))
  func wycheproof() throws {
    var count = 0
    for group in try Wycheproof.groups("aes_cmac", of: Group.self) where group.keySize == 256 {
      for vector in group.tests {
        let mac = try CMAC(key: SecretBytes(hex: vector.key))
        let tag = try mac.tag(of: bytes(hex: vector.msg)).prefix(group.tagSize / 8)
        #expect(tag.elementsEqual(bytes(hex: vector.tag)) == (vector.result == "valid"), "\(vector.tcId)")
        count += 1
      }
    }
    #expect(count > 50)
  }
}
