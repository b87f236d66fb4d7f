import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("A program and prefs") struct AcrossToolsTests {
  private let store: TemporaryStore

  init() throws {
    store = try TemporaryStore()
    try store.open().close()
  }

  private func prefs(_ arguments: String...) throws -> Child {
    try Child.run(
      Child.products.appendingPathComponent("prefs").path,
      arguments.prefix(1) + ["--store", store.path, "--key-file", store.keyFile, "--no-input"] + arguments.dropFirst())
  }

  @Test("show each other every type: prefs gets what a program set through a proxy")
  func programToTool() throws {
    #expect(try store.worker("set-samples").status == 0)
    let expected: [(key: String, type: String, text: String)] = [
      ("string", "string", "dark"), ("string.empty", "string", ""), ("string.unicode", "string", "caf\u{65}\u{301} 🗝"),
      ("int", "int", "42"), ("int.min", "int", "-9223372036854775808"), ("int.max", "int", "9223372036854775807"),
      ("uint64.max", "int", "18446744073709551615"), ("int8", "int", "-128"), ("bool.true", "bool", "true"),
      ("bool.false", "bool", "false"), ("double", "double", "12.34"), ("double.whole", "double", "1.0"),
      ("double.nan", "double", "nan"), ("double.infinity", "double", "inf"),
      ("double.negativeInfinity", "double", "-inf"), ("double.negativeZero", "double", "-0.0"),
      ("double.least", "double", "5e-324"), ("float", "double", "0.10000000149011612"),
      ("date", "date", "2026-09-29T03:34:38.901Z"), ("url", "url", "https://example.org/a?b=c#d"),
      ("url.file", "url", "file:///tmp/x%20y"), ("uuid", "uuid", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"),
      ("array.strings", "array", #"["b","a",""]"#), ("array.empty", "array", "[]"),
      ("array.nested", "array", "[[1,2],[]]"), ("array.optional", "array", "[1,null,3]"),
      ("dict.ints", "dict", #"{"one":1,"two":2}"#), ("codable.enum", "string", "dark"),
    ]
    for (key, type, text) in expected {
      let value = try prefs("get", "samples/\(key)")
      #expect(value.status == 0, "\(key)")
      #expect(value.text == text + "\n", "\(key)")
      #expect(try prefs("type", "samples/\(key)").text == type + "\n", "\(key)")
    }
    #expect(try prefs("get", "samples/data").output == Data([0, 1, 2, 255]))
    #expect(try prefs("get", "samples/data.empty").output.isEmpty)
    #expect(try prefs("get", "samples/string.nul").output == Data("a\0b\n".utf8))
    #expect(try prefs("type", "samples/codable").text == "json\n")
    #expect(try prefs("get", "samples/codable").text.contains(#""host":"h""#))
  }

  @Test("share the lock: prefs reports with exit code 10 that a program holds it, and still reads")
  func busy() throws {
    let process = try store.startWorker("hold-write-lock")
    #expect(process.readLine() == "locked")
    #expect(try prefs("set", "k", "v", "--timeout", "0.1").status == 10)
    #expect(try prefs("get", "k").status == 3)
    process.kill()
    #expect(try prefs("set", "k", "v", "--timeout", "5").status == 0)
  }

  @Test("refuse what they do not understand, each with its own exit code, and change nothing")
  func refusals() throws {
    let original = try store.bytes()
    /// Both copies of the envelope, edited and with checksums that are right.
    func edit(_ edit: (inout Data) -> Void) throws {
      var bytes = original
      for start in [0, Layout.envelopeCopyByteCount] {
        let end = start + Layout.envelopeCopyByteCount
        var copy = bytes.subdata(in: start..<end)
        edit(&copy)
        bytes.replaceSubrange(start..<end, with: try Envelope.checksummed(copy))
      }
      try bytes.write(to: URL(fileURLWithPath: store.path))
    }
    func expectRefusal(_ status: Int32, sourceLocation: SourceLocation = #_sourceLocation) throws {
      let before = try store.bytes()
      #expect(try prefs("get", "k").status == status, sourceLocation: sourceLocation)
      #expect(try prefs("set", "k", "v").status == status, sourceLocation: sourceLocation)
      #expect(try store.bytes() == before, sourceLocation: sourceLocation)
    }
    try edit { $0[9] = 2 }
    try expectRefusal(12)
    // A flag that this version does not know, and a store id that the MAC does not cover any more.
    try edit { $0[15] = 2 }
    try expectRefusal(12)
    try edit { $0[45] ^= 1 }
    try expectRefusal(7)
    try Data(original.prefix(100)).write(to: URL(fileURLWithPath: store.path))
    try expectRefusal(7)
    try Data().write(to: URL(fileURLWithPath: store.path))
    try expectRefusal(8)
  }

  @Test("show each other every type: a program gets what prefs set")
  func toolToProgram() throws {
    func set(_ arguments: String...) throws {
      let child = try Child.run(
        Child.products.appendingPathComponent("prefs").path,
        ["set", "--store", store.path, "--key-file", store.keyFile, "-c", "t"] + arguments)
      #expect(child.status == 0, "\(arguments)")
    }
    try set("string", "dark")
    try set("int", "--int", "-7")
    try set("big", "--type", "int", "18446744073709551615")
    try set("double", "--double", "1")
    try set("nan", "--double", "nan")
    try set("bool", "--bool", "yes")
    try set("date", "--type", "date", "2026-01-31T08:30:00.250Z")
    try set("url", "--type", "url", "https://example.org/x")
    try set("data", "--type", "data", "AAEC/w==")
    try set("array", "--type", "array", #"["a","b"]"#)
    try set("dict", #"{"host":"h","port":1}"#)
    struct Server: Codable, Equatable {
      var host: String
      var port: Int
    }
    let proxy = try ConnectionProxy(database: store.open())
    func get<T: Decodable>(_ key: String, as type: T.Type = T.self) throws -> T? {
      try proxy.object(forKey: key, inCollection: "t")
    }
    #expect(try get("string") == "dark")
    #expect(try get("int") == -7)
    #expect(try get("big") == UInt64.max)
    #expect(try get("double") == 1.0)
    #expect(try get("nan", as: Double.self)?.isNaN == true)
    #expect(try get("bool") == true)
    #expect(try get("date") == Date(timeIntervalSince1970: 1_769_848_200.25))
    #expect(try get("url") == URL(string: "https://example.org/x"))
    #expect(try get("data") == Data([0, 1, 2, 255]))
    #expect(try get("array") == ["a", "b"])
    #expect(try get("dict") == Server(host: "h", port: 1))
  }
}
