import Foundation
import Testing

@Suite("Expiry and due date") struct DatesAcrossCommandsTests {
  private let tool: Tool
  private static let dates = [#""expires":"2199-01-01T00:00:00.001Z""#, #""due":"2198-01-01T00:00:00.000Z""#]

  init() throws {
    tool = try Tool()
    try set("shop/n", "--int", "1")
    try set("shop/list", "--array", "[1]")
    try set("shop/text", "sale")
    try tool.succeed("set", "shop/plain", "x")
  }

  private func set(_ arguments: String...) throws {
    #expect(
      try tool.run(
        ["set"] + arguments + ["--expires-at", "2199-01-01T00:00:00.001Z", "--due", "2198-01-01"], input: "".utf8
      ).code == 0)
  }

  private func hasDates(_ key: String, _ options: String...) throws -> Bool {
    let run = try tool.run(["get", key, "--json"] + options, input: "".utf8)
    #expect(run.code == 0)
    let found = Self.dates.filter { run.text.contains($0) }
    #expect(found.isEmpty || found == Self.dates, "\(run.text)")
    return !found.isEmpty
  }

  @Test("stay with append and increment, go with set, and move with rename")
  func changed() throws {
    try tool.succeed("increment", "shop/n")
    try tool.succeed("append", "shop/list", "--int", "2")
    #expect(try hasDates("shop/n") && hasDates("shop/list"))
    try tool.succeed("rename", "shop/text", "market/banner")
    #expect(try hasDates("market/banner"))
    try tool.succeed("rename", "shop/plain", "market/banner", "--force")
    #expect(try !hasDates("market/banner"))
    try tool.succeed("set", "shop/n", "--int", "2")
    #expect(try !hasDates("shop/n"))
  }

  @Test(
    "stay when the collection is sealed and unsealed, and when the store is backed up, compacted, rotated and salvaged")
  func whole() throws {
    let key = tool.path("vault-key")
    try tool.succeed("seal", "shop", "--vault-key-file", key)
    #expect(try hasDates("shop/text", "--vault-key-file", key))
    try tool.succeed("unseal", "shop", "--vault-key-file", key)
    try tool.succeed("compact")
    try tool.succeed("rotate")
    #expect(try hasDates("shop/text"))
    try tool.succeed("backup", tool.path("backup.coffer"))
    #expect(try hasDates("shop/text", "-d", tool.path("backup.coffer")))
    try tool.succeed("salvage", "-o", tool.path("saved.coffer"))
    #expect(try hasDates("shop/text", "-d", tool.path("saved.coffer")))
  }

  @Test("are copied; a difference only in them counts for copy")
  func copied() throws {
    try tool.succeed("copy", "shop", "market")
    #expect(try hasDates("market/text") && !hasDates("market/plain"))
    try tool.succeed("set", "market/text", "sale")
    #expect(try tool.run("copy", "shop", "market").code == 9)
    #expect(try !hasDates("market/text"))
    try tool.succeed("copy", "shop", "market", "--merge")
    #expect(try hasDates("market/text"))
    try tool.succeed("init", "-d", tool.path("other"))
    try tool.succeed("copy", "shop", "--to", tool.path("other"))
    #expect(try hasDates("shop/text", "-d", tool.path("other")))
  }

  @Test("are restored with an earlier value, unless that has expired meanwhile")
  func restored() throws {
    try tool.succeed("history", "--keep", "shop")
    func version(_ key: String) throws -> Int {
      let object = try JSONSerialization.jsonObject(with: Data(tool.succeed("get", key, "--json").utf8))
      return try #require((object as? [String: Any])?["version"] as? Int)
    }
    let first = try version("shop/text")
    try tool.succeed("set", "shop/text", "other")
    try tool.succeed("revert", "shop/text@\(first)")
    let restored = try tool.succeed("get", "shop/text", "--json")
    #expect(restored.contains(#""value":"sale""#) && restored.contains(Self.dates[0]) && !restored.contains("due"))
    try tool.succeed("set", "shop/short", "x", "--expires-in", "1s")
    let short = try version("shop/short")
    let deadline = Date(timeIntervalSinceNow: 20)
    while try tool.run("get", "shop/short").code == 0, Date() < deadline { usleep(50_000) }
    try tool.succeed("revert", "shop/short@\(short)")
    #expect(try tool.succeed("get", "shop/short") == "x\n")
  }

  @Test("are kept by the format sqlite, and imported unchanged")
  func sqlite() throws {
    let path = tool.path("all.sqlite")
    #expect(try !tool.run("export", "-o", path).message.contains("due for renewal"))
    let text = try tool.run("import", path, "-d", tool.path("other")).message
    #expect(text.contains("4 new"))
    for key in ["n", "list", "text"] { #expect(try hasDates("shop/\(key)", "-d", tool.path("other"))) }
    #expect(try !hasDates("shop/plain", "-d", tool.path("other")))
    #expect(try tool.run("import", path).message.contains("4 unchanged"))
    // What the file has no dates for has none.
    try set("shop/plain", "x")
    #expect(try tool.run("import", path).message.contains("1 changed"))
    #expect(try !hasDates("shop/plain"))
  }

  @Test("in the past skip an item of a database, and an import reports it")
  func expired() throws {
    let path = tool.path("all.sqlite")
    try tool.succeed("set", "shop/short", "x", "--expires-in", "1s")
    try tool.succeed("export", "-o", path)
    let deadline = Date(timeIntervalSinceNow: 20)
    while try tool.run("get", "shop/short").code == 0, Date() < deadline { usleep(50_000) }
    let text = try tool.run("import", path, "-d", tool.path("other")).message
    #expect(text.contains("4 items in") && text.contains("1 item has expired, and is left out"))
    #expect(try tool.run("get", "shop/short", "-d", tool.path("other")).code == 3)
    // As if the file did not have it.
    try tool.succeed("set", "shop/short", "stays")
    try tool.succeed("import", path)
    #expect(try tool.succeed("get", "shop/short") == "stays\n")
    #expect(try tool.succeed("import", path, "--replace", "--json").contains(#""removed":1"#))
  }

  @Test(
    "are in no text format, which an export reports, and an import keeps existing ones",
    arguments: ["json", "yaml", "toml", "plist", "env"])
  func text(format: String) throws {
    try tool.succeed("unset", "shop/list")
    let path = tool.path("shop.\(format)")
    let exported = try tool.run("export", "shop", "-o", path, "--format", format)
    #expect(exported.code == 0)
    #expect(exported.message.contains("2 items expire or are due for renewal; only the format sqlite keeps the dates."))
    let name = format == "env" ? "TEXT" : "text"
    try set("shop/\(name)", "other")
    try tool.succeed("import", path, "-c", "shop", "--format", format)
    #expect(try tool.succeed("get", "shop/\(name)") == "sale\n")
    #expect(try hasDates("shop/\(name)"))
    try tool.succeed("import", path, "-c", "new", "--format", format)
    #expect(try !hasDates("new/\(name)"))
  }
}
