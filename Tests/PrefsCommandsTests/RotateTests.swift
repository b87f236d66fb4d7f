import Coffer
import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Rotation")
struct RotateTests {
  /// A store that opens with the default key file, and with the passphrase `hunter2` of Ada.
  private func sample() throws -> Tool {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    #expect(try tool.addPassphrase("hunter2", label: "Ada").code == 0)
    return tool
  }

  private func opens(_ tool: Tool, passphrase: String) throws -> Bool {
    try tool.run("get", "x", "--passphrase-fd", "3", descriptors: [3: passphrase]).code == 0
  }

  @Test("rotate re-encrypts every page and keeps the slots")
  func plain() throws {
    let tool = try sample()
    let before = try tool.contents(tool.store)
    let run = try tool.run("rotate")
    #expect(run.code == 0 && run.text == "" && run.message.contains(tool.store) && !run.message.contains("\r"))
    let after = try tool.contents(tool.store)
    for page in stride(from: 16384, to: min(before.count, after.count), by: 4096) {
      #expect(before[page..<page + 64] != after[page..<page + 64], "page at \(page)")
    }
    #expect(try tool.succeed("get", "x") == "1\n")
    #expect(try opens(tool, passphrase: "hunter2"))
    try tool.succeed("doctor", "--deep")
  }

  @Test("A new root key needs the secret of every slot that stays, or changes nothing")
  func refusal() throws {
    let tool = try sample()
    try tool.succeed("key", "add", "--new-key-file", tool.path("second"), "--label", "stick")
    let before = try tool.contents(tool.store)
    let run = try tool.run("rotate", "--new-root-key")
    #expect(run.code == 11)
    #expect(run.message.contains("\"Ada\"") && run.message.contains("--keep-passphrase-fd"))
    #expect(run.message.contains("\"stick\"") && run.message.contains("--keep-key-file"))
    #expect(try tool.run("rotate", "--new-root-key", "--no-input").code == 11)
    let wrong = ["rotate", "--new-root-key", "--keep-passphrase-fd", "3", "--drop", "stick"]
    #expect(try tool.run(wrong, input: "".utf8, descriptors: [3: "hunter3"]).code == 5)
    #expect(try tool.run("rotate", "--new-root-key", "--drop", "Bob").code == 3)
    #expect(try tool.run("rotate", "--new-root-key", "--drop", "0", "--drop", "1", "--drop", "2").code == 11)
    #expect(try tool.contents(tool.store) == before)
  }

  @Test("Kept slots still open the store, and dropped ones do not")
  func keepAndDrop() throws {
    let tool = try sample()
    try tool.succeed("key", "add", "--new-key-file", tool.path("second"), "--label", "stick")
    try tool.succeed("key", "add", "--new-key-file", tool.path("third"))
    try tool.succeed("key", "recovery", "-o", tool.path("paper"))
    let paper = String(decoding: try tool.contents(tool.path("paper")), as: UTF8.self)
    let run = try tool.run(
      "rotate", "--new-root-key", "--keep-passphrase-fd", "3", "--keep-key-file", tool.path("second"), "--drop", "3",
      "--keep-recovery-key-fd", "4", "--json", descriptors: [3: "hunter2", 4: paper])
    #expect(run.code == 0, "\(run.message)")
    let object = try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? [String: Any])
    #expect(object["newRootKey"] as? Bool == true && (object["slots"] as? [Any])?.count == 4)
    #expect((object["dropped"] as? [[String: Any]])?.first?["id"] as? Int == 3)
    #expect(try opens(tool, passphrase: "hunter2"))
    #expect(try tool.run("get", "x").code == 0)
    #expect(try tool.run("get", "x", "--key-file", tool.path("second")).code == 0)
    #expect(try tool.run("get", "x", "--recovery-key-fd", "3", descriptors: [3: paper]).code == 0)
    #expect(try tool.run("get", "x", "--key-file", tool.path("third")).code == 5)
  }

  @Test("The slot that opened the store can be dropped")
  func dropOwn() throws {
    let tool = try sample()
    let keep = ["--keep-passphrase-fd", "3"]
    let run = try tool.run(
      ["rotate", "--new-root-key", "--drop", "0"] + keep, input: "".utf8, descriptors: [3: "hunter2"])
    #expect(run.code == 0, "\(run.message)")
    #expect(try opens(tool, passphrase: "hunter2"))
    #expect(try tool.run("get", "x", "--key-file", tool.keyFile).code == 5)
  }

  @Test("A reader of an old snapshot keeps the old key in use, which is 10")
  func oldKeyInUse() throws {
    let tool = try sample()
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    let connection = try database.makeConnection()
    try connection.beginLongLivedReadTransaction()
    let run = try tool.run("rotate", "--timeout", "0.1")
    #expect(run.code == 10 && run.message.contains("Rotate again"))
    try database.close()
    try tool.succeed("rotate")
    #expect(try tool.succeed("get", "x") == "1\n")
  }

  @Test("Options of a new root key without one are 2")
  func usage() throws {
    let tool = try sample()
    for options in [
      ["--drop", "1"], ["--keep-key-file", "k"], ["--keep-key-command", "c"], ["--keep-passphrase-fd", "3"],
    ] {
      #expect(try tool.run(["rotate"] + options, input: "".utf8).code == 2)
    }
  }
}
