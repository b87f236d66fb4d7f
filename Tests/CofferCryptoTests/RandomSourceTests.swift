import Testing

@testable import CofferCrypto

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

@Suite("A random source")
struct RandomSourceTests {
  private func draw(_ source: RandomSource, _ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    try bytes.withUnsafeMutableBytes { try source.fill($0) }
    return bytes
  }

  @Test("does not repeat a nonce in 100,000")
  func nonces() throws {
    let source = RandomSource()
    var seen: Set<[UInt8]> = []
    // The clocks alone would tell the rest apart.
    for _ in 0..<100_000 { seen.insert(try draw(source, 24).suffix(8).map(\.self)) }
    #expect(seen.count == 100_000)
  }

  @Test("returns no byte of its buffer twice, whatever the sizes of the requests")
  func pieces() throws {
    let source = RandomSource()
    // Any eight bytes that appear again would have been handed out again.
    var seen: Set<[UInt8]> = []
    var count = 0
    for length in Array(8...300) + [4095, 4096, 8, 4097, 10_000, 16, 4096, 4096] {
      let bytes = try draw(source, length)
      for start in stride(from: 0, through: length - 8, by: 8) {
        seen.insert(Array(bytes[start..<start + 8]))
        count += 1
      }
    }
    #expect(seen.count == count)
  }

  @Test("fills exactly the given buffer", arguments: [0, 1, 255, 256, 257, 4096, 4097])
  func bounds(count: Int) throws {
    var buffer = [UInt8](repeating: 0, count: count + 64)
    let source = RandomSource()
    try buffer.withUnsafeMutableBytes { try source.fill(UnsafeMutableRawBufferPointer(rebasing: $0[32..<32 + count])) }
    #expect(buffer.prefix(32).allSatisfy { $0 == 0 })
    #expect(buffer.suffix(32).allSatisfy { $0 == 0 })
    if count > 16 { #expect(buffer.contains { $0 != 0 }) }
  }

  @Test("takes an empty buffer without an address")
  func nullBuffer() throws {
    try RandomSource().fill(UnsafeMutableRawBufferPointer(start: nil, count: 0))
    #expect(try RandomSource.bytes(count: 0).isEmpty)
  }

  @Test("mixes the clocks into its output, so that a machine resumed twice from one image repeats no nonce")
  func clocks() throws {
    let source = RandomSource()
    _ = try draw(source, 8)
    // What both machines have, and the first of them hands out.
    let image = Array(source.drawnAhead)
    let bytes = try draw(source, 24)
    let clocks = zip(bytes, image).map { $0 ^ $1 }
    let day = UInt64(littleEndian: clocks.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    #expect(abs(Int(day / 1_000_000_000) - now.tv_sec) < 3600)
    #expect(clocks[8..<16].contains { $0 != 0 })
    #expect(Array(bytes[16...]) == Array(image[16..<24]))
    #expect(try draw(source, 24) != Array(image[24..<48]))
  }

  @Test("fills buffers shorter than the clocks")
  func short() throws {
    let source = RandomSource()
    var seen: Set<[UInt8]> = []
    for _ in 0..<1000 { seen.insert(try draw(source, 7)) }
    #expect(seen.count == 1000)
  }

  @Test("gives a forked child other bytes than its parent")
  func fork() throws {
    let source = RandomSource()
    // Something is drawn ahead, which both would hand out.
    _ = try draw(source, 8)
    let child = try #require(
      inForkedChild(byteCount: 48) { buffer in
        do { try source.fill(buffer) } catch { return false }
        return true
      })
    let parent = try draw(source, 48)
    #expect(child.contains { $0 != 0 })
    // Behind the first 16 bytes, which have the clocks in them.
    #expect(Array(child[16..<24]) != Array(parent[16..<24]))
    #expect(Array(child.suffix(24)) != Array(parent.suffix(24)))
  }

  @Test("draws single values on many threads at once")
  func threads() async throws {
    let drawn = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<200 { group.addTask { try RandomSource.bytes(count: 32) } }
      return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
    }
    #expect(drawn.count == 200)
  }
}
