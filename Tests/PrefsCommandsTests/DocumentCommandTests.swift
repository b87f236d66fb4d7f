import ArgumentParser
import Foundation
import PrefsFleet
import Testing

@testable import PrefsCommands
@testable import PrefsKeyring
@testable import PrefsPage
@testable import PrefsServe

/// Parses every command in the shell blocks of README.md and the articles, whether or not another test runs it.
@Suite("The commands in the documents")
struct DocumentCommandTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("../..").standardized

  private static func documents() throws -> [URL] {
    let sources = root.appendingPathComponent("Sources")
    let articles = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)?.compactMap {
      $0 as? URL
    }
    return [root.appendingPathComponent("README.md")] + (articles ?? []).filter { $0.pathExtension == "md" }
  }

  @Test("Each is accepted by the tool")
  func parse() throws {
    var count = 0
    for document in try Self.documents() {
      for words in Self.commands(in: try String(contentsOf: document, encoding: .utf8)) {
        count += 1
        #expect(throws: Never.self, "\(document.lastPathComponent): prefs \(words.joined(separator: " "))") {
          try Self.parse(words)
        }
      }
    }
    #expect(count > 150)
  }

  @Test("A mistake is found anywhere in a line")
  func mistakes() {
    let text = """
      Some text.
      ```sh
      export A=1 && prefs get a --jsn | cat  # prefs none
      for name in a; do runuser -u ada -- prefs st "$name" 'a  b'; done
      x=$(prefs doctor --depp) || prefs fleet invit web
      prefs set a \\
        --itn 5 2>&1 > file
      ```
      prefs not in a block
      """
    let commands = Self.commands(in: text)
    #expect(
      commands == [
        ["get", "a", "--jsn"], ["st", "$name", "a  b"], ["doctor", "--depp"], ["fleet", "invit", "web"],
        ["set", "a", "--itn", "5"],
      ])
    for words in commands { #expect(throws: (any Error).self, "\(words)") { try Self.parse(words) } }
  }

  private static func parse(_ words: [String]) throws {
    switch words.first {
    case "fleet": _ = try FleetCommand.parseAsRoot(Array(words.dropFirst()))
    case "keyring": _ = try KeyringCommand.parseAsRoot(Array(words.dropFirst()))
    case "serve": _ = try ServeCommand.parseAsRoot(Array(words.dropFirst()))
    case "ui": _ = try UICommand.parseAsRoot(Array(words.dropFirst()))
    default: _ = try PrefsCommand.parseAsRoot(CommandArguments.marked(words))
    }
  }

  // MARK: - Reading shell

  /// The arguments of each call of the tool in a document.
  private static func commands(in document: String) -> [[String]] {
    var commands: [[String]] = []
    for block in document.components(separatedBy: "\n```sh\n").dropFirst() {
      let script = block.components(separatedBy: "\n```")[0].replacing("\\\n", with: " ")
      for line in script.split(separator: "\n") { commands += ShellLine.calls(in: line) }
    }
    return commands
  }
}
