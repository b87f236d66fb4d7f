import Coffer
import Foundation
import Testing

@Suite("copy") struct CopyTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "web/port", "8080", "--int")
    try tool.succeed("set", "web/host", "localhost")
    try tool.succeed("set", "web/token", "--secret", "-", input: "hunter2")
    try inStore(tool.store) { try $0.replaceMetadata("by hand", forKey: "host", inCollection: "web") }
  }

  private func inStore(_ path: String, _ body: (borrowing ReadWriteTransaction) throws -> Void) throws {
    let database = try Database.open(at: path, key: .keyFile(tool.keyFile))
    try database.makeConnection().readWrite(body)
    try database.close()
  }

  @Test("A collection is copied with types, secrets and metadata")
  func collection() throws {
    let text = try tool.run("copy", "web", "stage").message
    #expect(text == "3 items in 1 collection: 3 new, 0 changed, 0 unchanged\n")
    #expect(try tool.succeed("diff", "web", "stage") == "")
    #expect(try tool.succeed("type", "stage/token") == "secret\n" && tool.succeed("get", "stage/token") == "hunter2\n")
    try inStore(tool.store) {
      let metadata: String? = try $0.metadata(forKey: "host", inCollection: "stage")
      #expect(metadata == "by hand")
    }
    #expect(try tool.succeed("copy", "-q", "web", "stage", "--only", "port,host") == "")
  }

  @Test("Existing items are replaced only with --merge, and others are removed only with --replace")
  func modes() throws {
    try tool.succeed("set", "stage/port", "1", "--int")
    try tool.succeed("set", "stage/other", "x")
    let refused = try tool.run("copy", "web", "stage")
    #expect(refused.code == 9 && refused.message.contains("\"port\"") && refused.message.contains("--merge"))
    #expect(try tool.succeed("list", "stage") == "other\nport\n" && tool.succeed("get", "stage/port") == "1\n")
    try tool.succeed("copy", "web", "stage", "--merge")
    #expect(try tool.succeed("list", "stage") == "host\nother\nport\ntoken\n")
    let report = try tool.succeed("copy", "web", "stage", "--replace", "--json")
    #expect(report.contains(#""removed":1"#) && report.contains(#""unchanged":3"#))
    #expect(try tool.succeed("diff", "web", "stage") == "")
  }

  @Test("What is no secret replaces none without --force")
  func overSecret() throws {
    try tool.succeed("set", "plain/token", "readable")
    let run = try tool.run("copy", "plain", "web", "--merge")
    #expect(run.code == 11 && run.message.contains("\"token\"") && run.message.contains("--force"), "\(run)")
    #expect(try tool.succeed("get", "web/token") == "hunter2\n" && tool.succeed("type", "web/token") == "secret\n")
    try tool.succeed("copy", "plain", "web", "--merge", "--force")
    #expect(try tool.succeed("type", "web/token") == "string\n")
  }

  @Test("--only copies some keys, each of which must exist")
  func only() throws {
    try tool.succeed("copy", "web", "stage", "--only", "port,host")
    #expect(try tool.succeed("list", "stage") == "host\nport\n")
    let run = try tool.run("copy", "web", "stage", "--only", "port,prot", "--merge")
    #expect(run.code == 3 && run.message.contains("did you mean \"port\"?"))
  }

  @Test("A dry run shows what would change, without secrets, and changes nothing")
  func dryRun() throws {
    try tool.succeed("set", "stage/port", "1", "--int")
    let text = try tool.succeed("copy", "web", "stage", "--merge", "--dry-run")
    #expect(text.contains("~ stage/port: 1 -> 8080\n") && text.contains("+ stage/token: \"<secret: 7 bytes>\"\n"))
    #expect(text.hasSuffix("Nothing was changed.\n"))
    #expect(try tool.succeed("list", "stage") == "port\n" && tool.succeed("get", "stage/port") == "1\n")
  }

  @Test("Another store gets one collection, or all of them, each under its own key")
  func otherStore() throws {
    let other = tool.path("other.coffer")
    let key = tool.path("other.key")
    #expect(try tool.run("copy", "web", "--to", other).code == 4)
    try tool.succeed("set", "-c", "", "x", "1")
    try tool.succeed("set", "kept/a", "b", "-d", other, "--key-file", key)
    try tool.succeed("copy", "web", "live", "--to", other, "--other-key-file", key)
    #expect(try tool.succeed("get", "live/token", "-d", other, "--key-file", key) == "hunter2\n")
    try tool.succeed("copy", "--to", other, "--other-key-file", key)
    let collections = try tool.succeed("collections", "-d", other, "--key-file", key)
    #expect(["kept", "live", "web"].allSatisfy(collections.contains))
    #expect(try tool.succeed("diff", "web", "--with", other, "--other-key-file", key) == "")
    // Nothing of a copy that a conflict ends.
    try tool.succeed("set", "web/aaa", "new")
    try tool.succeed("set", "web/port", "1", "--int")
    #expect(try tool.run("copy", "web", "--to", other, "--other-key-file", key).code == 9)
    #expect(try tool.run("get", "web/aaa", "-d", other, "--key-file", key).code == 3)
  }

  @Test("Sealed values are sealed again with the other vault, and copied unencrypted only with --force")
  func sealed() throws {
    try tool.seal("web")
    try tool.unlock()
    let refused = try tool.run("copy", "web", "open")
    #expect(refused.code == 11 && refused.message.contains("--force"))
    #expect(try tool.run("list", "open").code == 3)
    let shown = try tool.succeed("copy", "web", "open", "--force", "--dry-run")
    #expect(!shown.contains("localhost") && !shown.contains("hunter2"))
    try tool.succeed("copy", "web", "open", "-f")
    #expect(try tool.succeed("get", "open/host") == "localhost\n")

    let other = tool.path("other.coffer")
    let vaultKey = tool.path("vault-key")
    try tool.succeed("init", "-d", other)
    #expect(try tool.run("copy", "web", "--to", other).code == 11)
    try tool.succeed("seal", "web", "-d", other, "--vault-key-file", vaultKey)
    try tool.succeed("lock", "-d", other)
    let locked = try tool.run("copy", "web", "--to", other)
    #expect(locked.code == 6 && locked.message.contains("-d \(other)"), "\(locked.message)")
    try tool.succeed("unlock", "-d", other, "--vault-key-file", vaultKey)
    try tool.succeed("copy", "web", "--to", other)
    #expect(try tool.succeed("diff", "web", "--with", other) == "")
    try tool.succeed("lock", "-d", other)
    #expect(try tool.run("get", "web/host", "-d", other).code == 6)
  }

  @Test("Wrong usage is 2, and a missing collection 3")
  func usage() throws {
    for arguments in [
      [], ["web"], ["web", "web"], ["web", "-c", "x"], ["web", "x", "--only", "a", "--replace"],
      ["--only", "a", "--to", "f"],
      ["web", "x", "--other-key-file", "k"], ["web", "x", "--merge", "--replace"], ["web", "--to", ""],
    ] {
      #expect(try tool.run(["copy"] + arguments, input: []).code == 2, "\(arguments)")
    }
    #expect(try tool.run("copy", "wen", "x").code == 3)
    #expect(try tool.run("copy", "web", "x", "-d", tool.path("none")).code == 4)
    #expect(try tool.run("cp", "web", "x").message.contains("did you mean \"copy\"?"))
  }
}
