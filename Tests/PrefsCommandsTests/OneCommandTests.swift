import ArgumentParser
import Testing

@testable import PrefsCommands

@Suite("A command parsed without the others")
struct OneCommandTests {
  @Test(
    "It parses the same as the complete command tree",
    arguments: [
      ["get", "a/b", "--json"], ["read", "a/b"], ["-d", "s", "get", "k"], ["--store=s", "-c", "list", "get", "k"],
      ["get", "-c", "-q", "k"], ["get", "k", "--default=-q"], ["list", "-lq", "--values"], ["set", "k", "--", "-q"],
      ["set", "k", "\0-5"], ["exec", "-c", "a", "--", "env", "-q", "get"], ["key", "list", "--json", "-d", "s"],
      ["--quiet", "unset", "a", "b", "-f"], ["completion", "bash"],
    ])
  func same(_ arguments: [String]) throws {
    let alone = try #require(CommandArguments.parseAlone(arguments), "\(arguments) goes through the whole tree")
    #expect(String(reflecting: alone) == String(reflecting: try PrefsCommand.parseAsRoot(arguments)))
  }

  @Test(
    "Ambiguous or wrong arguments, and help, are left to the complete command tree",
    arguments: [
      [], ["help"], ["help", "get"], ["--help"], ["get", "--help"], ["get", "k", "-h"], ["get"], ["get", "--version"],
      ["gett", "k"], ["key"], ["key", "lis"], ["key", "--store", "s", "list"], ["get", "k", "--default", "-q"],
      // A value joined to a short option, which is also a command's name.
      ["-qc", "get", "list", "x"], ["-q", "list"], ["--", "get", "k"], ["list", "--exit-codes"], ["get", "k", "k2"],
    ])
  func left(_ arguments: [String]) {
    #expect(CommandArguments.parseAlone(arguments) == nil)
  }

  @Test("Every option that takes any next argument is known", arguments: CommandArguments.greedyOptions.sorted())
  func greedy(_ option: String) {
    #expect(CommandArguments.parseAlone(["get", "k", option, "-q"]) == nil)
  }
}
