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

@Suite("Watches of prefs serve") struct ServeWatchTests {
  private typealias Object = ServedTool.Object

  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "web/port", "80", "--int")
  }

  /// The changes of a notice, as `KIND COLLECTION/KEY VALUE`.
  private static func changes(_ notice: Object) throws -> [String] {
    try #require(notice["changes"] as? [Object], "\(notice)").map { change in
      let item = try #require(change["item"] as? Object)
      let value = item["value"].map { " \($0)" } ?? ""
      return "\(change["change"] ?? "") \(item["collection"] ?? "")/\(item["key"] ?? "")\(value)"
    }
  }

  @Test("A commit of another process, or of the client itself, is a notice, before the answer to the latter")
  func commits() throws {
    let server = try ServedTool(tool)
    #expect(try server.ok(#""do":"watch","collections":["web"],"values":true"#)["watch"] as? Int == 1)
    try tool.succeed("set", "web/port", "81", "--int")
    let notice = try server.notice()
    #expect(try Self.changes(notice) == ["updated web/port 81"])
    #expect((notice["author"] as? Object)?["program"] as? String == "prefs" && notice["time"] != nil)
    for number in 0..<20 {
      try server.ok(#""do":"set","collection":"web","key":"n","value":\#(number)"#)
      let expected = number == 0 ? "inserted" : "updated"
      #expect(try server.notices.map(Self.changes) == [["\(expected) web/n \(number)"]])
      _ = try server.notice()
    }
    // An equal value changes nothing.
    try server.ok(#""do":"set","collection":"web","key":"n","value":19"#)
    try server.ok(#""do":"unset","collection":"web","key":"n""#)
    #expect(try server.notices.map(Self.changes) == [["removed web/n"]])
    #expect(try server.end() == 0)
  }

  @Test("Only what is watched is reported: collections, keys, everything, and an environment with its parent")
  func filters() throws {
    try tool.succeed("env", "create", "web@dev")
    let server = try ServedTool(tool)
    try server.ok(#""do":"watch","keys":[["web","port"],["","a"]]"#)
    try server.ok(#""do":"watch","collections":["web"],"env":"dev","values":true"#)
    try server.ok(#""do":"watch""#)
    try server.ok(#""do":"set","collection":"web","key":"host","value":"a""#)
    var seen = try server.notices.map { (try #require($0["watch"] as? Int), try Self.changes($0)) }
    #expect(seen.map(\.0) == [2, 3])
    #expect(seen.map(\.1) == [["inserted web@dev/host a"], ["inserted web/host"]])
    while !server.notices.isEmpty { _ = try server.notice() }
    try server.ok(#""do":"set","key":"a","value":1"#)
    seen = try server.notices.map { (try #require($0["watch"] as? Int), try Self.changes($0)) }
    #expect(seen.map(\.0) == [1, 3])
    while !server.notices.isEmpty { _ = try server.notice() }
    try server.ok(#""do":"unwatch","watch":3"#)
    #expect(try server.failure(#""do":"unwatch","watch":3"#).name == "notFound")
    try server.ok(#""do":"set","key":"b","value":1"#)
    #expect(server.notices.isEmpty)
  }

  @Test("With since, nothing is left out between two servers, and nothing comes twice")
  func since() throws {
    let first = try ServedTool(tool)
    try first.ok(#""do":"watch""#)
    try first.ok(#""do":"set","key":"a","value":1"#)
    let position = try #require(try first.notice()["position"] as? String)
    kill(first.child, SIGKILL)
    for key in ["b", "c"] { try tool.succeed("set", key, "x") }
    let second = try ServedTool(tool)
    try second.ok(#""do":"watch","since":"\#(position)""#)
    try tool.succeed("set", "d", "x")
    let keys = try (0..<3).map { _ in try Self.changes(second.notice()) }
    #expect(keys == [["inserted /b"], ["inserted /c"], ["inserted /d"]])
    // A position in no history of this store.
    try second.ok(#""do":"watch","since":"3-00000000""#)
    #expect(try second.notice()["everything"] as? Bool == true)
  }

  @Test("A cleared collection, a declaration or too many keys are everything")
  func everything() throws {
    let server = try ServedTool(tool)
    try server.ok(#""do":"watch","collections":["web"]"#)
    try tool.succeed("unset", "-c", "web", "--all", "-f")
    #expect(try server.notice()["everything"] as? Bool == true)
    try tool.succeed(
      "schema", "load", "-", "--application", "web", "--application-version", "1",
      input: #"[{"name": "port", "collection": "web", "type": "int", "default": 8080}]"#)
    #expect(try server.notice()["everything"] as? Bool == true)
    #expect(try server.value("web", "port") as? Int == 8080)
    while !server.notices.isEmpty { _ = try server.notice() }
    let changes = (0..<1001).map { #"{"set":{"collection":"web","key":"k\#($0)","value":1,"x":0}}"# }
    try server.ok(#""do":"transaction","undeclared":true,"changes":[\#(changes.joined(separator: ","))]"#)
    #expect(server.notices.map { $0["everything"] as? Bool } == [true])
  }

  @Test("A removed value shows what is in force then, and an expired one says so")
  func removed() throws {
    try tool.succeed(
      "schema", "load", "-", "--application", "web", "--application-version", "1",
      input: #"[{"name": "port", "collection": "web", "type": "int", "default": 8080}]"#)
    let server = try ServedTool(tool)
    try server.ok(#""do":"watch","values":true"#)
    try tool.succeed("unset", "web/port")
    let notice = try server.notice()
    #expect(try Self.changes(notice) == ["removed web/port 8080"])
    try server.ok(#""do":"set","key":"soon","value":1,"expiresIn":"1s""#)
    #expect(try Self.changes(server.notice()) == ["inserted /soon 1"])
    #expect(try Self.changes(server.notice()) == ["expired /soon"])
  }

  @Test("An expired value is reported though its removal cannot be committed")
  func expiredBehindWriter() throws {
    let server = try ServedTool(tool)
    try server.ok(#""do":"watch","values":true"#)
    let connection = try Database.open(at: tool.store, key: .keyFile(tool.keyFile)).makeConnection()
    try server.ok(#""do":"set","key":"soon","value":1,"expiresIn":"2s""#)
    #expect(try Self.changes(server.notice()) == ["inserted /soon 1"])
    try connection.readWrite { transaction in
      let (notice, value) = (try server.notice(), try server.value("", "soon"))
      #expect(notice["everything"] as? Bool == true && value == nil)
      transaction.rollback()
    }
    #expect(try Self.changes(server.notice()) == ["expired /soon"])
  }

  @Test(
    "Another store in the place of this one is reported with its ID, and an earlier state of this one as everything")
  func replaced() throws {
    try tool.succeed("backup", tool.path("backup.coffer"))
    let server = try ServedTool(tool)
    try server.ok(#""do":"watch""#)
    try tool.succeed("set", "web/port", "81", "--int")
    _ = try server.notice()
    try tool.succeed("restore-store", "--force", tool.path("backup.coffer"))
    var notice = try server.notice()
    while notice["everything"] == nil, notice["replaced"] == nil { notice = try server.notice() }
    #expect(try server.value("web", "port") as? Int == 80)
    for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: tool.store + suffix) }
    repeat { notice = try server.notice() } while notice["unavailable"] == nil
    #expect((notice["unavailable"] as? Object)?["error"] as? String == "storeNotFound")
    // A watch that begins now has to know it, too.
    try server.ok(#""do":"watch""#)
    notice = try server.notice()
    #expect(notice["watch"] as? Int == 2 && notice["unavailable"] != nil)
    try tool.succeed("set", "web/port", "82", "--int")
    repeat { notice = try server.notice() } while notice["replaced"] == nil
    let id = try #require(notice["replaced"] as? String)
    #expect(id != server.greeting["store"] as? String)
    #expect(try tool.succeed("status", "--json").contains(id))
    #expect(try server.value("web", "port") as? Int == 82)
    try server.ok(#""do":"set","collection":"web","key":"port","value":83"#)
    #expect(try tool.succeed("get", "web/port") == "83\n")
  }

  @Test("A change of an administrator's files is a notice")
  func administered() throws {
    let folder = tool.path("managed/web.d")
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    let server = try ServedTool(tool, environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
    try server.ok(#""do":"watch","collections":["web"]"#)
    // Answered once the watch is started.
    _ = try server.value("web", "port")
    let file = try tool.write("managed/draft", #"{"locked": {"port": 8080}}"#.utf8)
    chmod(file, 0o644)
    try #require(rename(file, folder + "/10.json") == 0)
    #expect(try server.notice()["administered"] as? Bool == true)
    #expect(try server.value("web", "port") as? Int == 8080)
  }

  @Test("Sealed values come while the vault is unlocked, and notices say when that begins and ends")
  func vault() throws {
    try tool.succeed("set", "tokens/key", "value")
    try tool.seal("tokens")
    let server = try ServedTool(tool)
    try server.ok(#""do":"watch","collections":["tokens"]"#)
    let locked = try server.ok(#""do":"get","collection":"tokens","key":"key""#)
    #expect(locked["sealed"] as? Bool == true && locked["value"] == nil)
    #expect(try server.failure(#""do":"set","collection":"tokens","key":"key","value":"x""#).name == "keyUnavailable")
    #expect(try tool.unlock("vault").code == 0)
    #expect(try server.notice()["vault"] as? String == "unlocked")
    #expect(try server.value("tokens", "key") as? String == "value")
    let answer = try server.ok(#""do":"set","collection":"tokens","key":"key","value":"x""#)
    #expect(answer["type"] as? String == "sealed" && answer["sealed"] == nil)
    #expect(try Self.changes(server.notice()) == ["updated tokens/key"])
    try tool.succeed("lock")
    #expect(try server.notice()["vault"] as? String == "locked")
    #expect(try server.ok(#""do":"get","collection":"tokens","key":"key""#)["value"] == nil)
  }

  @Test("A client that does not read holds up neither others nor the store, and knows the last commit once it reads")
  func slow() throws {
    let server = try ServedTool(tool)
    try server.ok(#""do":"watch","values":true"#)
    let other = try ServedTool(tool)
    try other.ok(#""do":"watch","keys":[["web","port"]]"#)
    // More than a pipe and the queue hold: 8 MB.
    let text = String(repeating: "x", count: 200_000)
    for number in 0..<40 { try other.ok(#""do":"set","key":"k","value":"\#(number)\#(text)""#) }
    try other.ok(#""do":"set","collection":"web","key":"port","value":81"#)
    #expect(try Self.changes(other.notice()) == ["updated web/port"])
    // All commits have been read by the server once it answers; how many of them before the queue was full depends on its speed.
    try server.ok(#""do":"unset","key":"none""#)
    #expect(server.notices.count <= 41)
    let position = try server.ok(#""do":"snapshot","collections":["web"]"#)["position"] as? String
    #expect(server.notices.last?["position"] as? String == position)
    try other.ok(#""do":"set","collection":"web","key":"port","value":82"#)
    while try !"\(server.notice()["changes"] ?? "")".contains("port") {}
  }
}
