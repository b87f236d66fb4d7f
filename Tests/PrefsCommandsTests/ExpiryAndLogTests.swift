import Coffer
import Foundation
import Testing

@Suite("Values for a while") struct ExpiryCommandTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
  }

  @Test("are gone when their time has come, and their history shows it")
  func expiry() throws {
    try tool.succeed("init")
    try tool.succeed("history", "--keep", "shop")
    try tool.succeed("set", "shop/banner", "sale", "--expires-in", "1s")
    #expect(try tool.succeed("get", "shop/banner") == "sale\n")
    let deadline = Date(timeIntervalSinceNow: 20)
    while try tool.run("get", "shop/banner").code == 0, Date() < deadline { usleep(50_000) }
    #expect(try tool.run("get", "shop/banner").code == 3)
    #expect(try tool.run("list", "shop").code == 3)
    try tool.succeed("set", "shop/other", "x", "--actor", "innocent")
    let expired = try tool.succeed("log", "shop/banner", "--json", "--limit", "1")
    #expect(expired.contains(#""change":"expired""#) && !expired.contains("author"))
    let json = try tool.succeed("history", "shop/banner", "--json")
    #expect(json.contains(#""endedBy":null"#))
    // Its own time, and not that of the writer who found it expired.
    func time(_ name: String, _ text: String) -> Substring? {
      text.components(separatedBy: "\"\(name)\":\"").dropFirst().first?.prefix { $0 != "\"" }
    }
    #expect(time("time", expired) == time("ended", json) && time("time", expired) != nil)
    #expect(try tool.succeed("history", "shop/banner").contains(" expired"))
    #expect(try tool.succeed("history", "shop/banner", "--json").contains(#""expired":true"#))
    let log = try tool.succeed("log", "shop/banner").split(separator: "\n")
    #expect(log.dropFirst().first?.contains("  expired   shop/banner") ?? false)
  }

  @Test("show their remaining time in lists, and the date in JSON; values set again stay")
  func lists() throws {
    try tool.succeed("set", "shop/a", "1", "--expires-at", "2199-12-31T08:30:00Z")
    try tool.succeed("set", "shop/b", "1", "--expires-in", "3h")
    try tool.succeed("set", "shop/c", "1")
    let lines = try tool.succeed("list", "shop", "-l").split(separator: "\n")
    #expect(lines[1].hasSuffix(" d)") && lines[1].contains("(expires in "))
    #expect(lines[2].hasSuffix("(expires in 3 h)"))
    #expect(!lines[3].contains("expires"))
    #expect(try tool.succeed("get", "shop/a", "--json").contains(#""expires":"2199-12-31T08:30:00.000Z""#))
    #expect(try tool.succeed("list", "shop", "--json").contains(#""expires":"2199-12-31T08:30:00.000Z""#))
    #expect(try tool.succeed("status", "--json").contains(#""nextExpiry":""#))
    try tool.succeed("set", "shop/a", "1")
    #expect(try !tool.succeed("get", "shop/a", "--json").contains("expires"))
  }

  @Test(
    "need a valid time in the future",
    arguments: [
      ["--expires-in", "soon"], ["--expires-in", "-1s"], ["--expires-at", "2020-01-01"], ["--expires-at", "x"],
      ["--due", "x"], ["--expires-in", "1h", "--expires-at", "2199-01-01"],
    ])
  func refused(arguments: [String]) throws {
    #expect(try tool.run(["set", "k", "v"] + arguments, input: "".utf8).code == 2)
    #expect(try tool.run("get", "k").code != 0)
  }

  @Test("that are due for renewal stay, and are reported by lists, doctor and an exit code")
  func due() throws {
    try tool.succeed("set", "mail/password", "--secret", "-", "--due", "10d", input: "hunter2")
    try tool.succeed("set", "mail/token", "x", "--due", "2020-01-01")
    try tool.succeed("set", "other", "x", "--due", "90d")
    #expect(try tool.run("list", "--due", "30d").code == 16)
    let due = try tool.run("list", "--due", "30d")
    let lines = due.text.split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines[0].hasPrefix("mail/token") && lines[0].contains("overdue by "))
    #expect(lines[1].hasPrefix("mail/password") && lines[1].hasSuffix("due in 10 d"))
    #expect(try tool.run("list", "mail", "--due", "30d", "--plain").text.split(separator: "\n").count == 2)
    #expect(try tool.run("list", "--due", "30d", "--json").text.contains(#""due":"2020-01-01T00:00:00.000Z""#))
    #expect(try tool.succeed("doctor").contains("mail/token should have been renewed by 2020-01-01"))
    #expect(try tool.succeed("status").contains("1 overdue"))
    try tool.succeed("set", "mail/token", "y")
    try tool.succeed("set", "mail/password", "--secret", "-", input: "hunter3")
    #expect(try tool.succeed("list", "--due", "30d").isEmpty)
    #expect(try tool.run("list", "--due", "30d", "-l").code == 2)
  }
}

@Suite("Who changed what") struct LogTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "shop/rate", "--int", "1")
    try tool.succeed("set", "shop/rate", "--int", "2", "--actor", "alice")
    _ = try tool.run(["unset", "shop/rate"], input: "".utf8, environment: ["PREFS_ACTOR": "deploy\n42"])
  }

  @Test("is shown newest first, with the program, its user, its host and the actor")
  func lines() throws {
    let text = try tool.succeed("log").split(separator: "\n")
    #expect(text.first?.split(separator: " ") == ["COMMIT", "TIME", "AUTHOR", "CHANGE", "KEY"])
    let lines = Array(text.dropFirst())
    #expect(lines.count == 3)
    #expect(lines[0].contains("deploy?42 (prefs by \(NSUserName()) at ") && lines[0].hasSuffix("removed   shop/rate"))
    #expect(lines[1].contains("alice (prefs by ") && lines[1].hasSuffix("updated   shop/rate"))
    #expect(lines[2].contains("  prefs by ") && lines[2].hasSuffix("inserted  shop/rate"))
    let fields = try tool.succeed("log", "--plain", "--limit", "1").split(
      separator: "\t", omittingEmptySubsequences: false)
    #expect(fields.count == 9)
    #expect(fields[2] == "prefs" && fields[5] == "deploy?42" && fields[6...] == ["removed", "shop", "rate\n"])
    #expect(try tool.succeed("log", "-0", "--limit", "1").hasSuffix("rate\0"))
    let json = try tool.succeed("log", "shop", "--json")
    let changes = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]])
    #expect(changes.map { ($0["author"] as? [String: Any])?["actor"] as? String } == ["deploy?42", "alice", nil])
  }

  @Test("is shown for one key or collection, since a time")
  func filters() throws {
    try tool.succeed("set", "other", "x")
    #expect(try tool.succeed("log", "shop/rate").split(separator: "\n").count == 4)
    #expect(try tool.succeed("log", "-c", "", "other").split(separator: "\n").count == 2)
    #expect(try tool.succeed("log", "--since", "1h").split(separator: "\n").count == 5)
    #expect(try tool.succeed("log", "--since", "2199-01-01").isEmpty)
    #expect(try tool.run("log", "--since", "x").code == 2)
    let none = try tool.run("log", "other")
    #expect(none.code == 0 && none.text.isEmpty && none.message.contains("-c \"\""))
    #expect(try tool.run("log", "none").message == "prefs: the log has no matching change of collection \"none\".\n")
  }

  /// Has the store forget its commits, as it does after 10,000 more.
  private func forgetCommits() throws {
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    try database.makeConnection().perform { session in
      try session.connection.beginWrite(.full)
      try session.changeLog.begin(after: session.changeLog.lastNumber())
      try session.connection.commit()
    }
    try database.close()
    // It remembers a commit that is gone too early.
    try FileManager.default.removeItem(atPath: tool.home.path + "/.local/state/coffer")
  }

  @Test("is shown from a key's history if the store no longer remembers the commit")
  func history() throws {
    try tool.succeed("history", "--keep", "kept")
    try tool.succeed("set", "kept/k", "1", "--actor", "alice")
    try tool.succeed("set", "kept/k", "2", "--actor", "bob")
    try tool.succeed("unset", "kept/k", "--actor", "carol")
    try tool.succeed("set", "kept/k", "3", "--actor", "dave")
    let remembered = try tool.succeed("log", "kept/k")
    try forgetCommits()
    let told = try tool.succeed("log", "kept/k")
    // What a commit did besides changing keys is only in the log.
    #expect(told == remembered.split(separator: "\n").filter { !$0.contains("history on") }.map { $0 + "\n" }.joined())
    #expect(told.split(separator: "\n").count == 5)
    // The log starts again as after a salvage.
    let whole = try tool.succeed("log")
    #expect(whole.split(separator: "\n").count == 2 && whole.contains("store salvaged"), "\(whole)")
  }
}
