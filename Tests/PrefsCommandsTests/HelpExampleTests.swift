import ArgumentParser
import PrefsFleet
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

  @Test("No example is wrapped on a terminal of 80 columns, so that each can be pasted")
  func examplesAreWhole() {
    let all: [any ParsableCommand.Type] = [PrefsCommand.self] + Self.commands + Self.leaves(of: FleetCommand.self)
    for command in all {
      let lines = command.helpMessage(columns: 80).split(separator: "\n").map { $0.drop { $0 == " " } }
      let text = command.configuration.discussion.split(separator: "\n")
      for example in text.drop(while: { $0 != "Examples:" }) where example.hasPrefix("  ") {
        #expect(lines.contains(example.drop { $0 == " " }), "\(example)")
      }
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
    #expect(throws: (any Error).self) {
      try PrefsCommand.parseAsRoot(ShellLine.calls(in: "prefs get a --jsn | cat")[0])
    }
    #expect(ShellLine.calls(in: "cat a | prefs set 'a b' \"c|d\" 3<x 4< y > z") == [["set", "a b", "c|d"]])
  }

  // MARK: - Reading examples

  /// The arguments of each call of the tool in the examples of a command.
  private static func examples(of command: any ParsableCommand.Type) -> [[String]] {
    command.configuration.discussion.split(separator: "\n").filter { $0.hasPrefix("  ") }.flatMap {
      ShellLine.calls(in: $0)
    }
    .map(CommandArguments.marked)
  }
}
