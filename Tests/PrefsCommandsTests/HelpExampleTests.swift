import ArgumentParser
import Testing

@testable import PrefsCommands

@Suite("The help of every command")
struct HelpExampleTests {
  /// Every command that does something, those below another included.
  static let commands: [any ParsableCommand.Type] = leaves(of: PrefsCommand.self)

  private static func leaves(of command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
    let below = command.configuration.subcommands.filter { $0.configuration.shouldDisplay }
    return below.isEmpty ? [command] : below.flatMap { leaves(of: $0) }
  }

  @Test("All commands are there, and the internal one is not shown")
  func allAreFound() {
    #expect(Self.commands.count > 30)
    #expect(!Self.commands.contains { $0 == AgentCommand.self })
  }

  @Test("It has a one-sentence summary and an example", arguments: commands.indices)
  func summaryAndExample(index: Int) throws {
    let command = Self.commands[index]
    let configuration = command.configuration
    #expect(configuration.abstract.hasSuffix("."))
    #expect(configuration.abstract.first?.isUppercase == true)
    let examples = try Self.examples(of: command).map { try PrefsCommand.parseAsRoot($0) }
    #expect(examples.contains { type(of: $0) == command }, "no example of \(command)")
  }

  @Test("The tool understands every example", arguments: commands.indices)
  func examplesParse(index: Int) throws {
    for words in Self.examples(of: Self.commands[index]) {
      #expect(throws: Never.self, "\(words)") { try PrefsCommand.parseAsRoot(words) }
    }
  }

  @Test("It understands the examples of its own help, too")
  func examplesOfTheTool() throws {
    let examples = Self.examples(of: PrefsCommand.self)
    #expect(examples.count >= 3)
    for words in examples { #expect(throws: Never.self, "\(words)") { try PrefsCommand.parseAsRoot(words) } }
  }

  @Test("An example with a mistake would be detected")
  func mistakesAreFound() throws {
    #expect(throws: (any Error).self) { try PrefsCommand.parseAsRoot(Self.words(of: "prefs get a --jsn | cat")[0]) }
    #expect(Self.words(of: "cat a | prefs set 'a b' \"c|d\" 3<x 4< y > z") == [["set", "a b", "c|d"]])
  }

  // MARK: - Reading examples

  /// The arguments of each call of the tool in the examples of a command.
  private static func examples(of command: any ParsableCommand.Type) -> [[String]] {
    command.configuration.discussion.split(separator: "\n").filter { $0.hasPrefix("  ") }.flatMap { words(of: $0) }
      .map(CommandArguments.marked)
  }

  /// The arguments of each `prefs` in a line for the shell.
  private static func words(of line: some StringProtocol) -> [[String]] {
    var commands: [[String]] = [[]]
    var word: String?
    var quote: Character?
    func end() {
      if let whole = word { commands[commands.count - 1].append(whole) }
      word = nil
    }
    for character in line {
      if let open = quote {
        if character == open { quote = nil } else { word = (word ?? "") + String(character) }
      } else if character == "'" || character == "\"" {
        quote = character
        word = word ?? ""
      } else if character == " " {
        end()
      } else if character == "|" {
        end()
        commands.append([])
      } else {
        word = (word ?? "") + String(character)
      }
    }
    end()
    return commands.filter { $0.first == "prefs" }.map { withoutRedirections(Array($0.dropFirst())) }
  }

  private static func withoutRedirections(_ words: [String]) -> [String] {
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
