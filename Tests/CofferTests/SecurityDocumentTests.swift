import Foundation
import Testing

@Suite("SECURITY.md") struct SecurityDocumentTests {
  @Test("names tests that exist")
  func names() throws {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let document = try String(
      contentsOf: tests.deletingLastPathComponent().appendingPathComponent("SECURITY.md"), encoding: .utf8)
    var sources = ""
    let files = FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil)
    for case let file as URL in files ?? .init() where file.pathExtension == "swift" {
      sources += try String(contentsOf: file, encoding: .utf8)
    }
    // Names may go over a line's end.
    let text = document.replacing("\n  ", with: " ")
    let named = text.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
      .filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
    #expect(named.count > 30)
    let missing = named.filter { !sources.contains("\"\($0)\"") }
    #expect(missing.isEmpty)
  }
}
