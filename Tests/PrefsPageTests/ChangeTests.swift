import Coffer
import Foundation
import Testing

@testable import PrefsPage

/// Calls by hand: lists, changes, conflicts, undo.
@Suite("Changes by the settings page", .serialized) struct ChangeTests {
  private func page(readOnly: Bool = false, collections: [String] = []) async throws -> ServedPage {
    try await ServedPage(readOnly: readOnly, collections: collections) { transaction in
      try transaction.setObject("dark", forKey: "theme", inCollection: "editor")
      try transaction.setObject(14, forKey: "size", inCollection: "editor")
      try transaction.setObject(Value.secret(Secret("hunter2")), forKey: "password", inCollection: "web")
    }
  }

  private func names(_ answer: RawAnswer) -> [String] {
    (answer.object["rows"] as? [[String: Any]] ?? []).map { "\($0["collection"] ?? "")/\($0["key"] ?? "")" }
  }

  private func version(_ page: ServedPage, _ key: String, _ collection: String) throws -> Int64 {
    try page.database.makeConnection().read { try $0.version(forKey: key, inCollection: collection) }
  }

  private func change(_ key: String, _ collection: String, _ version: Int64, _ rest: String) -> String {
    "{\"collection\":\"\(collection)\",\"key\":\"\(key)\",\"store\":0,\"version\":\(version),\(rest)}"
  }

  private func text(_ page: ServedPage, _ key: String, _ collection: String) throws -> String? {
    try page.database.makeConnection().read {
      try $0.value(forKey: key, inCollection: collection).map(ValueText.text)
    }
  }

  @Test("The list is sorted, and a search covers names and text, ignoring case")
  func list() async throws {
    let page = try await page()
    let session = try await page.session()
    #expect(names(try await page.call("list", session: session)) == ["editor/size", "editor/theme", "web/password"])
    #expect(names(try await page.call("list", #"{"search":"DARK"}"#, session: session)) == ["editor/theme"])
    #expect(names(try await page.call("list", #"{"search":"siz edit"}"#, session: session)) == ["editor/size"])
    #expect(names(try await page.call("list", #"{"search":"hunter"}"#, session: session)) == [])
    #expect(names(try await page.call("list", #"{"offset":1,"limit":1}"#, session: session)) == ["editor/theme"])
    #expect(names(try await page.call("list", #"{"collection":"web"}"#, session: session)) == ["web/password"])
    try await page.close()
  }

  @Test("A save with two values for the two names of one setting is refused, with both names")
  func twoNames() async throws {
    let page = try await page()
    try await page.database.makeConnection().readWrite { transaction in
      let old = Declaration("width", in: "editor", type: .int)
      try transaction.declare([old], by: "editor", version: "1")
      let new = try Declaration(
        json: """
          {"name":"wide","collection":"editor","type":"int","formerly":[{"name":"width","collection":"editor"}]}
          """)
      try transaction.declare([new], by: "editor", version: "2")
    }
    let session = try await page.session()
    func save(_ first: String, _ second: String) async throws -> RawAnswer {
      let width = change("width", "editor", 0, "\"text\":\"\(first)\",\"type\":\"int\"")
      let wide = change("wide", "editor", 0, "\"text\":\"\(second)\",\"type\":\"int\"")
      return try await page.call("change", "{\"changes\":[\(width),\(wide)]}", session: session)
    }
    let refused = try await save("1", "2")
    #expect(refused.body.contains("editor/width and editor/wide are names of one setting"), "\(refused.body)")
    #expect(try text(page, "width", "editor") == nil)
    _ = try await save("3", "3")
    #expect(try text(page, "wide", "editor") == "3")
    try await page.close()
  }

  @Test("No answer except to a reveal contains a secret")
  func secrets() async throws {
    let page = try await page()
    let session = try await page.session()
    let name = #"{"collection":"web","key":"password"}"#
    for call in ["list", "export"] { #expect(try await !page.call(call, session: session).body.contains("hunter2")) }
    for call in ["setting", "history"] {
      #expect(try await !page.call(call, name, session: session).body.contains("hunter2"))
    }
    #expect(try await page.call("reveal", name, session: session).object["text"] as? String == "hunter2")
    try await page.close()
  }

  @Test("No answer except to a reveal contains text under a former name of a declared secret")
  func formerSecrets() async throws {
    let page = try await ServedPage { transaction in
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: "web")
      for text in ["hunter2o", "hunter2p"] { try transaction.setObject(text, forKey: "old", inCollection: "web") }
      var declaration = Declaration("token", in: "web", type: .secret)
      declaration.formerNames = [Declaration.FormerName(place: SettingPlace("old", in: "web"))]
      try transaction.declare([declaration], by: "web")
    }
    try await page.database.makeConnection().readWrite {
      try $0.setObject("hunter2q", forKey: "old", inCollection: "web")
    }
    let session = try await page.session()
    let name = #"{"collection":"web","key":"old"}"#
    for call in ["list", "export"] { #expect(try await !page.call(call, session: session).body.contains("hunter2")) }
    #expect(names(try await page.call("list", #"{"search":"hunter"}"#, session: session)) == [])
    for call in ["setting", "history"] {
      let answer = try await page.call(call, name, session: session)
      #expect(answer.status == 200 && !answer.body.contains("hunter2"))
    }
    #expect(try await page.call("reveal", name, session: session).object["text"] as? String == "hunter2q")
    try await page.close()
  }

  @Test("Several changes are made atomically, or none if one is refused")
  func together() async throws {
    let page = try await page()
    let session = try await page.session()
    let theme = change("theme", "editor", try version(page, "theme", "editor"), #""type":"string","text":"light""#)
    let size = change("size", "editor", try version(page, "size", "editor"), #""type":"int","text":"fourteen""#)
    let refused = try await page.call("change", "{\"changes\":[\(theme),\(size)]}", session: session)
    #expect(refused.status == 422)
    #expect(refused.object["error"] as? String == "format")
    #expect(try text(page, "theme", "editor") == "dark")
    let right = change("size", "editor", try version(page, "size", "editor"), #""type":"int","text":"18""#)
    #expect(try await page.call("change", "{\"changes\":[\(theme),\(right)]}", session: session).status == 200)
    #expect(try text(page, "theme", "editor") == "light")
    #expect(try text(page, "size", "editor") == "18")
    try await page.close()
  }

  @Test("A change is refused after a concurrent one, with the current value")
  func conflict() async throws {
    let page = try await page()
    let session = try await page.session()
    let seen = try version(page, "theme", "editor")
    try await page.database.makeConnection().readWrite {
      try $0.setObject("blue", forKey: "theme", inCollection: "editor")
    }
    let size = change("size", "editor", try version(page, "size", "editor"), #""type":"int","text":"18""#)
    let theme = change("theme", "editor", seen, #""type":"string","text":"light""#)
    let answer = try await page.call("change", "{\"changes\":[\(size),\(theme)]}", session: session)
    #expect(answer.status == 409)
    let settings = try #require(answer.object["settings"] as? [[String: Any]])
    #expect(settings.map { $0["value"] as? String } == ["blue"])
    #expect(try text(page, "theme", "editor") == "blue")
    #expect(try text(page, "size", "editor") == "14")
    try await page.close()
  }

  @Test("Undo restores what a save replaced or removed, secrets too, unless it has changed since")
  func undo() async throws {
    let page = try await page()
    let session = try await page.session()
    let secret = change("password", "web", try version(page, "password", "web"), #""type":"secret","text":"other""#)
    let removal = change("theme", "editor", try version(page, "theme", "editor"), #""remove":true"#)
    let answer = try await page.call("change", "{\"changes\":[\(secret),\(removal)]}", session: session)
    let number = try #require(answer.object["undo"] as? Int)
    #expect(try text(page, "theme", "editor") == nil)
    #expect(try await page.call("undo", "{\"undo\":\(number)}", session: session).status == 200)
    #expect(try text(page, "theme", "editor") == "dark")
    let reveal = try await page.call("reveal", #"{"collection":"web","key":"password"}"#, session: session)
    #expect(reveal.object["text"] as? String == "hunter2")
    #expect(try await page.call("undo", "{\"undo\":\(number)}", session: session).status == 422)

    let again = change("theme", "editor", try version(page, "theme", "editor"), #""type":"string","text":"light""#)
    let second = try await page.call("change", "{\"changes\":[\(again)]}", session: session)
    try await page.database.makeConnection().readWrite {
      try $0.setObject("blue", forKey: "theme", inCollection: "editor")
    }
    let late = try #require(second.object["undo"] as? Int)
    #expect(try await page.call("undo", "{\"undo\":\(late)}", session: session).status == 409)
    #expect(try text(page, "theme", "editor") == "blue")
    try await page.close()
  }

  @Test("Saves of one setting are undone one by one, and an undo can be undone")
  func undoInTurn() async throws {
    let page = try await page()
    let session = try await page.session()
    var numbers: [Int] = []
    for value in ["one", "two", "three"] {
      let theme = change(
        "theme", "editor", try version(page, "theme", "editor"), "\"type\":\"string\",\"text\":\"\(value)\"")
      let answer = try await page.call("change", "{\"changes\":[\(theme)]}", session: session)
      numbers.append(try #require(answer.object["undo"] as? Int))
    }
    var redo = 0
    for (number, value) in zip(numbers.reversed(), ["two", "one", "dark"]) {
      let answer = try await page.call("undo", "{\"undo\":\(number)}", session: session)
      redo = try #require(answer.object["undo"] as? Int)
      #expect(try text(page, "theme", "editor") == value)
    }
    #expect(try await page.call("undo", "{\"undo\":\(redo)}", session: session).status == 200)
    #expect(try text(page, "theme", "editor") == "one")
    try await page.close()
  }

  @Test("A new tab undoes and redoes what another one saved, until something else is saved")
  func undoOfAnotherTab() async throws {
    let page = try await page()
    var session = try await page.session()
    func save(_ value: String) async throws {
      let theme = change(
        "theme", "editor", try version(page, "theme", "editor"), "\"type\":\"string\",\"text\":\"\(value)\"")
      #expect(try await page.call("change", "{\"changes\":[\(theme)]}", session: session).status == 200)
    }
    /// What a new tab gets to know.
    func next(_ kind: String) async throws -> Int? {
      let answer = try await page.trade(try page.credentials.makeToken())
      session = try PageSession(answer)
      let about = try #require(answer.object["about"] as? [String: Any])
      let undoing = try #require(about["undoing"] as? [String: Any])
      return (undoing[kind] as? [String: Any])?["number"] as? Int
    }
    func undo(_ number: Int?) async throws {
      let number = try #require(number)
      #expect(try await page.call("undo", "{\"undo\":\(number)}", session: session).status == 200)
    }
    #expect(try await next("undo") == nil)
    try await save("one")
    try await save("two")
    for value in ["one", "dark"] {
      try await undo(try await next("undo"))
      #expect(try text(page, "theme", "editor") == value)
    }
    #expect(try await next("undo") == nil)
    for value in ["one", "two"] {
      try await undo(try await next("redo"))
      #expect(try text(page, "theme", "editor") == value)
    }
    try await undo(try await next("undo"))
    try await save("three")
    #expect(try await next("redo") == nil)
    try await undo(try await next("undo"))
    #expect(try text(page, "theme", "editor") == "one")
    try await page.close()
  }

  @Test("A row can be changed in place if it is short, of a simple type, not secret and not locked")
  func rows() async throws {
    let page = try await ServedPage { transaction in
      for (key, value) in [
        ("bool", .bool(true)), ("double", .double(1)), ("int", .int(9_007_199_254_740_993)), ("list", .array([])),
        ("long", .string(String(repeating: "x", count: 201))), ("lines", .string("a\nb")),
        ("secret", .secret(Secret("s"))), ("text", .string("short")),
      ] as [(String, Value)] {
        try transaction.setObject(value, forKey: key, inCollection: "c")
      }
    }
    let rows = try await page.call("list", session: page.session()).object["rows"] as? [[String: Any]] ?? []
    let texts = rows.compactMap { row in (row["text"] as? String).map { "\(row["key"] ?? "") \($0)" } }
    #expect(texts == ["bool true", "double 1.0", "int 9007199254740993", "text short"])
    try await page.close()
  }

  @Test("Saves of two names of one setting are made and undone one by one, and together")
  func undoOfNames() async throws {
    let page = try await ServedPage { transaction in
      try transaction.declare([Declaration("w", in: "c", type: .int)], by: "c", version: "1")
      try transaction.setObject(1, forKey: "w", inCollection: "c")
      var renamed = Declaration("ww", in: "c", type: .int)
      renamed.formerNames = [Declaration.FormerName(place: SettingPlace("w", in: "c"))]
      try transaction.declare([renamed], by: "c", version: "2")
    }
    let session = try await page.session()
    func expect(_ value: String?, location: SourceLocation = #_sourceLocation) throws {
      #expect(try text(page, "w", "c") == value && text(page, "ww", "c") == value, sourceLocation: location)
    }
    func save(_ changes: (key: String, rest: String)...) async throws -> Int {
      let changes = try changes.map { change($0.key, "c", try version(page, $0.key, "c"), $0.rest) }
      let answer = try await page.call("change", "{\"changes\":[\(changes.joined(separator: ","))]}", session: session)
      return try #require(answer.object["undo"] as? Int, "\(answer)")
    }
    func undo(_ number: Int) async throws {
      #expect(try await page.call("undo", "{\"undo\":\(number)}", session: session).status == 200)
    }
    let first = try await save(("w", #""type":"int","text":"9""#))
    let second = try await save(("ww", #""type":"int","text":"20""#))
    try expect("20")
    let third = try await save(("w", #""type":"int","text":"30""#), ("ww", #""remove":true"#))
    try expect("30")
    try await undo(third)
    try expect("20")
    try await undo(second)
    try expect("9")
    try await undo(first)
    try expect("1")
    try await page.close()
  }

  @Test("Undo restores metadata, expiry and due date with a removed setting")
  func undoOfRemoval() async throws {
    let later = Date(timeIntervalSince1970: 4_000_000_000)
    let page = try await ServedPage { transaction in
      try transaction.setObject("x", forKey: "k", inCollection: "c", expires: later, due: later)
      try transaction.replaceMetadata("note", forKey: "k", inCollection: "c")
    }
    let session = try await page.session()
    let removal = change("k", "c", try version(page, "k", "c"), #""remove":true"#)
    let number = try #require(
      try await page.call("change", "{\"changes\":[\(removal)]}", session: session).object["undo"] as? Int)
    #expect(try await page.call("undo", "{\"undo\":\(number)}", session: session).status == 200)
    let item = try await page.database.makeConnection().read { try $0.item(forKey: "k", inCollection: "c") }
    #expect(item?.metadata == .string("note"))
    #expect(item?.expires == later)
    #expect(item?.due == later)
    try await page.close()
  }

  @Test("A read-only page changes nothing")
  func readOnly() async throws {
    let page = try await page(readOnly: true)
    let session = try await page.session()
    let theme = change("theme", "editor", try version(page, "theme", "editor"), #""type":"string","text":"light""#)
    let answer = try await page.call("change", "{\"changes\":[\(theme)]}", session: session)
    #expect(answer.status == 422)
    #expect(answer.object["error"] as? String == "refused")
    #expect(try text(page, "theme", "editor") == "dark")
    try await page.close()
  }

  @Test("A page of one collection shows, reveals and changes nothing of others")
  func oneCollection() async throws {
    let page = try await page(collections: ["editor"])
    let session = try await page.session()
    #expect(names(try await page.call("list", session: session)) == ["editor/size", "editor/theme"])
    #expect(names(try await page.call("list", #"{"collection":"web"}"#, session: session)) == [])
    let name = #"{"collection":"web","key":"password"}"#
    for call in ["setting", "reveal", "history"] {
      #expect(try await page.call(call, name, session: session).object["error"] as? String == "refused")
    }
    let removal = change("password", "web", try version(page, "password", "web"), #""remove":true"#)
    #expect(try await page.call("change", "{\"changes\":[\(removal)]}", session: session).status == 422)
    #expect(try await !page.call("export", session: session).body.contains("password"))
    try await page.close()
  }

  @Test("A commit of another program reaches the page with its author, and is then in the list")
  func events() async throws {
    let page = try await page()
    let session = try await page.session()
    let connection = try RawConnection(port: page.port)
    defer { connection.close() }
    let request = try session.seal("{}", for: "request events")
    let headers = page.headers(session: session).map { "\($0.key): \($0.value)\r\n" }.joined()
    let head = "POST /\(ServedPage.folder)/api/events HTTP/1.1\r\n\(headers)Content-Length: \(request.count)\r\n\r\n"
    try connection.write(Array(head.utf8) + request)
    var events = SealedEvents(connection, session, request)
    #expect(try events.next().hasPrefix("open\n"))
    try await page.database.makeConnection().readWrite { try $0.setObject("new", forKey: "fresh", inCollection: "web") }
    let event = try events.next()
    #expect(event.hasPrefix("commit\n"))
    #expect(event.contains(#"[["web","fresh"]]"#))
    #expect(names(try await page.call("list", #"{"search":"fresh"}"#, session: session)) == ["web/fresh"])
    try await page.close()
  }

  @Test(
    "An invalid request gets an error, and the page continues",
    arguments: [
      "", "[]", "nonsense", #"{"collection":1}"#, #"{"offset":"x"}"#, #"{"filter":"none"}"#,
      String(repeating: "[", count: 5000),
    ])
  func malformed(body: String) async throws {
    let page = try await page()
    let session = try await page.session()
    #expect(try await page.call("list", body, session: session).status == 422)
    #expect(try await page.call("nothing", session: session).status == 422)
    #expect(try await page.call("list", session: session).status == 200)
    try await page.close()
  }
}

/// The events that a page gets.
private struct SealedEvents {
  private let connection: RawConnection
  private let session: PageSession
  private let request: [UInt8]
  private var rest: [UInt8] = []
  private var count = 0
  private var hasHead = false

  init(_ connection: RawConnection, _ session: PageSession, _ request: [UInt8]) {
    (self.connection, self.session, self.request) = (connection, session, request)
  }

  /// The next event but those that only say that the program is there.
  mutating func next() throws -> String {
    while true {
      let size = try read(4).reduce(0) { $0 << 8 | Int($1) }
      let event = try session.open(try read(size), for: "event \(count)", answering: request)
      count += 1
      if !event.hasPrefix("here\n") { return event }
    }
  }

  private mutating func read(_ size: Int) throws -> [UInt8] {
    while !hasHead || rest.count < size {
      let part = connection.readSome()
      try #require(!part.isEmpty)
      rest += part
      if !hasHead, let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) {
        rest.removeSubrange(..<end.upperBound)
        hasHead = true
      }
    }
    defer { rest.removeFirst(size) }
    return Array(rest.prefix(size))
  }
}
