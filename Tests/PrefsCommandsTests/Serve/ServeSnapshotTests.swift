import Foundation
import Testing

/// A client that keeps what a watch with snapshots sends: it does nothing but what the lines say.
struct SnapshotMemory {
  typealias Object = ServedTool.Object

  let server: ServedTool
  private(set) var values: [String: String] = [:]
  private(set) var store = ""
  private(set) var problem: String?
  /// What came, in order: `items`, `changes` or `unavailable`.
  private(set) var kinds: [String] = []

  init(_ server: ServedTool, _ collections: String) throws {
    self.server = server
    let watch = try server.ok(#""do":"watch","collections":\#(collections),"snapshots":true"#)
    #expect(watch["watch"] as? Int == 1)
    try take { $0 == "items" }
  }

  /// Takes notices until one of a kind.
  mutating func take(until isLast: (_ kind: String) -> Bool) throws {
    repeat { try takeOne() } while !isLast(kinds.last ?? "")
  }

  /// Takes the notices that came before an answer.
  mutating func takeRest() throws { while !server.notices.isEmpty { try takeOne() } }

  private mutating func takeOne() throws {
    let notice = try server.notice()
    func keep(_ item: Object) {
      let place = "\(item["collection"] ?? "")/\(item["key"] ?? "")"
      values[place] = item["type"] == nil ? nil : item["value"].map { "\($0)" } ?? "none"
    }
    if let items = notice["items"] as? [Object] {
      (values, store, problem) = ([:], try #require(notice["store"] as? String), nil)
      items.forEach(keep)
      kinds.append("items")
    } else if let error = notice["unavailable"] as? Object {
      problem = error["error"] as? String
      kinds.append("unavailable")
    } else {
      for change in try #require(notice["changes"] as? [Object], "\(notice)") {
        keep(try #require(change["item"] as? Object))
      }
      kinds.append("changes")
    }
  }
}

@Suite("Watches of prefs serve with snapshots") struct ServeSnapshotTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    try tool.succeed("set", "web/port", "80", "--int")
  }

  @Test("Everything comes first, and where anything may have changed; what is between are changes")
  func order() throws {
    var memory = try SnapshotMemory(try ServedTool(tool), #"["web","api"]"#)
    #expect(memory.values == ["web/port": "80"])
    #expect(memory.store == memory.server.greeting["store"] as? String)
    try tool.succeed("set", "api/host", "a")
    try memory.take { $0 == "changes" }
    try memory.server.ok(#""do":"set","collection":"web","key":"port","value":81"#)
    try memory.takeRest()
    #expect(memory.values == ["web/port": "81", "api/host": "a"] && memory.kinds == ["items", "changes", "changes"])

    try tool.succeed(
      "schema", "load", "-", "--application", "web", "--application-version", "1",
      input: #"[{"name": "limit", "collection": "web", "type": "int", "default": 5}]"#)
    try memory.take { $0 == "items" }
    try tool.succeed("unset", "-c", "web", "--all", "-f")
    try memory.take { $0 == "items" }
    #expect(memory.values == ["web/limit": "5", "api/host": "a"])
  }

  @Test("More changes than a notice has are there before the answer, each time")
  func manyChanges() throws {
    var memory = try SnapshotMemory(try ServedTool(tool), #"["web"]"#)
    for value in 1...3 {
      let changes = (0..<1001).map { #"{"set":{"collection":"web","key":"k\#($0)","value":\#(value)}}"# }
      try memory.server.ok(#""do":"transaction","changes":[\#(changes.joined(separator: ","))]"#)
      try memory.takeRest()
      #expect(memory.values["web/k1000"] == "\(value)" && memory.values.count == 1002)
    }
  }

  @Test("After a restore, and of another store, everything comes with its ID; while there is none, values and a reason")
  func replaced() throws {
    try tool.succeed("backup", tool.path("backup.coffer"))
    var memory = try SnapshotMemory(try ServedTool(tool), #"["web"]"#)
    try memory.server.ok(#""do":"set","collection":"web","key":"port","value":81"#)
    try tool.succeed("restore-store", "--force", tool.path("backup.coffer"))
    repeat { try memory.take { $0 == "items" } } while memory.values != ["web/port": "80"]
    let id = memory.store

    for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: tool.store + suffix) }
    try memory.take { $0 == "unavailable" }
    #expect(memory.problem == "storeNotFound" && memory.values == ["web/port": "80"])
    try tool.succeed("set", "web/port", "82", "--int")
    repeat { try memory.take { $0 == "items" } } while memory.values != ["web/port": "82"]
    #expect(memory.store != id && memory.problem == nil)
    #expect(try tool.succeed("status", "--json").contains(memory.store))
  }

  @Test("Sealed values come with the vault's key, and go with it")
  func vault() throws {
    try tool.succeed("set", "tokens/key", "value")
    try tool.seal("tokens")
    var memory = try SnapshotMemory(try ServedTool(tool), #"["tokens"]"#)
    #expect(memory.values == ["tokens/key": "none"])
    #expect(try tool.unlock("vault").code == 0)
    try memory.take { $0 == "items" }
    #expect(memory.values == ["tokens/key": "value"])
    try tool.succeed("lock")
    try memory.take { $0 == "items" }
    #expect(memory.values == ["tokens/key": "none"])
  }

  @Test("Sealed values of a restored store come with the vault's key, too")
  func vaultOfRestoredStore() throws {
    try tool.succeed("set", "tokens/key", "value")
    try tool.seal("tokens")
    try tool.succeed("backup", tool.path("backup.coffer"))
    var memory = try SnapshotMemory(try ServedTool(tool), #"["tokens"]"#)
    let id = memory.store
    try tool.succeed("restore-store", "--force", "--accept-keys", tool.path("backup.coffer"))
    while memory.store == id { try memory.take { $0 == "items" } }
    #expect(try tool.unlock("vault").code == 0)
    while memory.values != ["tokens/key": "value"] { try memory.take { $0 == "items" } }
  }

  @Test("What was committed while a link to the store was away comes with everything")
  func linkAway() throws {
    let (link, store) = (tool.path("link"), URL(fileURLWithPath: tool.store))
    try #require(symlink(store.deletingLastPathComponent().path, link) == 0)
    var memory = try SnapshotMemory(
      try ServedTool(tool, "--store", "\(link)/\(store.lastPathComponent)"), #"["web"]"#)
    try #require(unlink(link) == 0)
    try memory.take { $0 == "unavailable" }
    try tool.succeed("set", "web/port", "81", "--int")
    try #require(symlink(store.deletingLastPathComponent().path, link) == 0)
    while memory.values != ["web/port": "81"] { try memory.take { $0 == "items" } }
    #expect(memory.kinds == ["items", "unavailable", "items"] && memory.problem == nil)
  }

  @Test("A snapshot that cannot be read is a reason, once, and comes when it can be")
  func unreadable() throws {
    try tool.succeed("env", "create", "web@dev")
    let server = try ServedTool(tool)
    var memory = try SnapshotMemory(server, #"["web@dev"]"#)
    #expect(memory.values == ["web@dev/port": "80"])
    try tool.succeed("env", "remove", "web@dev", "--force")
    try memory.take { $0 == "unavailable" }
    #expect(memory.problem == "notFound" && memory.values == ["web@dev/port": "80"])
    // Each is a reason to try again.
    for number in 1...20 { try server.ok(#""do":"set","collection":"web","key":"port","value":\#(number)"#) }
    try tool.succeed("env", "create", "web@dev")
    try memory.take { $0 == "items" }
    #expect(memory.kinds == ["items", "unavailable", "items"] && memory.problem == nil)
    // Longer than until the next attempt of each, if there were more than one.
    Thread.sleep(forTimeInterval: 2.5)
    try server.ok(#""do":"get","collection":"web","key":"port""#)
    try memory.takeRest()
    #expect(memory.kinds.count <= 5 && memory.values == ["web@dev/port": "20"])
  }

  @Test("It is of whole collections, and from now on")
  func usage() throws {
    let server = try ServedTool(tool)
    for members in [
      #""keys":[["web","port"]]"#, #""collections":["web"],"keys":[["api","host"]]"#,
      #""collections":["web"],"since":"1""#, #""env":"dev""#,
    ] {
      #expect(try server.failure(#""do":"watch","snapshots":true,\#(members)"#).name == "usage")
    }
  }
}
