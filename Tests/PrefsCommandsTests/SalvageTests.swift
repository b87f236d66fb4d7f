import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Salvage")
struct SalvageCommandTests {
  /// Some settings in two collections, one of them long enough for pages of its own.
  private func sample() throws -> Tool {
    let tool = try Tool()
    for number in 0..<12 {
      try tool.succeed("set", "ui/key \(number)", "-", input: String(repeating: "value \(number) ", count: 60))
    }
    try tool.succeed("set", "api/token", "-", input: String(repeating: "t", count: 9000))
    return tool
  }

  /// Copies the store with some bytes changed.
  private func damaged(_ tool: Tool, _ places: some Sequence<Int>) throws -> String {
    var bytes = try tool.contents(tool.store)
    for place in places { bytes[place] ^= 0x20 }
    let path = try tool.write("damaged.coffer", bytes)
    chmod(path, 0o600)
    return path
  }

  private func report(_ run: Tool.Run) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? [String: Any])
  }

  @Test("An intact store is saved completely, under the same key, with exit code 0")
  func sound() throws {
    let tool = try sample()
    let run = try tool.run("salvage", "-o", tool.path("new.coffer"))
    #expect(run.code == 0 && run.message.isEmpty)
    #expect(run.text.contains("13 items in 2 collections") && run.text.contains("Everything on its pages was saved"))
    for number in 0..<12 {
      let value = try tool.succeed("get", "ui/key \(number)")
      #expect(try tool.succeed("get", "ui/key \(number)", "-d", tool.path("new.coffer")) == value)
    }
    #expect(try tool.mode(tool.path("new.coffer")) == 0o600)
    #expect(try tool.succeed("doctor", "-d", tool.path("new.coffer")).contains("No problems found."))
  }

  @Test("Lost values are listed, the rest is saved, and the exit code is 7; the damaged store stays unchanged")
  func lossy() throws {
    let tool = try sample()
    let size = try tool.contents(tool.store).count
    var saved = 0
    var losses = 0
    for place in stride(from: 16384 + 2000, to: size, by: 4096) {
      let path = try damaged(tool, [place])
      let before = try tool.contents(path)
      let new = tool.path("new-\(place).coffer")
      let run = try tool.run("salvage", "--json", "--store", path, "--output", new)
      #expect(try tool.contents(path) == before)
      #expect(run.code == 0 || run.code == 7, "\(run.message)")
      let report = try report(run)
      #expect(report["complete"] as? Bool == (run.code == 0))
      let lost = try #require(report["lostItems"] as? [[String: Any]])
      #expect(try #require(report["items"] as? Int) + lost.count == 13, "byte \(place)")
      for item in lost {
        let name = try #require(item["collection"] as? String) + "/" + #require(item["key"] as? String)
        #expect(try tool.run("get", name, "-d", new).code == 3)
        let text = try tool.run("salvage", "--store", path, "-o", tool.path("text-\(place)-\(losses).coffer"))
        #expect(text.text.contains("Known to be lost:") && text.text.contains(name))
        losses += 1
      }
      let isNamed = (report["renamedCollections"] as? [String])?.isEmpty ?? false
      if isNamed { saved += try tool.succeed("list", "ui", "-d", new).split(separator: "\n").count }
      unlink(path)
    }
    #expect(losses > 0 && saved > 0)
  }

  @Test("A store that no longer opens is salvaged, and doctor says how")
  func unopenable() throws {
    let tool = try sample()
    let path = try damaged(tool, [16384 + 50])
    #expect(try tool.run("get", "api/token", "-d", path).code == 7)
    let run = try tool.run("salvage", "-d", path, "-o", tool.path("new.coffer"))
    #expect(run.code == 7 && run.text.contains("further pages, if it had any"))
    #expect(try tool.succeed("get", "api/token", "-d", tool.path("new.coffer")).count == 9001)
  }

  @Test("A new key file is created on request, and is the only key of the new store")
  func newKey() throws {
    let tool = try sample()
    let new = tool.path("new.coffer")
    let run = try tool.run("salvage", "-o", new, "--new-key-file", tool.path("other.key"))
    #expect(run.code == 0 && run.message.contains("created the key file"))
    #expect(try tool.run("get", "ui/key 1", "-d", new).code == 5)
    #expect(try tool.succeed("get", "ui/key 1", "-d", new, "--key-file", tool.path("other.key")).count > 60)
  }

  @Test("Nothing is overwritten, and a hopeless salvage not started")
  func refusals() throws {
    let tool = try sample()
    try tool.write("mine", "mine".utf8)
    #expect(try tool.run("salvage", "-o", tool.path("mine")).code == 9)
    #expect(try tool.run("salvage", "-o", tool.store).code == 9)
    #expect(try tool.contents(tool.path("mine")) == Array("mine".utf8))
    let both = try damaged(tool, [100, 8192 + 100])
    let hopeless = try tool.run("salvage", "-d", both, "-o", tool.path("new.coffer"))
    #expect(hopeless.code == 7 && hopeless.message.contains("envelope"))
    try tool.succeed("init", "--store", tool.path("other.coffer"), "--key-file", tool.path("other.key"))
    #expect(try tool.run("salvage", "-o", tool.path("new.coffer"), "--key-file", tool.path("other.key")).code == 5)
    #expect(try tool.run("salvage", "-d", tool.path("none"), "-o", tool.path("new.coffer")).code == 4)
    #expect(try tool.run("salvage").code == 2)
    #expect(!tool.exists(tool.path("new.coffer")))
  }
}
