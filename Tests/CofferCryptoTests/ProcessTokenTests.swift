import Testing

@testable import CofferCrypto

@Suite("The process token")
struct ProcessTokenTests {
  @Test("is not zero, and the same on every thread")
  func stable() async {
    let token = ProcessToken.current
    #expect(token != 0)
    await withTaskGroup(of: UInt64.self) { group in
      for _ in 0..<100 { group.addTask { ProcessToken.current } }
      for await other in group { #expect(other == token) }
    }
  }

  @Test("differs in a forked child and grandchild, and stays the same in the parent")
  func fork() throws {
    let token = ProcessToken.current
    let written = inForkedChild(byteCount: 16) { buffer in
      let mine = ProcessToken.current
      buffer.storeBytes(of: mine, as: UInt64.self)
      let grandchild = inForkedChild(byteCount: 8, seconds: 3) { buffer in
        buffer.storeBytes(of: ProcessToken.current, as: UInt64.self)
        return true
      }
      guard let grandchild, ProcessToken.current == mine else { return false }
      UnsafeMutableRawBufferPointer(rebasing: buffer[8...]).copyBytes(from: grandchild)
      return true
    }
    let tokens = try #require(written).withUnsafeBytes { Array($0.bindMemory(to: UInt64.self)) }
    #expect(Set(tokens + [token, 0]).count == 4)
    #expect(ProcessToken.current == token)
  }
}
