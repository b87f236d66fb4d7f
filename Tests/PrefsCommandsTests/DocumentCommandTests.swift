import ArgumentParser
import Foundation
import PrefsFleet
import Testing

@testable import PrefsCommands
@testable import PrefsPage

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
      for line in script.split(separator: "\n") { commands += words(of: line) }
    }
    return commands
  }

  /// The arguments of each call of the tool in a line.
  private static func words(of line: some StringProtocol) -> [[String]] {
    var commands: [[String]] = [[]]
    var word: String?
    var quote: Character?
    func endWord() {
      if let whole = word { commands[commands.count - 1].append(whole) }
      word = nil
    }
    for character in line {
      if let open = quote {
        if character == open { quote = nil } else { word = (word ?? "") + String(character) }
      } else if character == "'" || character == "\"" {
        (quote, word) = (character, word ?? "")
      } else if character == "#", word == nil {
        break
      } else if character == " " {
        endWord()
      } else if "|;()".contains(character) || (character == "&" && word?.hasSuffix(">") != true) {
        endWord()
        commands.append([])
      } else {
        word = (word ?? "") + String(character)
      }
    }
    endWord()
    return commands.compactMap { words in
      words.firstIndex(of: "prefs").map { withoutRedirections(words[($0 + 1)...]) }
    }
  }

  private static func withoutRedirections(_ words: ArraySlice<String>) -> [String] {
    var result: [String] = []
    var isTarget = false
    for word in words {
      let sign = word.drop { $0.isNumber }
      if isTarget {
        isTarget = false
      } else if sign == "<" || sign == ">" {
        isTarget = true
      } else if !sign.hasPrefix("<"), !sign.hasPrefix(">") {
        result.append(word)
      }
    }
    return result
  }
}
