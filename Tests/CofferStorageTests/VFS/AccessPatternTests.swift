import Foundation
import Testing

@testable import CofferStorage

@Suite("Access patterns") struct AccessPatternTests {
  @Test("keeps the cache of one connection correct after another one committed")
  func changeCounter() throws {
    let store = try SmallStore(rows: 200)
    let (reader, writer) = (try store.connect(), try store.connect())
    // A checkpoint that leaves nothing in the log, so that the reader goes by page 1 alone.
    for round in 1...3 {
      #expect(try reader.contents().count == 199 + round)
      try writer.beginWrite(.full)
      try writer.set("new \(round)", "\(round)")
      try writer.commit()
      try writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
      #expect(try reader.contents().contains("new \(round)=\(round)"))
    }
  }

  @Test("are each driven by a test that exists")
  func table() throws {
    let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let table = try String(contentsOf: here.appendingPathComponent("AccessPatterns.md"), encoding: .utf8)
    let named = table.split(separator: "\n").filter { $0.hasPrefix("| ") && $0.hasSuffix("\" |") }
      .map { $0.split(separator: "\"").dropLast().last.map(String.init) ?? "" }
    #expect(named.count > 20)
    var sources = ""
    let tests = here.deletingLastPathComponent().deletingLastPathComponent()
    for case let file as URL in FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil) ?? .init()
    where file.pathExtension == "swift" {
      sources += try String(contentsOf: file, encoding: .utf8)
    }
    for name in named { #expect(sources.contains("@Test(\"\(name)\""), "\(name)") }
  }
}
