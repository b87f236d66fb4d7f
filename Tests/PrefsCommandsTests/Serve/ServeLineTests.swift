import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("The lines of prefs serve, and its end") struct ServeLineTests {
  private typealias Object = ServedTool.Object

  private let tool: Tool

  init() throws { tool = try Tool() }

  private static let badLines = [
    "", "x", "[]", "{}", #"{"do":"get","key":"a"}"#, #"{"id":null,"do":"get","key":"a"}"#,
    #"{"id":1.5,"do":"get","key":"a"}"#,
    #"{"id":1,"do":"get","key":"a""#, #"{"id":1,"id":2}"#, "{\"id\":1,\"do\":\"get\",\"key\":\"\0\"}",
    #"{"id":99999999999999999999}"#,
    String(repeating: "[", count: 100_000), "{\"id\":1,\"do\":\"\\ud800\"}",
  ]

  @Test(
    "A line that is not a request is answered without an ID, and the next one as usual", arguments: badLines.indices)
  func badLine(index: Int) throws {
    let server = try ServedTool(tool)
    try server.write((Self.badLines[index] + "\n").utf8)
    let answer = try server.line()
    #expect(answer["id"] is NSNull && (answer["error"] as? Object)?["error"] as? String == "usage", "\(answer)")
    #expect(try server.ok(#""do":"get","key":"a""#)["version"] as? Int == 0)
  }

  @Test("Invalid UTF-8 is no request; unknown names, IDs of both kinds and members are as specified")
  func otherLines() throws {
    let server = try ServedTool(tool)
    try server.write([0x7b, 0x22, 0xff, 0x22, 0x7d, 0x0a])
    #expect(try server.line()["id"] is NSNull)
    for (id, request) in [("7", "dance"), (#""a\n""#, ""), ("-1", "get"), ("0", #"watch","since":"1-1"#)] {
      try server.write(#"{"id":\#(id),"do":"\#(request)","unknown":[1]}"#.utf8)
      try server.write("\r\n".utf8)
      let answer = try server.line()
      #expect((answer["error"] as? Object)?["error"] as? String == "usage" && !(answer["id"] is NSNull), "\(answer)")
    }
    try server.write(#"{"id":"n","do":"set","key":"a","value":null}"#.utf8)
    try server.write("\n".utf8)
    let refusal = try server.line()
    #expect((refusal["error"] as? Object)?["error"] as? String == "format")
    try server.write(#"{"id":"\u00e9","do":"get","key":"a","unknown":{}}"#.utf8)
    try server.write("\n".utf8)
    #expect(try server.line()["id"] as? String == "é")
  }

  @Test(
    "A version that is null, a change that is two, and a flag that is no truth value change nothing",
    arguments: [
      #""set","key":"a","value":2,"ifVersion":null"#, #""update","key":"a","value":2,"ifVersion":null"#,
      #""unset","key":"a","ifVersion":null"#, #""unset","key":"a","store":null"#,
      #""transaction","changes":[{"set":{"key":"a","value":2}}],"checks":[{"key":"a","version":null}]"#,
      #""transaction","changes":[{"set":{"key":"a","value":2},"unset":{"key":"b"}}]"#,
      #""set","key":"a","value":2,"undeclared":1"#, #""get","key":"a","reveal":"yes""#,
    ])
  func malformed(request: String) throws {
    let server = try ServedTool(tool)
    try server.ok(#""do":"set","key":"a","value":1"#)
    try server.write(#"{"id":"x","do":\#(request)}"#.utf8)
    try server.write("\n".utf8)
    #expect((try server.line()["error"] as? Object)?["error"] as? String == "usage")
    #expect(try server.value("", "a") as? Int == 1)
  }

  @Test("A value of 10 MB passes in both directions, and a line beyond the limit ends the connection")
  func longLines() throws {
    let server = try ServedTool(tool)
    let text = String(repeating: "0123456789", count: 1_000_000)
    try server.ok(#""do":"watch","values":true"#)
    // The answer and the notice are read before the server has to wait.
    try server.write(#"{"id":"long","do":"set","key":"a","value":"\#(text)"}"#.utf8)
    try server.write("\n".utf8)
    let change = try #require(try (server.line()["changes"] as? [Object])?.first?["item"] as? Object)
    #expect(change["value"] as? String == text)
    #expect(try server.line()["ok"] != nil)
    #expect(try server.value("", "a") as? String == text)
    let limit = try #require(server.greeting["maximum"] as? Int)
    try server.write([UInt8](repeating: 0x20, count: limit + 1))
    let answer = try server.line()
    #expect(answer["id"] is NSNull && (answer["error"] as? Object)?["error"] as? String == "usage")
    #expect(try server.nextLine() == nil)
    #expect(try server.exitCode() == 0)
  }

  #if os(Linux)
    @Test("Output that cannot be written is an error, and no request is carried out")
    func unwrittenOutput() throws {
      try tool.succeed("set", "a", "1")
      let request = try tool.write("request", #"{"id":1,"do":"set","key":"a","value":"2"}\#n"#.utf8)
      let messages = tool.path("messages")
      let child = try tool.spawn(
        ["serve"], files: [(0, request, O_RDONLY), (1, "/dev/full", O_WRONLY), (2, messages, O_WRONLY | O_CREAT)])
      #expect(try Tool.exitCode(of: child) == 14)
      #expect(try String(decoding: tool.contents(messages), as: UTF8.self).contains("No space left on device"))
      #expect(try tool.succeed("get", "a") == "1\n")
    }
  #endif

  @Test("Requests sent without waiting are answered in order, all before the end of the input")
  func pipelined() throws {
    let lines = (0..<500).map { #"{"id":\#($0),"do":"set","key":"k\#($0 % 7)","value":\#($0)}"# }
    let run = try tool.run(["serve"], input: (lines.joined(separator: "\n") + "\n" + #"{"id":500,"do":"get""#).utf8)
    #expect(run.code == 0)
    let answers = run.text.split(separator: "\n").dropFirst()
    #expect(answers.count == 500 && answers.last?.hasPrefix(#"{"id":499,"ok":"#) == true)
    #expect(try tool.succeed("get", "k2") == "499\n")
  }

  @Test("An acknowledged change is on the disk when the server is killed")
  func killed() throws {
    let server = try ServedTool(tool)
    for number in 0..<20 { try server.ok(#""do":"set","key":"a","value":\#(number)"#) }
    kill(server.child, SIGKILL)
    #expect(try tool.succeed("get", "a") == "19\n")
  }

  #if os(Linux)
    @Test("The server ends with its parent, though another process keeps its input open")
    func parent() throws {
      // The shell is the parent; the test holds the input open.
      let server = try ServedTool(tool, by: #"exec 3<&0; "$@" <&3 3<&- & wait"#)
      #expect(try server.ok(#""do":"get","key":"a""#)["version"] as? Int == 0)
      kill(server.child, SIGKILL)
      #expect(try server.nextLine() == nil)
    }
  #endif

  @Test("A client that closes its output ends the server")
  func closedOutput() throws {
    let child = try Child.run(
      "/bin/sh",
      [
        "-c", #"while echo '{"id":1,"do":"get","key":"a"}'; do :; done 2>/dev/null | "$@" | head -n 1; echo ended"#,
        "sh",
        Tool.executable, "serve",
      ], environment: ["HOME": tool.home.path, "PATH": "/usr/bin:/bin"])
    #expect(child.text.hasPrefix(#"{"serve":1,"#) && child.text.hasSuffix("ended\n"))
  }

  @Test("Mutated requests get one answer each, and the store stays sound")
  func fuzz() throws {
    let seeds = [
      #"{"id":1,"do":"set","collection":"c","key":"a","value":{"$date":"2026-01-31T08:30:00Z"},"ifVersion":0}"#,
      #"{"id":2,"do":"transaction","checks":[{"key":"a","version":3}],"changes":[{"set":{"key":"b","value":[1,"x"]}},{"unset":{"key":"a"}}]}"#,
      #"{"id":3,"do":"watch","collections":["c"],"keys":[["c","a"]],"since":"3-00000000","values":true,"reveal":true}"#,
      #"{"id":4,"do":"snapshot","collections":["c","d@e"],"env":"dev"}"#,
      #"{"id":5,"do":"update","key":"a","value":"x","ifVersion":-1,"expiresIn":"2h","due":"90d","type":"array<secret>"}"#,
      #"{"id":6,"do":"list","collection":"","prefix":"a","values":true}"#, #"{"id":7,"do":"unwatch","watch":1}"#,
      #"{"id":8,"do":"watch","collections":["c","d@e"],"snapshots":true,"reveal":true}"#,
      #"{"id":9,"do":"describe","collection":"c","key":"a"}"#, #"{"id":10,"do":"unset","key":"a","env":"x"}"#,
    ]
    var generator = SplitMix64(state: 52)
    let server = try ServedTool(tool)
    for round in 0..<400 {
      var line = Array(try #require(seeds.randomElement(using: &generator)).utf8)
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let place = Int.random(in: 0..<line.count, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: line[place] = UInt8.random(in: 0...255, using: &generator)
        case 1: line.remove(at: place)
        case 2: line.insert(contentsOf: #"{}[]"0\,"#.utf8.shuffled(using: &generator).prefix(2), at: place)
        default: line.insert(contentsOf: line[place...].prefix(20), at: place)
        }
        if line.isEmpty { line = [0x20] }
      }
      line = line.map { $0 == 0x0a ? 0x20 : $0 }
      try server.write(line + [0x0a])
      try server.write("{\"id\":\"\(round)\",\"do\":\"get\",\"key\":\"a\"}\n".utf8)
      var answers: [Object] = []
      while answers.count < 2 {
        let object = try server.line()
        if object["watch"] == nil || object["id"] != nil { answers.append(object) }
      }
      #expect(answers[1]["id"] as? String == "\(round)", "\(String(decoding: line, as: UTF8.self))")
    }
    #expect(try server.end() == 0)
    #expect(try tool.run("doctor").code == 0)
  }
}
