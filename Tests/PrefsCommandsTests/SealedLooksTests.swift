import Coffer
import Foundation
import Testing

@Suite("Commands beside a locked vault") struct SealedLooksTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "open/hunter", "x")
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    let vaultKey = tool.path("vault-key")
    try KeyFile.create(at: vaultKey)
    try database.vault.create(key: .keyFile(vaultKey))
    try database.seal(collection: "tokens")
    try database.makeConnection().readWrite {
      try $0.setObject("hunter2", forKey: "mail", inCollection: "tokens")
    }
    try database.close()
  }

  @Test("find names what it did not search")
  func find() throws {
    let run = try tool.run("find", "hunter")
    #expect(run.text == "open/hunter  x\n" || run.text == "open/hunter\n")
    #expect(run.message.contains("\"tokens\" are sealed"))
    #expect(try tool.succeed("find", "mail") == "tokens/mail\n")
  }

  @Test("watch shows the size of a sealed value")
  func watch() throws {
    let watch = try Watch(tool, "--since", "0", "--values", "--json", "-c", "tokens")
    let lines = try watch.end()
    #expect(lines.contains { $0.contains(#""key":"mail","type":"sealed","value":"<sealed: "#) }, "\(lines)")
    #expect(!lines.joined().contains("hunter2"))
  }

  @Test("A locked value is 6, an argument for a sealed collection 2, an unencrypted move 11")
  func refused() throws {
    #expect(try tool.run("append", "tokens/list", "secret").code == 2)
    #expect(try tool.run("append", "tokens/list", "-", input: "secret").code == 6)
    #expect(try tool.run("rename", "tokens/mail", "open/mail").code == 11)
    #expect(try tool.run("rename", "-f", "tokens/mail", "open/mail").code == 6)
    #expect(try tool.run("exec", "-c", "tokens", "--", "true").code == 125)
    #expect(try tool.run("inject", "-", input: "{{prefs:tokens/mail}}").code == 6)
    #expect(try tool.succeed("list", "tokens") == "mail\n")
  }

  @Test("A plain value does not replace a sealed secret")
  func plainOverSecret() throws {
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    try database.vault.unlock(.keyFile(tool.path("vault-key")))
    try database.makeConnection().readWrite {
      try $0.setObject(Value.secret(Secret("hunter2")), forKey: "api", inCollection: "tokens")
    }
    try database.close()
    try tool.succeed("unlock", "--vault-key-file", tool.path("vault-key"))
    let run = try tool.run("set", "tokens/api", "-", input: "plain")
    #expect(run.code == 2 && run.message.contains("is a secret; nothing was changed"))
    #expect(try tool.succeed("get", "tokens/api") == "hunter2\n")
    try tool.succeed("set", "tokens/mail", "-", input: "swordfish")
    try tool.succeed("set", "tokens/api", "--string", "-", input: "plain")
    #expect(try tool.succeed("type", "tokens/api") == "string\n")
  }
}
