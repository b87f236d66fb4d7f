#if os(Linux)
  import Coffer
  import Testing

  @Suite("Core dumps") struct CoreDumpTests {
    @Test("are off once they were turned off, by the limit and by the kernel's flag")
    func disabled() throws {
      let child = try TemporaryStore().worker("disable-core-dumps")
      #expect(child.status == 0)
      let lines = child.text.split(separator: "\n")
      try #require(lines.count == 3)
      #expect(lines[0] == "1" && lines[1] == "0")
      #expect(lines[2].split(separator: " ").suffix(3).first == "0")
    }
  }
#endif
