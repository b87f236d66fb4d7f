import Foundation
import TestSupport
import Testing

@testable import PrefsFleet

@Suite("Completion of prefs fleet")
struct FleetCompletionTests {
  private let host: ToolHost

  init() throws {
    host = try ToolHost("office")
    try host.set("web/theme", "dark")
  }

  private func script(_ shell: String) throws -> String {
    let run = try host.prefs(["completion", shell])
    try #require(run.code == 0, "\(run)")
    return run.output
  }

  /// What bash offers for the last of the words behind `prefs`.
  private func offers(_ words: String...) throws -> [String] {
    let file = host.home.file("prefs.bash")
    try script("bash").write(toFile: file, atomically: true, encoding: .utf8)
    let child = try Child.run(
      "/usr/bin/env",
      [
        "HOME=\(host.home.path)", "/bin/bash", "-c",
        """
        source "$1" || exit
        shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
        _prefs "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\\n' "${COMPREPLY[@]}"
        """, "bash", file, ToolHost.tool.path,
      ] + words)
    #expect(child.status == 0)
    return child.text.split(separator: "\n").map(String.init)
  }

  private static let commands = FleetCommand.configuration.subcommands.compactMap { $0.configuration.commandName }

  @Test("bash offers every command, its options and their values")
  func bash() throws {
    #expect(try offers("fl") == ["fleet"])
    #expect(try Set(offers("fleet", "")).isSuperset(of: Self.commands))
    #expect(try offers("fleet", "accept-") == ["accept-rollback"])
    #expect(try offers("fleet", "create", "--ret") == ["--retention"])
    #expect(try offers("fleet", "invite", "web-17", "--role", "") == ["reader", "writer", "admin"])
    #expect(try offers("fleet", "rule", "web", "th") == ["theirs"])
    for command in Self.commands { #expect(try offers("fleet", command, "--password-f") == ["--password-file"]) }
  }

  @Test("Collections are those of the store")
  func collections() throws {
    #expect(try offers("fleet", "create", "team", "-c", "w") == ["web"])
    #expect(try offers("fleet", "create", "team", "--collection", "x").isEmpty)
    #expect(try offers("fleet", "rule", "w") == ["web"])
  }

  @Test("zsh and fish have a rule for every command, with its description", arguments: ["zsh", "fish"])
  func otherShells(_ shell: String) throws {
    let script = try script(shell)
    #expect(script.contains(FleetCommand.configuration.abstract.dropLast()))
    for command in FleetCommand.configuration.subcommands {
      let name = command.configuration.commandName ?? ""
      #expect(script.contains(shell == "zsh" ? "\n_prefs_fleet_\(name)() {\n" : " \"prefs fleet \(name)\""))
      #expect(
        script.contains(
          command.configuration.abstract.dropLast().replacing("'", with: shell == "zsh" ? "'\\''" : "\\'")))
    }
    if shell == "zsh" {
      #expect(script.contains("|fleet|"))
    } else {
      #expect(script.contains("\n        case 'fleet'\n"))
      #expect(script.contains("\n            case 'accept-rollback'\n"))
    }
    guard EtcdServer.path(shell) != nil else { return }
    let file = host.home.file("script")
    try script.write(toFile: file, atomically: true, encoding: .utf8)
    #expect(try Child.run("/usr/bin/env", [shell, "-n", file]).status == 0)
  }

  @Test(
    "fish offers commands, options and their values",
    .enabled(if: EtcdServer.path("fish") != nil, "fish is not installed"))
  func fish() throws {
    let file = host.home.file("prefs.fish")
    try script("fish").write(toFile: file, atomically: true, encoding: .utf8)
    func offers(_ line: String) throws -> [String] {
      let child = try Child.run(
        "/usr/bin/env", ["HOME=\(host.home.path)", "fish", "-c", "source $argv[1]; complete -C $argv[2]", file, line])
      return child.text.split(separator: "\n").map { String($0.prefix { $0 != "\t" }) }
    }
    #expect(try offers("prefs fl") == ["fleet"])
    #expect(try offers("prefs fleet accept-") == ["accept-rollback"])
    #expect(try offers("prefs fleet create --ret") == ["--retention"])
    #expect(try offers("prefs fleet invite x --role rea") == ["reader"])
    #expect(try offers("prefs fleet rule web th") == ["theirs"])
  }

  @Test("Every program beside prefs that has commands or options is completed")
  func everyProgram() throws {
    let script = try script("bash")
    func isThere(_ program: String) -> Bool {
      FileManager.default.isExecutableFile(atPath: "\(ToolHost.tool.path)-\(program)")
    }
    for program in ["fleet", "ui"].filter(isThere) { #expect(script.contains("\n_prefs_\(program)() {\n")) }
    if isThere("ui") { #expect(try offers("ui", "--read-o") == ["--read-only"]) }
  }
}
