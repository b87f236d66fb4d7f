import Foundation
import Testing

@testable import Coffer

private enum Theme: String, Codable { case light, dark }

private struct Shape: Codable, Equatable { var sides: Int }

extension Keys {
  fileprivate static let rate = Key("rate", in: "limits", default: 12, limits: .range(1...60))
  fileprivate static let token = Key<Secret?>("token", in: "api")
}

@Suite("The text forms of settings") struct ValueReadingTests {
  private func expect<Object: Codable & Equatable>(_ text: String, _ object: Object) throws {
    #expect(try Value.string(text).read() == object)
    // As the layers do.
    let preferences = Preferences(
      proxy: try ConnectionProxy(database: .inMemory()), collection: "app",
      overrides: Overrides([.variables(prefix: "T_", ["T_K": text])]), registered: RegisteredDefaults())
    #expect(try preferences.throwing.object(forKey: "k", as: Object.self) == object)
  }

  @Test("are read as the requested type, as layers read them")
  func types() throws {
    try expect("on", true)
    try expect("0", false)
    try expect("42", 42)
    try expect("42", UInt8(42))
    try expect("1.5", 1.5)
    try expect("1.5", Decimal(string: "1.5"))
    try expect("42", "42")
    try expect("2001-09-09T01:46:40Z", Date(timeIntervalSince1970: 1_000_000_000))
    try expect("https://example.org/a", URL(string: "https://example.org/a"))
    try expect("dark", Theme.dark)
    try expect("[1, 2]", [1, 2])
    try expect(#"["dark"]"#, [Theme.dark])
    try expect(#"{"sides": 3}"#, Shape(sides: 3))
    try expect(#"{"a": 1}"#, ["a": 1])
    try expect("AAEC", Data([0, 1, 2]))
    try expect("7", Int?.some(7))
    let id = UUID()
    try expect(id.uuidString, id)
    // A value that is not text is read unchanged.
    #expect(try Value.int(3).read(as: Double.self) == 3)
    #expect(try Value.string("[1]").read(as: String.self) == "[1]")
  }

  @Test("that are not values of the type are errors that name the key and not the text")
  func errors() throws {
    for value in [Value.string("hunter2"), .bool(true), .array([1])] {
      let error = try #require(throws: CofferError.self) {
        try value.read(as: Int.self, forKey: "port", inCollection: "http")
      }
      guard case .notDecodable("http", "port", _, _, _) = error else {
        Issue.record("\(error)")
        continue
      }
      #expect(!"\(error)".contains("hunter2"))
    }
    #expect(throws: CofferError.self) { try Value.string("300").read(as: UInt8.self) }
    #expect(throws: CofferError.self) { try Value.string("blue").read(as: Theme.self) }
    #expect(throws: CofferError.self) { try Value.int(1).read(as: Secret.self) }
  }

  @Test("of values read back equal, and a secret has none")
  func roundTrip() throws {
    func expect<Object: Codable & Equatable & Sendable>(_ object: Object) throws {
      let key = Key("k", default: object)
      let text = try #require(try key.text(of: object))
      #expect(try key.read(.string(text)) == object)
    }
    try expect(true)
    try expect(-7)
    try expect(UInt64.max)
    try expect(0.1)
    try expect("text, \"quoted\"")
    try expect("[1")
    try expect(Data([1, 2, 255]))
    try expect(Date(timeIntervalSince1970: 1_000_000_000.25))
    try expect(try #require(URL(string: "https://example.org/?q=1")))
    try expect(UUID())
    try expect(Theme.light)
    try expect(["a", "b"])
    try expect(["a": [1]])
    try expect(Shape(sides: 4))
    #expect(Value.secret(Secret("hunter2")).text == nil)
    #expect(try Keys.token.text(of: Secret("hunter2")) == nil)
    #expect(try Keys.token.text(of: nil) == nil)
  }

  @Test("are read by a key within its limits")
  func limits() throws {
    #expect(try Keys.rate.read("30") == 30)
    #expect(try Keys.rate.read(30) == 30)
    #expect {
      try Keys.rate.read("400")
    } throws: { error in
      "\(error)".contains("1 to 60, not 400")
    }
  }

  @Test("of the environment can be a secret, which is never shown")
  func secret() throws {
    let proxy = try ConnectionProxy(database: .inMemory())
    for text in ["hunter2", "[1]", "\"quoted\"", "42", "true"] {
      let preferences = Preferences(
        proxy: proxy, collection: "app", overrides: Overrides([.variables(prefix: "T_", ["T_API_TOKEN": text])]),
        registered: RegisteredDefaults())
      #expect(try preferences.value(of: .token) == Secret(text))
      #expect(preferences[.token]?.revealed() == text)
      #expect(try preferences.origin(of: .token) == .variables)
    }
    // A secret with limits, and one that is too short.
    let long = Key<Secret?>("token", in: "api", limits: .count(8...))
    let preferences = Preferences(
      proxy: proxy, collection: "app", overrides: Overrides([.variables(prefix: "T_", ["T_API_TOKEN": "hunter2"])]),
      registered: RegisteredDefaults())
    #expect {
      try preferences.value(of: long)
    } throws: { error in
      !"\(error)".contains("hunter2")
    }
    for problem in try preferences.search(for: long).problems { #expect(!"\(problem)".contains("hunter2")) }
  }

  @Test("and the database of settings is one step away")
  func database() throws {
    let database = try Database.inMemory()
    let preferences = try Preferences(database: database, collection: "app")
    #expect(preferences.database === database)
    #expect(preferences.proxy.database === database)
  }
}
