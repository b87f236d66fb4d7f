import Coffer
import Foundation
import Testing

@Suite("diff") struct DiffTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "web/port", "8080", "--int")
    try tool.succeed("set", "web/host", "localhost")
    try tool.succeed("set", "web/token", "--secret", "-", input: "hunter2")
    try tool.succeed("set", "stage/port", "9090", "--int")
    try tool.succeed("set", "stage/host", "localhost")
    try tool.succeed("set", "stage/token", "--secret", "-", input: "swordfish")
    try tool.succeed("set", "stage/debug", "true", "--bool")
  }

  /// Runs diff, which has to find differences.
  private func differing(_ arguments: String..., location: SourceLocation = #_sourceLocation) throws -> String {
    let run = try tool.run(["diff"] + arguments, input: "".utf8)
    #expect(run.code == 1 && run.message == "", "\(arguments): \(run.message)", sourceLocation: location)
    return run.text
  }

  @Test("Two collections are compared by key, and secrets only shown as different")
  func collections() throws {
    let text = try differing("web", "stage")
    #expect(text == "+ debug: true\n~ port: 8080 -> 9090\n~ token: secret differs\n")
    #expect(try differing("stage", "web").hasPrefix("- debug: true\n~ port: 9090 -> 8080\n"))
    try tool.succeed("unset", "stage/token")
    #expect(try differing("web", "stage").hasSuffix("- token: \"<secret: 7 bytes>\"\n"))
  }

  @Test("No difference is 0 and prints nothing, equal secrets included")
  func alike() throws {
    try tool.succeed("copy", "web", "twin")
    #expect(try tool.succeed("diff", "web", "twin") == "")
    #expect(try tool.succeed("diff", "web", "twin", "--json") == "[]\n")
    #expect(try tool.succeed("diff", "-c", "web", "--with", tool.store) == "")
  }

  @Test("JSON names both collections, types and values, and no secret")
  func json() throws {
    let run = try tool.run("diff", "web", "stage", "--json")
    #expect(run.code == 1 && !run.text.contains("hunter2") && !run.text.contains("swordfish"))
    let all = try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? [[String: Any]])
    #expect(all.map { $0["key"] as? String } == ["debug", "port", "token"])
    #expect(all.map { $0["change"] as? String } == ["added", "changed", "changed"])
    #expect(all.map { $0["secret"] as? Bool } == [false, false, true])
    #expect(all[1]["collection"] as? String == "web" && all[1]["otherCollection"] as? String == "stage")
    #expect(all[1]["before"] as? Int == 8080 && all[1]["after"] as? Int == 9090)
    #expect(all[0]["beforeType"] is NSNull && all[0]["afterType"] as? String == "bool")
  }

  @Test("If text and number look alike, the types show how they differ")
  func types() throws {
    try tool.succeed("set", "a/when", "2026-01-31T08:30:00.250Z")
    try tool.succeed("set", "b/when", "2026-01-31T08:30:00.250Z", "--type", "date")
    let text = #"string "2026-01-31T08:30:00.250Z" -> date "2026-01-31T08:30:00.250Z""#
    #expect(try differing("a", "b") == "~ when: \(text)\n")
  }

  @Test("A store is compared with its backup, completely and by collection")
  func backup() throws {
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    #expect(try tool.succeed("diff", "--with", backup) == "")
    try tool.succeed("set", "web/port", "1", "--int")
    try tool.succeed("set", "-c", "", "new", "x")
    try tool.succeed("unset", "stage/debug")
    #expect(try differing("--with", backup) == "- new: \"x\"\n+ stage/debug: true\n~ web/port: 1 -> 8080\n")
    #expect(try differing("web", "--with", backup) == "~ web/port: 1 -> 8080\n")
    #expect(try differing("web", "stage", "--with", backup).hasPrefix("+ debug: true\n~ port: 1 -> 9090\n"))
    #expect(try tool.run("diff", "wen", "--with", backup).code == 3)
  }

  @Test("The other store opens with its own key, however it is given")
  func otherKeys() throws {
    let other = tool.path("other.coffer")
    let key = tool.path("other.key")
    try tool.succeed("set", "web/port", "8080", "--int", "-d", other, "--key-file", key)
    try tool.succeed("unset", "web/host", "web/token")
    #expect(try tool.succeed("diff", "web", "--with", other, "--other-key-file", key) == "")
    #expect(try tool.run("diff", "web", "--with", other).code == 5)
    let add = ["key", "add", "-d", other, "--key-file", key, "--new-passphrase-fd", "3", "--cost", "14"]
    #expect(try tool.run(add, input: [], descriptors: [3: "open"]).code == 0)
    let opened = ["diff", "web", "--with", other]
    #expect(try tool.run(opened + ["--other-passphrase-fd", "3"], input: [], descriptors: [3: "open"]).code == 0)
    #expect(try tool.run(opened + ["--other-passphrase-fd", "3"], input: [], descriptors: [3: "guess"]).code == 5)
    #expect(
      try tool.run(opened + ["--other-key-fd", "3"], input: [], descriptors: [3: String(repeating: "x", count: 32)])
        .code
        == 5)
    #expect(try tool.run(opened + ["--other-recovery-key-fd", "3"], input: [], descriptors: [3: "no key"]).code != 0)
    let twice = ["--passphrase-fd", "3", "--other-passphrase-fd", "3"]
    #expect(try tool.run(opened + twice, input: [], descriptors: [3: "open"]).code == 2)
  }

  @Test("A file is compared as an import would set it", arguments: ["json", "toml", "yaml", "plist"])
  func files(format: String) throws {
    let file = tool.path("web.\(format)")
    try tool.succeed("export", "web", "-o", file, "-q")
    // The secret that the file does not show is left out.
    #expect(try tool.succeed("diff", "web", "--with", file) == "")
    try tool.succeed("set", "web/port", "1", "--int")
    #expect(try differing("web", "--with", file) == "~ web/port: 1 -> 8080\n")
    let all = tool.path("all.\(format)")
    try tool.succeed("set", "web/port", "8080", "--int")
    try tool.succeed("export", "-o", all, "-q", "--reveal")
    try tool.succeed("set", "web/port", "1", "--int")
    // In plaintext, a secret is read back as the same one.
    #expect(try differing("--with", all) == "~ web/port: 1 -> 8080\n")
  }

  @Test("Standard input, variables and plain databases are read, too")
  func otherFormats() throws {
    let json = #"{"host": "localhost", "port": 8081}"#
    let run = try tool.run("diff", "web", "--with", "-", "--format", "json", input: json)
    #expect(run.code == 1 && run.text == "~ web/port: 8080 -> 8081\n- web/token: \"<secret: 7 bytes>\"\n")
    let env = try tool.run("diff", "web", "--with", "-", "--format", "env", input: "host=localhost\nport=8081\n")
    #expect(env.text.hasPrefix("~ web/port: 8080 -> 8081\n"))
    let database = tool.path("all.sqlite")
    try tool.succeed("export", "--reveal", "-q", "-o", database)
    #expect(try tool.succeed("diff", "--with", database) == "")
    #expect(try differing("web", "stage", "--with", database).hasPrefix("+ debug: true\n"))
    #expect(try tool.run("diff", "web", "stage", "--with", "-", "--format", "json", input: json).code == 2)
    #expect(try tool.run("diff", "web", "--with", "-", "--format", "json", input: "{").code == 8)
  }

  @Test("Metadata count between stores")
  func metadata() throws {
    try tool.succeed("copy", "web", "twin")
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    try database.makeConnection().readWrite {
      try $0.replaceMetadata("by hand", forKey: "host", inCollection: "twin")
      try $0.replaceMetadata("hushed", forKey: "token", inCollection: "twin")
    }
    try database.close()
    #expect(
      try differing("web", "twin") == "~ host: metadata none -> \"by hand\"\n~ token: metadata differ\n")
  }

  @Test("Sealed collections are opened to compare, and not shown")
  func sealed() throws {
    try tool.succeed("copy", "web", "tokens")
    try tool.seal("tokens")
    try tool.succeed("lock")
    #expect(try tool.run("diff", "web", "tokens").code == 6)
    try tool.unlock()
    #expect(try tool.succeed("diff", "web", "tokens") == "")
    try tool.succeed("set", "web/host", "example.org")
    try tool.succeed("unset", "web/port")
    #expect(try differing("tokens", "web") == "~ host: secret differs\n- port: \"<sealed>\"\n")
  }

  @Test("Trouble is never 1, and wrong usage says what is missing")
  func trouble() throws {
    for arguments in [
      [], ["web"], ["web", "stage", "--format", "json"], ["web", "stage", "--other-key-file", "x"],
      ["web", "--with", ""], ["web", "-c", "stage"], ["web", "--with", "f", "--source-passphrase-fd", "3"],
    ] {
      #expect(try tool.run(["diff"] + arguments, input: []).code == 2, "\(arguments)")
    }
    #expect(try tool.run("diff", "web", "stag").code == 3)
    #expect(try tool.run("diff", "web", "--with", tool.path("none")).code == 4)
    #expect(try tool.run("diff", "a", "b", "-d", tool.path("none")).code == 4)
    #expect(try tool.run("--exit-codes").text.contains("diff: there are differences"))
  }

  @Test("A control character in a name or value does not reach the terminal")
  func controls() throws {
    try tool.succeed("set", "a/x\u{1b}[31m", "\u{202e}y")
    try tool.succeed("set", "b/k", "v")
    #expect(try !differing("a", "b").unicodeScalars.contains { $0 == "\u{1b}" || $0 == "\u{202e}" })
  }
}
