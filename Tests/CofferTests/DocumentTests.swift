import Foundation
import TestSupport
import Testing

/// The repository's pages and the sources of all tests.
private enum Repository {
  static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  static let root = tests.deletingLastPathComponent()

  static func page(_ path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }

  static func testSources() throws -> String {
    var sources = ""
    for case let file as URL in FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil) ?? .init()
    where file.pathExtension == "swift" {
      sources += try String(contentsOf: file, encoding: .utf8)
    }
    return sources
  }
}

@Suite("SECURITY.md") struct SecurityDocumentTests {
  @Test("names tests that exist")
  func names() throws {
    let sources = try Repository.testSources()
    // Names may go over a line's end.
    let text = try Repository.page("SECURITY.md").replacing("\n  ", with: " ")
    let named = text.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
      .filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
    #expect(named.count > 30)
    let missing = named.filter { !sources.contains("\"\($0)\"") }
    #expect(missing.isEmpty)
  }
}

@Suite("Semantics.md") struct SemanticsDocumentTests {
  @Test("has each promise that a test names, and no promise without a test")
  func promises() throws {
    let page = try Repository.page("Documentation/Semantics.md")
    let promised = Set(page.matches(of: #/<a id="(\d+\.\d+)"></a>\*\*(\d+\.\d+)\*\*/#).map { "\($0.1)" })
    #expect(promised.count == page.matches(of: #/<a id=/#).count && promised.count > 60)
    var tested: Set<String> = []
    // The numbers that a name begins with, after a quotation mark: 4.1, or 6.1-6.7, or some of both with commas between.
    for name in try Repository.testSources().matches(of: #/@Test\(\s*"(\d+\.\d+[-0-9., ]*) /#) {
      for match in name.1.matches(of: #/(\d+)\.(\d+)(?:-\d+\.(\d+))?/#) {
        let first = try #require(Int(match.2))
        let last = try match.3.map { try #require(Int($0)) } ?? first
        for number in first...last { tested.insert("\(match.1).\(number)") }
      }
    }
    #expect(promised.subtracting(tested).isEmpty)
    #expect(tested.subtracting(promised).isEmpty)
  }
}

@Suite("PublicSurface.md") struct PublicSurfaceDocumentTests {
  @Test("has the number of public declarations that its command counts")
  func declarationCount() throws {
    let page = try Repository.page("Documentation/PublicSurface.md")
    let claim = try #require(page.firstMatch(of: #/`(grep [^`]+)`: \*\*\d+ before, (\d+) after\*\*/#))
    let child = try Child.run("/bin/sh", ["-c", "cd \"$0\" && \(claim.1)", Repository.root.path])
    #expect(child.status == 0)
    #expect(child.text.trimmingCharacters(in: .whitespacesAndNewlines) == String(claim.2))
  }
}
