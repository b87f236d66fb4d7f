import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Watching") struct WatchTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    // The second commit; making the store was the first.
    try tool.succeed("set", "a/one", "1")
  }

  @Test("prints commits of other processes, one line per key, with values on request")
  func lines() throws {
    let watch = try Watch(tool, "--values")
    try tool.succeed("set", "a/one", "2")
    try tool.succeed("set", "-c", "", "x/y", "--int", "3")
    try tool.succeed("set", "b/token", "--secret", "-", input: "hunter2")
    try tool.succeed("unset", "a/one")
    let lines = try watch.output.lines(4).map(Watch.numbered)
    #expect(lines[1...] == ["4  inserted  /x/y  3", "5  inserted  b/token  <secret: 7 bytes>", "6  removed  a/one"])
    // By then it may have been removed.
    #expect(lines[0].hasPrefix("3  updated  a/one"))
    #expect(try watch.end() == [])
  }

  /// A line of JSON without the position, the time, and who made the commit.
  private static func withoutAuthor(_ line: String) -> String {
    line.replacing(
      /,"time":"[-0-9T:.Z]+","author":{"program":"prefs","user":"[^"]+","host":"[^"]*","actor":null}/, with: ""
    )
    .replacing(/,"position":"[0-9]+-[0-9a-f]{8}"/, with: "")
  }

  /// The position of a commit.
  private func position(of number: Int) throws -> String {
    let log = try tool.succeed("log", "--json")
    let commits = try #require(try JSONSerialization.jsonObject(with: Data(log.utf8)) as? [[String: Any]])
    return try #require(commits.first { $0["sequence"] as? Int == number }?["position"] as? String)
  }

  @Test("prints one JSON object per line, or fields")
  func forms() throws {
    try tool.succeed("rename", "a/one", "b/t\two")
    try tool.succeed("unset", "--all", "-f", "-c", "b")
    let json = try Watch(tool, "--since", "0", "--json")
    #expect(
      try json.output.lines(4).map(Self.withoutAuthor) == [
        #"{"sequence":2,"change":"inserted","collection":"a","key":"one"}"#,
        #"{"sequence":3,"change":"removed","collection":"a","key":"one"}"#,
        #"{"sequence":3,"change":"inserted","collection":"b","key":"t\two"}"#,
        #"{"sequence":4,"change":"cleared","collection":"b"}"#,
      ])
    try tool.succeed("set", "c/x", "y")
    try tool.succeed("unset", "--all", "-f", "-c", "c")
    #expect(try Self.withoutAuthor(json.output.lines(2)[1]) == #"{"sequence":6,"change":"cleared","collection":"c"}"#)
    #expect(try json.end() == [])
    let plain = try Watch(tool, "--since", "0", "--plain", "--values")
    #expect(try plain.output.next() == (try position(of: 2)) + "\tinserted\ta\tone")
    _ = try plain.end()
    let revealing = try Watch(tool, "--values", "--reveal", "--json")
    try tool.succeed("set", "b/token", "--secret", "-", input: "hunter2")
    #expect(try #require(try revealing.output.next()).contains(#""type":"secret","value":"hunter2","time":"#))
    _ = try revealing.end()
  }

  @Test("prints one collection or one key on request")
  func filters() throws {
    for key in ["a/two", "b/one", "one"] { try tool.succeed("set", key, "x") }
    let expected: [([String], [String])] = [
      (["a"], ["2  inserted  a/one", "3  inserted  a/two"]), (["a/one"], ["2  inserted  a/one"]),
      (["-c", "a", "two"], ["3  inserted  a/two"]), ([""], ["5  inserted  one"]), (["/one"], ["5  inserted  one"]),
      (["-c", "b"], ["4  inserted  b/one"]), (["none"], []),
    ]
    for (arguments, lines) in expected {
      // The file has everything before the command says that it watches.
      let watch = try Watch(tool, "--since", "0", arguments: arguments)
      #expect(try watch.end().map(Watch.numbered) == lines, "\(arguments)")
    }
  }

  @Test("says that everything may have changed if the store does not know, or has only a number to go by")
  func unknown() throws {
    let known = try position(of: 2)
    for since in ["99999", "2", "1", "2-00000000", "3" + known.dropFirst()] {
      let watch = try Watch(tool, "--since", since, "--json")
      #expect(
        try watch.end() == [#"{"sequence":2,"position":"\#(known)","change":"everything"}"#], "\(since)")
    }
    #expect(try Watch(tool, "--since", known).end() == [])
  }

  @Test("continues after a restore with everything, from a position that is not in the restored history")
  func restored() throws {
    try tool.succeed("backup", tool.path("backup.coffer"))
    let common = try position(of: 2)
    for value in ["2", "3", "4", "5", "6"] { try tool.succeed("set", "a/gone", value) }
    let last = try position(of: 7)
    try tool.succeed("restore-store", tool.path("backup.coffer"))
    // Until there are more commits than the replaced store had.
    for value in ["2", "3", "4", "5", "6"] { try tool.succeed("set", "a/new", value) }
    #expect(try #require(Int(Self.number(position(of: 9)))) == 9)
    let other = try Watch(tool, "--since", last)
    try tool.succeed("set", "a/one", "after")
    #expect(try other.output.lines(2).map(Watch.numbered) == ["9  everything", "10  updated  a/one"])
    #expect(try other.end() == [])
    // The histories part after this one.
    let lines = try Watch(tool, "--since", common).end().map(Watch.numbered)
    let updates = (6...9).map { "\($0)  updated  a/new" }
    #expect(Array(lines.dropFirst()) == ["5  inserted  a/new"] + updates + ["10  updated  a/one"])
    #expect(lines.first?.hasPrefix("4  store restored") == true)
  }

  private static func number(_ line: String) -> String { String(line.prefix { $0 != "-" && $0 != " " }) }

  @Test("continues from a position without gaps or repetitions, while others write")
  func since() throws {
    let count = 12
    let writer = Thread { [tool] in
      for index in 0..<count { _ = try? tool.run("set", "b/\(index)", "x") }
    }
    writer.start()
    let first = try Watch(tool, "--since", "0")
    let lines = try first.output.lines(count + 1)
    #expect(lines.map(Self.sequence) == Array(2...count + 2))
    #expect(try first.end() == [])
    // From the middle, and on.
    let second = try Watch(tool, "--since", String(lines[4].prefix { $0 != " " }))
    try tool.succeed("set", "b/last", "x")
    #expect(try second.output.lines(count - 3).map(Self.sequence) == Array(7...count + 3))
    #expect(try second.end() == [])
  }

  private static func sequence(_ line: String) -> Int { Int(number(line)) ?? -1 }

  @Test("ends by a signal, and quietly when its output is closed", arguments: [SIGINT, SIGTERM, 0])
  func ends(_ signal: Int32) throws {
    let watch = try Watch(tool)
    if signal == 0 { watch.output.close() } else { watch.send(signal) }
    #expect(try watch.exitCode() == 128 + (signal == 0 ? SIGPIPE : signal))
    #expect(try tool.succeed("get", "a/one") == "1\n")
  }

  @Test("keeps the store from being destroyed")
  func inUse() throws {
    let watch = try Watch(tool)
    let refusal = try tool.run("destroy", "--confirm", "settings.coffer")
    #expect(refusal.code == 10 && refusal.message.contains("open. End them; nothing was removed"))
    #expect(try tool.succeed("get", "a/one") == "1\n")
    _ = try watch.end()
    // What it left behind, having had no time to close.
    try tool.succeed("destroy", "--confirm", "settings.coffer")
    #expect(!tool.exists(tool.store + "-shm") && !tool.exists(tool.store + "-wal"))
  }

  @Test("refuses wrong usage, and needs a store")
  func usage() throws {
    for arguments in [
      ["--since", "-1"], ["--since", "x"], ["--since", "2-"], ["--since", "2-0000000G"], ["--json", "--plain"],
      ["--reveal"], ["a", "b"],
    ] {
      #expect(try tool.run(["watch"] + arguments, input: []).code == 2, "\(arguments)")
    }
    #expect(try Tool().run("watch").code == 4)
  }

  private static let rounds = ProcessInfo.processInfo.environment["COFFER_SOAK"] == nil ? 4 : 200

  @Test("misses nothing of 8 processes that set and count concurrently, 4 times (200 with COFFER_SOAK)")
  func crowd() throws {
    let writers = 8
    let watch = try Watch(tool, "--since", try position(of: 2))
    let failures = Failures()
    // Each writes a key of its own, adds to one list and counts with the others.
    DispatchQueue.concurrentPerform(iterations: writers) { writer in
      for round in 0..<Self.rounds {
        for arguments in [
          ["set", "w\(writer)/\(round)", "x"], ["increment", "shared/count"], ["append", "shared/list", "\(writer)"],
        ] {
          do {
            let run = try tool.run(arguments + ["--timeout", "600"], input: [])
            if run.code != 0 { failures.add(run.message) }
          } catch {
            failures.add("\(error)")
          }
        }
      }
    }
    #expect(failures.all == [])
    let writes = writers * Self.rounds
    let lines = try watch.output.lines(3 * writes)
    #expect(try watch.end() == [])
    #expect(lines.map(Self.sequence) == Array(3..<3 + lines.count))
    let keys = lines.map { $0.split(separator: " ").last.map(String.init) ?? "" }
    for writer in 0..<writers {
      #expect(keys.filter { $0.hasPrefix("w\(writer)/") } == (0..<Self.rounds).map { "w\(writer)/\($0)" })
    }
    #expect(keys.count { $0 == "shared/count" } == writes && keys.count { $0 == "shared/list" } == writes)
    #expect(try tool.succeed("get", "shared/count") == "\(writes)\n")
    let list = try JSONDecoder().decode([String].self, from: Data(tool.succeed("get", "shared/list").utf8))
    #expect(list.sorted() == (0..<writes).map { "\($0 / Self.rounds)" })
  }
}

/// What went wrong in several threads.
private final class Failures: @unchecked Sendable {
  // Unchecked: the lock protects the list.
  private let lock = NSLock()
  private var list: [String] = []

  var all: [String] { lock.withLock { list } }

  func add(_ text: String) { lock.withLock { list.append(text) } }
}
