import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("prefs serve at a socket") struct ServeSocketTests {
  private let tool: Tool
  private var path: String { tool.runtime + "/settings.sock" }

  init() throws { tool = try Tool() }

  /// Starts it, and returns once it listens.
  private func start() throws -> pid_t {
    let messages = try LinePipe(tool.path("messages-\(UUID().uuidString)"))
    let child = try tool.spawn(
      ["serve", "--socket", path, "-v"],
      files: [(0, "/dev/null", O_RDONLY), (1, "/dev/null", O_WRONLY), (2, messages.path, O_WRONLY)])
    while try !#require(try messages.next()).contains("listening at") {}
    return child
  }

  @Test("Several clients are served; the socket is for its user alone, and goes with the server")
  func clients() throws {
    let server = try start()
    #expect(try tool.mode(path) == 0o600)
    let (one, other) = (try ServedTool(at: path), try ServedTool(at: path))
    try one.ok(#""do":"watch","values":true"#)
    try other.ok(#""do":"set","key":"a","value":1"#)
    #expect(try one.notice()["changes"] != nil)
    #expect(try one.value("", "a") as? Int == 1)
    #expect(try tool.run("serve", "--socket", path).code == 9)
    kill(server, SIGTERM)
    #expect(try Tool.exitCode(of: server) == 0)
    #expect(!tool.exists(path))
    #expect(try one.nextLine() == nil)
  }

  @Test("A client that does not read, or goes away, holds up no other")
  func slowClient() throws {
    let server = try start()
    let other = try ServedTool(at: path)
    do {
      let slow = try ServedTool(at: path)
      try slow.ok(#""do":"watch","values":true"#)
      let text = String(repeating: "x", count: 200_000)
      for number in 0..<30 { try other.ok(#""do":"set","key":"k","value":"\#(number)\#(text)""#) }
    }
    try other.ok(#""do":"set","key":"k","value":1"#)
    #expect(try other.value("", "k") as? Int == 1)
    let next = try ServedTool(at: path)
    #expect(try next.value("", "k") as? Int == 1)
    kill(server, SIGTERM)
    #expect(try Tool.exitCode(of: server) == 0)
  }

  @Test("A client that does not read gets one snapshot for what it has missed, and then changes again")
  func snapshotForAll() throws {
    let server = try start()
    let (slow, other) = (try ServedTool(at: path), try ServedTool(at: path))
    var memory = try SnapshotMemory(slow, #"["web"]"#)
    // Each of its answers waits until the server has noted the commit.
    try other.ok(#""do":"watch","keys":[["",""]]"#)
    // More than a socket and the queue hold: 16 MB.
    let text = String(repeating: "x", count: 200_000)
    var rounds = 0
    // On a busy machine the server may come to this client only while it reads: then it misses nothing.
    repeat {
      for number in 0..<80 {
        try other.ok(#""do":"set","collection":"web","key":"k","value":"\#(number)\#(text)""#)
      }
      try slow.ok(#""do":"set","collection":"web","key":"port","value":\#(81 + rounds)"#)
      try memory.takeRest()
      rounds += 1
    } while memory.kinds.count == 1 + 81 * rounds && rounds < 10
    #expect(memory.values == ["web/port": "\(80 + rounds)", "web/k": "79\(text)"])
    #expect(memory.kinds.filter { $0 == "items" }.count == 2 && memory.kinds.count < 81 * rounds - 1, "\(memory.kinds)")
    try slow.ok(#""do":"unset","collection":"web","key":"k""#)
    try memory.takeRest()
    #expect(memory.values == ["web/port": "\(80 + rounds)"] && memory.kinds.last == "changes")
    kill(server, SIGTERM)
    #expect(try Tool.exitCode(of: server) == 0)
  }

  @Test("A client that has not read knows that the store is away, and that it is back")
  func awayForSlowClient() throws {
    let server = try start()
    let (slow, other) = (try ServedTool(at: path), try ServedTool(at: path))
    for client in [slow, other] { try client.ok(#""do":"watch","values":true"#) }
    let text = String(repeating: "x", count: 200_000)
    for number in 0..<80 { try other.ok(#""do":"set","key":"k","value":"\#(number)\#(text)""#) }
    /// What is noticed, up to one, besides changes.
    func noticed(by client: ServedTool, through last: String) throws -> [String] {
      var kinds: [String] = []
      repeat { kinds += Set(try client.notice().keys).subtracting(["watch", "position"]) } while kinds.last != last
      return kinds.filter { !["time", "author", "changes"].contains($0) }
    }
    try #require(rename(tool.store, tool.path("away")) == 0)
    #expect(try noticed(by: other, through: "unavailable") == ["unavailable"])
    #expect(try noticed(by: slow, through: "unavailable") == ["everything", "unavailable"])
    try #require(rename(tool.path("away"), tool.store) == 0)
    #expect(try noticed(by: slow, through: "available") == ["available"])
    kill(server, SIGTERM)
    #expect(try Tool.exitCode(of: server) == 0)
  }

  @Test("A folder that others can write to is refused")
  func folder() throws {
    try FileManager.default.createDirectory(
      atPath: tool.path("open"), withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    chmod(tool.path("open"), 0o777)
    #expect(try tool.run("serve", "--socket", tool.path("open/s")).code == 11)
    #expect(try tool.run("serve", "--socket", "").code == 2)
    #expect(!tool.exists(tool.path("open/s")))
  }
}
