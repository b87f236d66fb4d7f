import Testing

@testable import CofferCrypto

@Suite("Comparison in constant time")
struct ConstantTimeTests {
  @Test("finds equal buffers equal", arguments: [0, 1, 15, 16, 17, 64])
  func equal(count: Int) {
    let bytes = (0..<count).map { UInt8($0) }
    #expect(ConstantTime.isEqual(bytes, Array(bytes)))
  }

  @Test("finds each single bit that differs")
  func everyBit() {
    let bytes = [UInt8](0..<32)
    for bit in 0..<256 {
      var other = bytes
      other[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(!ConstantTime.isEqual(bytes, other))
    }
  }

  @Test("finds buffers of different lengths different, even if one is a prefix of the other")
  func lengths() {
    #expect(!ConstantTime.isEqual([1, 2, 3], [1, 2]))
    #expect(!ConstantTime.isEqual([], [0]))
  }

  @Test("takes empty buffers without an address")
  func nullBuffers() {
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    #expect(ConstantTime.isEqual(none, none))
    Memory.wipe(UnsafeMutableRawBufferPointer(start: nil, count: 0))
  }
}

@Suite("Wiping")
struct MemoryTests {
  @Test("overwrites the buffer and nothing else")
  func wipe() {
    var bytes = [UInt8](repeating: 0xff, count: 48)
    bytes.withUnsafeMutableBytes { Memory.wipe(UnsafeMutableRawBufferPointer(rebasing: $0[16..<32])) }
    let kept = [UInt8](repeating: 0xff, count: 16)
    #expect(bytes == kept + [UInt8](repeating: 0, count: 16) + kept)
  }
}
