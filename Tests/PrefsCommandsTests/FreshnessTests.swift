import Foundation
import Testing

@Suite("A rolled back store in the tool")
struct FreshnessTests {
  private let tool: Tool

  init() throws { tool = try Tool() }

  private var state: String { tool.path(".local/state/coffer") }

  private func copy(_ from: String, _ to: String) throws {
    try? FileManager.default.removeItem(atPath: to)
    try FileManager.default.copyItem(atPath: from, toPath: to)
  }

  @Test("Is refused with 17 by every command, until doctor accepts it")
  func refused() throws {
    try tool.succeed("set", "a", "1")
    let older = tool.path("older")
    try copy(tool.store, older)
    try tool.succeed("set", "a", "2")
    #expect(try FileManager.default.contentsOfDirectory(atPath: state).count == 1)
    try copy(older, tool.store)
    for arguments in [["get", "a"], ["set", "a", "3"], ["list"], ["doctor"], ["log"], ["backup", tool.path("b")]] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 17 && run.text.isEmpty, "\(arguments)")
      #expect(run.message.contains("older than the one last used here"))
      #expect(run.message.contains("prefs doctor --accept-older"))
    }
    #expect(try tool.run("get", "a", "--json").text.contains(#""error":"rolledBack""#))
    #expect(try tool.succeed("doctor", "--accept-older").contains("No problems found."))
    #expect(try tool.succeed("get", "a") == "1\n")
    try tool.succeed("set", "a", "4")
    try copy(older, tool.store)
    #expect(try tool.run("get", "a").code == 17)
  }

  @Test("Is accepted by restore-store, even as a copy of the file")
  func restored() throws {
    try tool.succeed("set", "a", "1")
    let older = tool.path("older.coffer")
    try copy(tool.store, older)
    try tool.succeed("set", "a", "2")
    try tool.succeed("restore-store", older)
    #expect(try tool.succeed("get", "a") == "1\n")
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    try tool.succeed("set", "a", "3")
    try tool.succeed("restore-store", backup)
    #expect(try tool.succeed("get", "a") == "1\n")
  }

  @Test("Is not checked for a store elsewhere, or one that was moved")
  func elsewhere() throws {
    let store = tool.path("elsewhere.coffer")
    try tool.succeed("set", "a", "1", "-d", store)
    let older = tool.path("older")
    try copy(store, older)
    try tool.succeed("set", "a", "2", "-d", store)
    try copy(older, store)
    #expect(try tool.succeed("get", "a", "-d", store) == "1\n")
    #expect(!tool.exists(state))
  }

  @Test("Is not checked if the state folder cannot be written, or is unset")
  func noState() throws {
    let environment = ["XDG_STATE_HOME": "/proc/nowhere"]
    try tool.succeed("set", "a", "1", environment: environment)
    let older = tool.path("older")
    try copy(tool.store, older)
    try tool.succeed("set", "a", "2", environment: environment)
    try copy(older, tool.store)
    #expect(try tool.succeed("get", "a", environment: environment) == "1\n")
  }

  @Test("log --verify reports an intact log, and accepts no other options")
  func log() throws {
    for number in 0..<3 { try tool.succeed("set", "a", "\(number)") }
    let intact = "The log is intact: 5 commits, 0 to 4. "
    let recorded = intact + "Its chain vouches for it, and the freshness record for the chain.\n"
    #expect(try tool.succeed("log", "--verify") == recorded)
    let json = try tool.succeed("log", "--verify", "--json")
    #expect(
      json == #"{"ok":true,"commits":5,"first":0,"last":4,"recorded":4,"erased":0,"erasures":[],"problems":[]}"# + "\n")
    #expect(try tool.succeed("doctor").contains("5 commits, 0 to 4, by its chain and the freshness record"))
    let none = ["XDG_STATE_HOME": "/proc/nowhere"]
    let alone = try tool.succeed("log", "--verify", environment: none)
    #expect(alone.hasPrefix(intact + "Only its chain vouches for it: no freshness record has its end, and anyone"))
    #expect(try tool.succeed("log", "--verify", "--json", environment: none).contains(#""recorded":null"#))
    #expect(try tool.succeed("doctor", environment: none).contains("5 commits, 0 to 4, by its chain alone"))
    #expect(try tool.run("log", "a", "--verify").code == 2)
    #expect(try tool.run("log", "--verify", "--limit", "1").code == 2)
  }
}
