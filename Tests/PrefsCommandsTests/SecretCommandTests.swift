import Foundation
import Testing

@Suite("A secret on the command line") struct SecretCommandTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
  }

  @Test("is printed by get, and shown as its length in every list")
  func lists() throws {
    try tool.succeed("set", "mail/password", "--secret", "-", input: "hunter2")
    #expect(try tool.succeed("get", "mail/password") == "hunter2\n")
    #expect(try tool.succeed("get", "-n", "mail/password") == "hunter2")
    #expect(try tool.succeed("get", "--hex", "mail/password") == "68756e74657232\n")
    #expect(try tool.succeed("get", "--json", "mail/password").contains("\"type\":\"secret\",\"value\":\"hunter2\""))
    #expect(try tool.succeed("type", "mail/password") == "secret\n")
    for form in [
      ["--values"], ["-l", "--values"], ["--values", "--json"], ["--values", "--plain"], ["--values", "-0"],
    ] {
      let run = try tool.run(["list", "mail"] + form, input: [])
      #expect(run.code == 0 && run.text.contains("<secret: 7 bytes>") && !run.text.contains("hunter2"), "\(form)")
    }
  }

  @Test(
    "is not repeated where it was given as an argument by mistake",
    arguments: [
      "init --passphrase hunter2", "init --passphrase=hunter2", "key add --passphrase hunter2", "key recovery hunter2",
      "unlock hunter2", "unlock --passphrase hunter2", "unlock hunter2 hunter22", "set k --secret=hunter2",
      "set k --secret hunter2", "get k --key-fd hunter2", "get k --key-fd=hunter2", "--passphrase hunter2 get k",
      "--key hunter2 get k",
    ])
  func mistaken(_ words: String) throws {
    let run = try tool.run(words.split(separator: " ").map(String.init), input: [])
    #expect(run.code == 2 && !run.message.isEmpty && !(run.message + run.text).contains("hunter2"), "\(run)")
  }

  @Test("is stored byte for byte, from a file, a pipe, or decoded")
  func bytes() throws {
    let bytes = (0...255).map { UInt8($0) }
    try tool.succeed("set", "k", "--secret", "--value-file", try tool.write("f", bytes))
    #expect(try tool.run("get", "k").output == bytes)
    let json = try tool.succeed("get", "--json", "k")
    #expect(json.contains("\"encoding\":\"base64\"") && json.contains("\"type\":\"secret\""))
    // JSON and numbers are no more than text here.
    try tool.succeed("set", "k", "--secret", "-", input: "{\"a\": 1}")
    #expect(try tool.succeed("get", "k") == "{\"a\": 1}\n")
    try tool.succeed("set", "k", "--secret", "--data", "--hex", "-", input: "00ff")
    #expect(try tool.run("get", "k").output == [0, 255])
  }

  @Test("stays a secret: a plain set over it is refused, unless it names a type")
  func plainSet() throws {
    try tool.succeed("set", "k", "--secret", "-", input: "hunter2")
    let refused = try tool.run("set", "k", "visible")
    #expect(refused.code == 2 && refused.message.contains("is a secret") && !refused.message.contains("visible"))
    #expect(try tool.run("set", "k", "-", input: "visible").code == 2)
    #expect(try tool.succeed("type", "k") == "secret\n")
    #expect(try tool.succeed("get", "k") == "hunter2\n")
    try tool.succeed("set", "k", "--secret", "-", input: "other")
    #expect(try tool.succeed("type", "k") == "secret\n")
    try tool.succeed("set", "k", "--string", "visible")
    #expect(try tool.succeed("type", "k") == "string\n")
  }

  @Test("is written by get -o atomically to a file only for its owner, and by -o - to standard output")
  func outputFile() throws {
    try tool.succeed("set", "k", "--secret", "-", input: "hunter2")
    let file = try tool.write("out", Array("old".utf8))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
    try tool.succeed("get", "k", "-o", file)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "hunter2\n")
    #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
    #expect(try tool.succeed("get", "k", "-o", "-") == "hunter2\n")
  }

  @Test("has no other type, and is never empty or huge")
  func limits() throws {
    #expect(try tool.run("set", "k", "--secret", "--int", "-", input: "1").code == 2)
    #expect(try tool.run("set", "k", "--secret", "-", input: "").code == 8)
    let huge = try tool.write("huge", [UInt8](repeating: 120, count: 2 << 20))
    #expect(try tool.run("set", "k", "--secret", "--value-file", huge).code == 8)
    #expect(!tool.exists(tool.store))
  }
}
