import Foundation
import Testing

@Suite("Finding, renaming, and earlier values") struct LookingAndMovingTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "ui/theme", "Dark blue")
    try tool.succeed("set", "ui/recent", #"["blueprint.txt",{"b":"Blue"}]"#)
    try tool.succeed("set", "blue", "--secret", "-", input: "hunter2")
    try tool.succeed("set", "-c", "", "a/b", "--int", "12")
  }

  // MARK: - find

  @Test("find searches keys and text of all collections, lower case also matching upper case")
  func find() throws {
    let plain = "\tblue\t\nui\trecent\t[\"blueprint.txt\",{\"b\":\"Blue\"}]\nui\ttheme\tDark blue\n"
    #expect(try tool.succeed("find", "blue", "--plain") == plain)
    #expect(try tool.succeed("find", "Blue", "-0") == "ui/recent\0")
    #expect(try tool.succeed("find", "blue", "--keys") == "blue\n")
    #expect(try tool.succeed("find", "blue", "--values", "-0") == "ui/recent\0ui/theme\0")
    #expect(try tool.succeed("find", "blue", "-c", "ui", "-0") == "ui/recent\0ui/theme\0")
    #expect(try tool.succeed("find", "theme") == "ui/theme\n")
    let json = #"[{"collection":"ui","key":"theme","matched":"value","value":"Dark blue"}]"#
    #expect(try tool.succeed("find", "dark", "--json") == json + "\n")
  }

  @Test("The output of find names the entry")
  func findAndGet() throws {
    #expect(try tool.succeed("find", "a/b", "-0") == "/a/b\0")
    #expect(try tool.succeed("get", "/a/b") == "12\n")
  }

  @Test("find is 3 without a match, and never searches secrets or numbers")
  func findNothing() throws {
    for text in ["hunter", "12", "nothing like it"] {
      let run = try tool.run("find", "--values", text)
      #expect(run.code == 3 && run.text == "" && !run.message.contains("hunter2"))
    }
    #expect(try tool.run("find", "").code == 2)
    #expect(try tool.run("find", "x", "--keys", "--values").code == 2)
  }

  // MARK: - rename

  @Test("rename moves a value unchanged, across collections")
  func rename() throws {
    try tool.succeed("rename", "ui/theme", "app/look")
    #expect(try tool.succeed("get", "app/look") == "Dark blue\n")
    #expect(try tool.run("get", "ui/theme").code == 3)
    try tool.succeed("rename", "blue", "mail/password")
    #expect(try tool.succeed("type", "mail/password") == "secret\n")
    try tool.succeed("rename", "-c", "ui", "recent", "a/b")
    #expect(try tool.succeed("list", "ui") == "a/b\n")
  }

  @Test("rename refuses an existing key, unless forced")
  func renameConflict() throws {
    let run = try tool.run("rename", "ui/theme", "/a/b")
    #expect(run.code == 9 && run.message.contains("--force"))
    #expect(try tool.succeed("get", "/a/b") == "12\n" && tool.succeed("get", "ui/theme") == "Dark blue\n")
    try tool.succeed("rename", "-f", "ui/theme", "/a/b")
    #expect(try tool.succeed("get", "/a/b") == "Dark blue\n")
    // Onto itself is no conflict, and changes nothing.
    let before = try tool.succeed("get", "/a/b", "--json")
    try tool.succeed("rename", "/a/b", "/a/b")
    #expect(try tool.succeed("get", "/a/b", "--json") == before)
    #expect(try tool.run("rename", "ui/teme", "x").code == 3)
    #expect(try tool.run("rename", "x").code == 2)
  }

  // MARK: - history and restore

  @Test("Earlier values are listed and restored, removed keys too")
  func history() throws {
    try tool.succeed("history", "--keep", "ui")
    for text in ["a", "b"] { try tool.succeed("set", "ui/theme", text) }
    try tool.succeed("unset", "ui/theme")
    let lines = try tool.succeed("history", "ui/theme", "--plain").split(separator: "\n")
      .map { $0.split(separator: "\t").map(String.init) }
    #expect(lines.map(\.last) == ["b", "a", "Dark blue"])
    #expect(lines.allSatisfy { $0.count == 4 && $0[1] <= $0[2] })
    #expect(try tool.succeed("history", "-c", "ui") == "theme\n")
    try tool.succeed("revert", "ui/theme@\(lines[1][0])")
    #expect(try tool.succeed("get", "ui/theme") == "a\n")
    let json = try tool.succeed("history", "ui/theme", "--json", "--limit", "2")
    let entries = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]])
    #expect(entries.map { $0["value"] as? String } == ["b", "a"])
    #expect(entries.allSatisfy { $0["key"] as? String == "theme" && $0["endVersion"] is Int && $0["ended"] is String })
  }

  @Test("The number of earlier values is bounded, --off keeps them, and --purge erases them")
  func limits() throws {
    try tool.succeed("history", "--keep", "ui", "--count", "2", "--age", "30d")
    for text in ["a", "b", "c", "d"] { try tool.succeed("set", "ui/theme", text) }
    #expect(try tool.succeed("history", "ui/theme", "-0").split(separator: "\0").count == 2)
    try tool.succeed("history", "--off", "ui")
    #expect(try tool.succeed("history", "ui/theme", "-0").split(separator: "\0").count == 2)
    let refusal = try tool.run("history", "--purge", "-c", "ui")
    #expect(refusal.code == 2 && refusal.message.contains("Confirm with --force"))
    #expect(try tool.run("history", "ui/theme", "--purge").code == 2)
    #expect(try tool.run("history", "-c", "ui", "--force").code == 2)
    try tool.succeed("history", "--purge", "-c", "ui", "--force", "--actor", "mallory")
    let log = try tool.succeed("log", "ui")
    #expect(log.contains("history on for ui") && log.contains("history off for ui"))
    #expect(log.contains("mallory") && log.contains("erased the history of ui"))
    let run = try tool.run("history", "ui/theme")
    #expect(run.code == 0 && run.text == "" && run.message.contains("keeps no history"))
  }

  @Test("A secret in the history shows its length, unless it is revealed")
  func secrets() throws {
    try tool.succeed("history", "--keep", "")
    try tool.succeed("unset", "blue")
    for form in [[], ["--json"], ["--plain"], ["-0"]] {
      let run = try tool.run(["history", "blue"] + form, input: [])
      #expect(run.text.contains("<secret: 7 bytes>") && !run.text.contains("hunter2"), "\(form)")
    }
    #expect(try tool.succeed("history", "blue", "--reveal").contains("hunter2"))
  }

  @Test("A missing key is 3, and wrong usage 2")
  func missing() throws {
    for arguments in [
      ["history", "ui/none"], ["revert", "ui/theme@999"], ["revert", "ui/none@1"],
    ] {
      #expect(try tool.run(arguments, input: []).code == 3, "\(arguments)")
    }
    for arguments in [
      ["revert", "ui/theme"], ["revert", "ui/theme@x"], ["revert", "ui/theme@0"], ["history", "--count", "3"],
      ["history", "--keep", "ui", "--age", "soon"], ["history", "--keep", "ui", "--count", "0"],
      ["history", "k", "--keep", "ui"], ["history", "k", "--limit", "-1"],
    ] {
      #expect(try tool.run(arguments, input: []).code == 2, "\(arguments)")
    }
  }

  @Test("get shows the origin of a value")
  func origin() throws {
    #expect(try tool.succeed("get", "ui/theme", "--show-origin") == "store\tDark blue\n")
    #expect(try tool.succeed("get", "ui/none", "--default", "x", "--show-origin") == "default\tx\n")
    #expect(try tool.run("get", "ui/theme", "--show-origin", "--json").code == 2)
  }
}
