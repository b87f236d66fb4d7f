import Foundation
import Testing

/// The tool's description of its commands.
private struct CommandHelp: Decodable {
  struct Name: Decodable {
    let kind: String
    let name: String

    var text: String { (kind == "long" ? "--" : "-") + name }
  }

  struct Argument: Decodable {
    let kind: String
    let shouldDisplay: Bool
    let names: [Name]?
  }

  let commandName: String
  let shouldDisplay: Bool?
  let abstract: String?
  let aliases: [String]?
  let discussion: String?
  let arguments: [Argument]?
  let subcommands: [CommandHelp]?
}

@Suite("The commands as a whole")
struct CommandTableTests {
  private struct Dump: Decodable {
    let command: CommandHelp
  }

  private static func root() throws -> CommandHelp {
    let run = try Tool().run("--experimental-dump-help")
    return try JSONDecoder().decode(Dump.self, from: Data(run.output)).command
  }

  /// The sources of these tests, all of them.
  private static func sources() throws -> String {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
    return try files.compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
      .map { try String(contentsOf: $0, encoding: .utf8) }.joined()
  }

  @Test("Every command, alias and option is run by a test")
  func coverage() throws {
    let sources = try Self.sources()
    func check(_ command: CommandHelp, _ path: String) {
      for name in [command.commandName] + (command.aliases ?? []) {
        #expect(sources.contains("\"\(name)\""), "no test runs \(path)")
      }
      for argument in command.arguments ?? [] where argument.kind != "positional" && argument.shouldDisplay {
        let names = (argument.names ?? []).map(\.text)
        #expect(names.contains { sources.contains("\"\($0)\"") }, "no test gives \(path) \(names)")
      }
      for subcommand in command.subcommands ?? [] where subcommand.shouldDisplay != false {
        check(subcommand, "\(path) \(subcommand.commandName)")
      }
    }
    check(try Self.root(), "prefs")
  }

  @Test("Options that take a value are known before the command is")
  func optionsWithValue() throws {
    let common = try #require(try Self.root().arguments).filter { $0.kind == "option" }
    for name in common.flatMap({ $0.names ?? [] }).map(\.text) {
      // The value is no command, whatever it is called.
      let run = try Tool().run(name, "list", "gett", "x")
      #expect(run.code == 2 && run.message.contains("did you mean \"get\"?"), "\(name): \(run.message)")
    }
  }

  @Test("The table of exit codes has every code once")
  func exitCodes() throws {
    let codes = try Tool().succeed("--exit-codes").split(separator: "\n").compactMap { line in
      line.split(separator: " ").first.flatMap { Int($0) }
    }
    #expect(codes.starts(with: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 125, 126, 127]))
  }
}
