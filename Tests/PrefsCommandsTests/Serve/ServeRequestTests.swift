import Foundation
import Testing

@Suite("Requests to prefs serve") struct ServeRequestTests {
  private typealias Object = ServedTool.Object

  private let tool: Tool

  init() throws { tool = try Tool() }

  /// Declares settings of the application `web`.
  private func declare(_ declarations: String) throws {
    try tool.succeed("schema", "load", "-", "--application", "web", "--application-version", "1", input: declarations)
  }

  private static let declarations = """
    [{"name": "port", "collection": "web", "type": "int", "default": 80, "limits": [{"minimum": 1, "maximum": 65535}], "summary": "The port."},
     {"name": "ratio", "collection": "web", "type": "double"}, {"name": "since", "collection": "web", "type": "date"}, {"name": "token", "collection": "web", "type": "secret"}]
    """

  // MARK: - Reading

  @Test("The server speaks first, and creates the store unless it must exist")
  func greeting() throws {
    #expect(try tool.run("serve", "--must-exist").code == 4)
    #expect(try tool.run("serve", "-c", "web").code == 2)
    let server = try ServedTool(tool)
    #expect(server.greeting["serve"] as? Int == 1 && server.greeting["path"] as? String == tool.store)
    let id = try #require(server.greeting["store"] as? String)
    #expect(try tool.succeed("status", "--json").contains(id))
    #expect(try server.end() == 0)
  }

  @Test("get, list and snapshot have what is in force, with its origin and version")
  func reading() throws {
    try tool.succeed("set", "web/host", "a")
    try declare(Self.declarations)
    let server = try ServedTool(tool)
    let host = try server.ok(#""do":"get","collection":"web","key":"host""#)
    #expect(
      host["value"] as? String == "a" && host["type"] as? String == "string" && host["origin"] as? String == "store")
    #expect(host["version"] as? Int ?? 0 > 0 && host["modified"] != nil)
    let port = try server.ok(#""do":"get","collection":"web","key":"port""#)
    #expect(port["value"] as? Int == 80 && port["origin"] as? String == "default" && port["version"] as? Int == 0)
    #expect(port["modified"] == nil)
    let absent = try server.ok(#""do":"get","key":"none""#)
    #expect(absent.keys.sorted() == ["collection", "key", "version"] && absent["version"] as? Int == 0)
    let names = try #require(try server.ok(#""do":"list","collection":"web""#)["items"] as? [Object])
    #expect(names.map { $0["key"] as? String } == ["host", "port", "ratio", "since", "token"])
    #expect(names.allSatisfy { $0["value"] == nil })
    let some = try server.ok(#""do":"list","collection":"web","prefix":"h","values":true"#)
    #expect((some["items"] as? [Object])?.map { $0["value"] as? String } == ["a"])
    let snapshot = try server.ok(#""do":"snapshot","collections":["web","other"]"#)
    #expect((snapshot["items"] as? [Object])?.compactMap { $0["value"] }.count == 2)
    #expect(snapshot["position"] as? String == server.greeting["position"] as? String)
    #expect(try server.end() == 0)
  }

  @Test("describe answers as prefs describe --json, also that a setting is not declared")
  func describing() throws {
    try declare(Self.declarations)
    let server = try ServedTool(tool)
    let answer = try server.ok(#""do":"describe","collection":"web","key":"port""#)
    let printed = try JSONSerialization.jsonObject(with: Data(tool.succeed("describe", "web/port", "--json").utf8))
    #expect(try Self.text(answer) == Self.text(printed))
    #expect(try server.failure(#""do":"describe","collection":"web","key":"prot""#).message.contains("did you mean"))
  }

  private static func text(_ object: Any) throws -> String {
    String(decoding: try JSONSerialization.data(withJSONObject: object, options: .sortedKeys), as: UTF8.self)
  }

  @Test("Values of every type can be sent back as they came")
  func values() throws {
    let values = [
      "true", "-5", "9223372036854775808", "5.5", "1e300", #""text""#, #""\u0000""#, #"[1,"two",[null]]"#,
      #"{"a":{"$date":"2026-01-31T08:30:00.250Z"}}"#, #"{"$data":"AAEC"}"#, #"{"$date":"2026-01-31T08:30:00.250Z"}"#,
      #"{"$url":"https://example.org/"}"#, #"{"$uuid":"6F9619FF-8B86-D011-B42D-00C04FC964FF"}"#, #"{"$double":"nan"}"#,
      #"{"$json":{"a":[1]}}"#, #"{"$dict":{"$date":1}}"#, #"{"$string":"<secret: 6 bytes>"}"#,
    ]
    let server = try ServedTool(tool)
    for (index, value) in values.enumerated() {
      try server.ok(#""do":"set","collection":"c","key":"k\#(index)","value":\#(value)"#)
      let read = try #require(try server.value("c", "k\(index)"))
      let sent = try JSONSerialization.jsonObject(with: Data("[\(value)]".utf8))
      #expect(try Self.text([read]) == Self.text(sent), "\(value)")
    }
    #expect(try tool.succeed("type", "c/k9") == "data\n" && tool.succeed("type", "c/k1") == "int\n")
    try server.ok(#""do":"set","collection":"c","key":"t","value":"2026-01-31","type":"date""#)
    #expect(try tool.succeed("type", "c/t") == "date\n")
    try server.ok(#""do":"set","collection":"c","key":"k3","value":6"#)
    #expect(try tool.succeed("type", "c/k3") == "double\n")
    #expect(try server.failure(#""do":"set","collection":"c","key":"t","value":"x","type":"date""#).name == "format")
  }

  @Test("A secret is sent only on request, also text whose setting is declared as one")
  func secrets() throws {
    try tool.succeed("set", "web/password", "hunter2")
    try declare(
      #"[{"name": "password", "collection": "web", "type": "secret"}, {"name": "token", "collection": "web", "type": "secret"}]"#
    )
    let server = try ServedTool(tool)
    try server.ok(#""do":"set","collection":"web","key":"token","value":"hunter3""#)
    #expect(try tool.succeed("type", "web/token") == "secret\n")
    for key in ["password", "token"] {
      let item = try server.ok(#""do":"get","collection":"web","key":"\#(key)""#)
      #expect(item["type"] as? String == "secret" && item["value"] == nil, "\(key)")
    }
    let all = #""do":"snapshot","collections":["web"]"#
    let hidden = try server.ok(all)
    #expect(!"\(hidden)".contains("hunter"))
    let revealed = try server.ok(all + #","reveal":true"#)
    #expect("\(revealed)".contains("hunter2") && "\(revealed)".contains("hunter3"))
    let token = try server.ok(#""do":"get","collection":"web","key":"token","reveal":true"#)
    #expect((token["value"] as? Object)?["$secret"] as? String == "hunter3")
    #expect(try server.failure(#""do":"set","collection":"web","key":"token","value":7"#).name == "format")
  }

  @Test("An environment shows its parent's values, and a compare-and-set there is about its own")
  func environments() throws {
    try tool.succeed("set", "web/port", "80", "--int")
    try tool.succeed("env", "create", "web@dev")
    let server = try ServedTool(tool)
    let place = #""collection":"web","env":"dev","key":"port""#
    let inherited = try server.ok(#""do":"get",\#(place)"#)
    #expect(inherited["origin"] as? String == "parent:web" && inherited["version"] as? Int == 0)
    #expect(inherited["collection"] as? String == "web@dev" && inherited["value"] as? Int == 80)
    #expect(try server.ok(#""do":"update",\#(place),"value":81,"ifVersion":0"#)["conflict"] == nil)
    #expect(try server.value("web", "port") as? Int == 80)
    #expect(try server.value("web@dev", "port") as? Int == 81)
    for request in [#""get""#, #""unset""#, #""set","value":1"#] {
      #expect(try server.failure(#""do":\#(request),"collection":"web","env":"none","key":"port""#).name == "notFound")
    }
    #expect(try server.failure(#""do":"watch","collections":["web"],"env":"none""#).name == "notFound")
  }

  // MARK: - Writing

  @Test("set has the checks of prefs set, and changes nothing if one fails")
  func checks() throws {
    try declare(Self.declarations)
    let server = try ServedTool(tool)
    func refusal(_ key: String, _ value: String, _ more: String = "") throws -> (name: String, message: String) {
      try server.failure(#""do":"set","collection":"web","key":"\#(key)","value":\#(value)\#(more)"#)
    }
    let limit = try refusal("port", "99999")
    #expect(limit.name == "format" && limit.message.contains("65535") && !limit.message.contains("--"))
    #expect(try refusal("port", #""x""#).name == "format" && refusal("since", #""x""#).name == "format")
    let undeclared = try refusal("prot", "1")
    #expect(undeclared.message.contains("port") && undeclared.message.contains(#""undeclared":true"#))
    #expect(try refusal("", "1").name == "usage")
    #expect(try refusal("port", "1", #","expiresIn":"soon""#).name == "usage")
    #expect(try refusal("port", "1", #","expiresAt":"2001-01-01""#).name == "usage")
    #expect(try refusal("port", "1", #","type":"number""#).name == "usage")
    #expect(try refusal("port", #"{"$date":"x"}"#).name == "format")
    #expect(try refusal("port", "1", #","ifVersion":7"#).name == "conflict")
    try server.ok(#""do":"set","collection":"web","key":"prot","value":1,"undeclared":true"#)
    try server.ok(#""do":"set","collection":"web","key":"since","value":"2026-01-31T08:30:00Z""#)
    try server.ok(#""do":"set","collection":"web","key":"ratio","value":5"#)
    #expect(try tool.succeed("type", "web/since") == "date\n" && tool.succeed("type", "web/ratio") == "double\n")
    #expect(try server.value("web", "port") as? Int == 80)
  }

  @Test("An administrator's lock refuses, and what it says is in force at once")
  func locks() throws {
    try tool.succeed("set", "web/port", "8080", "--int")
    let folder = tool.path("managed/web.d")
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    let server = try ServedTool(tool, environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
    #expect(try server.value("web", "port") as? Int == 8080)
    try tool.write("managed/web.d/10.json", #"{"locked": {"port": 80}}"#.utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: folder + "/10.json")
    let locked = try server.ok(#""do":"get","collection":"web","key":"port""#)
    #expect(locked["value"] as? Int == 80 && (locked["origin"] as? String)?.hasSuffix("10.json:1") == true)
    #expect(locked["version"] as? Int ?? 0 > 0)
    #expect(try server.failure(#""do":"set","collection":"web","key":"port","value":81"#).name == "managed")
  }

  @Test("update answers a conflict with the present item, and four clients count exactly with it")
  func counting() async throws {
    let server = try ServedTool(tool)
    #expect(try server.ok(#""do":"update","key":"n","value":0,"ifVersion":0"#)["version"] as? Int ?? 0 > 0)
    let conflict = try server.ok(#""do":"update","key":"n","value":5,"ifVersion":0"#)["conflict"] as? Object
    #expect(conflict?["value"] as? Int == 0 && conflict?["version"] as? Int ?? 0 > 0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 { group.addTask { try Self.count(ServedTool(self.tool), 25) } }
      try await group.waitForAll()
    }
    #expect(try server.value("", "n") as? Int == 100)
  }

  private static func count(_ server: ServedTool, _ times: Int) throws {
    var item = try server.ok(#""do":"get","key":"n""#)
    for _ in 0..<times {
      while true {
        let (value, version) = (try #require(item["value"] as? Int), try #require(item["version"] as? Int))
        let answer = try server.ok(#""do":"update","key":"n","value":\#(value + 1),"ifVersion":\#(version)"#)
        guard let present = answer["conflict"] as? Object else {
          item = ["value": value + 1, "version": try #require(answer["version"])]
          break
        }
        item = present
      }
    }
  }

  @Test("A transaction is carried out whole or not at all, under versions that must hold")
  func transactions() throws {
    let server = try ServedTool(tool)
    let version = try #require(try server.ok(#""do":"set","key":"a","value":1"#)["version"] as? Int)
    let changes = #""changes":[{"set":{"key":"b","value":2}},{"unset":{"key":"a"}}]"#
    let check = #""checks":[{"key":"a","version":\#(version)}]"#
    let wrong = #""checks":[{"key":"a","version":\#(version + 1)}]"#
    #expect(try server.failure(#""do":"transaction",\#(wrong),\#(changes)"#).name == "conflict")
    #expect(try server.value("", "a") as? Int == 1 && server.value("", "b") == nil)
    let items = try server.ok(#""do":"transaction",\#(check),\#(changes)"#)["items"] as? [Object]
    #expect(items?.map { $0["version"] as? Int } == [version + 1, 0])
    let bad = #"[{"set":{"key":"c","value":1}},{"set":{"key":"b","value":1,"ifVersion":1}}]"#
    #expect(try server.failure(#""do":"transaction","changes":\#(bad)"#).name == "conflict")
    #expect(try server.value("", "c") == nil && server.value("", "b") as? Int == 2)
    #expect(try tool.succeed("list") == "b\n")
  }

  @Test("A version counts only in the store that is named with it")
  func storeOfVersion() throws {
    let server = try ServedTool(tool)
    let id = try #require(server.greeting["store"] as? String)
    try server.ok(#""do":"watch","keys":[["","other"]]"#)
    let version = try #require(try server.ok(#""do":"set","key":"n","value":1,"store":"\#(id)""#)["version"] as? Int)
    for suffix in ["", "-wal", "-shm"] { try FileManager.default.removeItem(atPath: tool.store + suffix) }
    try tool.succeed("set", "n", "7", "--int")
    while try server.notice()["replaced"] == nil {}
    let old = #""ifVersion":\#(version),"store":"\#(id)""#
    let answer = try server.ok(#""do":"update","key":"n","value":2,\#(old)"#)
    #expect((answer["conflict"] as? Object)?["value"] as? Int == 7)
    let new = try #require(answer["store"] as? String)
    #expect(try server.ok(#""do":"snapshot","collections":[""]"#)["store"] as? String == new)
    #expect(try tool.succeed("status", "--json").contains(new))
    for request in [
      #""do":"set","key":"n","value":2,\#(old)"#, #""do":"unset","key":"n",\#(old)"#,
      #""do":"transaction","checks":[{"key":"n","version":\#(version),"store":"\#(id)"}],"changes":[{"unset":{"key":"n"}}]"#,
    ] { #expect(try server.failure(request).name == "conflict") }
    #expect(try server.value("", "n") as? Int == 7)
    try server.ok(#""do":"update","key":"n","value":8,"ifVersion":\#(version),"store":"\#(new)""#)
  }

  @Test("In a transaction, undeclared permits the name beside it alone, and a version has its place")
  func elements() throws {
    try declare(Self.declarations)
    let server = try ServedTool(tool)
    let (free, wrong) = (
      #"{"set":{"collection":"web","key":"new","value":1,"undeclared":true}}"#,
      #"{"set":{"collection":"web","key":"prot","value":1}}"#
    )
    let refusal = try server.failure(#""do":"transaction","changes":[\#(free),\#(wrong)]"#)
    #expect(refusal.message.contains("prot") && refusal.message.contains(#""undeclared":true"#))
    try server.ok(#""do":"transaction","changes":[\#(free)]"#)
    let beside = #"{"set":{"collection":"web","key":"port","value":1},"ifVersion":77}"#
    #expect(try server.failure(#""do":"transaction","changes":[\#(beside)]"#).name == "usage")
    #expect(try tool.succeed("list", "web", "--plain").contains("new"))
  }

  @Test("A value that JSON cannot express is there, with its type and the reason")
  func inexpressible() throws {
    let server = try ServedTool(tool)
    // Each level of it takes two of JSON.
    let value = String(repeating: #"{"$dict":"#, count: 196) + "1" + String(repeating: "}", count: 196)
    try server.ok(#""do":"set","key":"deep","value":\#(value)"#)
    let item = try server.ok(#""do":"get","key":"deep""#)
    #expect(item["type"] as? String == "dict" && item["value"] == nil && item["problem"] != nil)
  }

  @Test("unset removes a key, and is no error where there is none")
  func unsetting() throws {
    try tool.succeed("set", "a", "1")
    let server = try ServedTool(tool)
    #expect(try server.failure(#""do":"unset","key":"a","ifVersion":77"#).name == "conflict")
    for _ in 0..<2 { #expect(try server.ok(#""do":"unset","key":"a""#)["version"] as? Int == 0) }
    #expect(try tool.run("get", "a").code == 3)
  }

  @Test("With --app, its collection is the default, and the actor is in the log")
  func options() throws {
    let server = try ServedTool(tool, "--app", "org.example.shop", "--actor", "shop")
    try server.ok(#""do":"set","key":"theme","value":"dark""#)
    #expect(try tool.succeed("get", "theme", "--app", "org.example.shop") == "dark\n")
    #expect(try tool.succeed("log", "--json", "--app", "org.example.shop").contains(#""actor":"shop""#))
  }
}
