import CofferCrypto
import Foundation
import Testing

@testable import Coffer

@Suite("The rules of a collection") struct CollectionRulesTests {
  private let database: Database
  private let connection: Connection

  init() throws {
    database = try Database.inMemory()
    connection = try database.makeConnection()
  }

  private struct Refusal: Error {}

  @Test("check and change values as they are set, and refuse them with nothing changed")
  func sanitizers() throws {
    var rules = CollectionRules()
    rules.objectSanitizer = { collection, key, value in
      guard case .string(let text) = value, !text.isEmpty else { throw Refusal() }
      return .string("\(collection).\(key).\(text.lowercased())")
    }
    rules.metadataSanitizer = { _, _, _ in .int(7) }
    database.setRules(rules, forCollection: "names")
    try connection.readWrite { transaction in
      try transaction.setObject("ADA", forKey: "a", inCollection: "names", withMetadata: 1)
      try transaction.setObject("ADA", forKey: "a", inCollection: "other")
      #expect(throws: Refusal.self) { try transaction.setObject("", forKey: "b", inCollection: "names") }
      #expect(throws: Refusal.self) { try transaction.replaceObject(5, forKey: "a", inCollection: "names") }
    }
    try connection.read { transaction in
      let name: String? = try transaction.object(forKey: "a", inCollection: "names")
      #expect(name == "names.a.ada")
      #expect(try transaction.metadata(forKey: "a", inCollection: "names") == 7)
      #expect(try transaction.object(forKey: "a", inCollection: "other") == "ADA")
      #expect(try transaction.allKeys(inCollection: "names") == ["a"])
    }
    // Through a proxy, too.
    let proxy = try ConnectionProxy(database: database)
    #expect(throws: Refusal.self) { try proxy.setObject("", forKey: "b", inCollection: "names") }
    try proxy.setObject("BOB", forKey: "b", inCollection: "names")
    #expect(try proxy.object(forKey: "b", inCollection: "names") == "names.b.bob")
    database.setRules(nil, forCollection: "names")
    try connection.readWrite { try $0.setObject("", forKey: "b", inCollection: "names") }
  }

  @Test("report what was stored, and allow no writes from there")
  func postSanitizers() throws {
    let heard = Lock<[String]>([])
    var rules = CollectionRules()
    rules.objectPostSanitizer = { [connection, database] _, key, value in
      heard.withLock { $0.append("\(key)=\(value)") }
      #expect(throws: CofferError.nestedTransaction) { try connection.readWrite { _ in } }
      #expect(throws: CofferError.nestedTransaction) {
        try connection.unsafeReentrantWrite { try $0.setObject(1, forKey: "x") }
      }
      #expect(throws: CofferError.nestedTransaction) { try database.makeConnection().readWrite { _ in } }
    }
    rules.metadataPostSanitizer = { _, key, value in heard.withLock { $0.append("\(key)~\(value)") } }
    database.setRules(rules, forCollection: "c")
    try connection.readWrite { transaction in
      try transaction.setObject(1, forKey: "k", inCollection: "c", withMetadata: 2)
      try transaction.replaceMetadata(3, forKey: "k", inCollection: "c")
    }
    #expect(heard.withLock { $0 } == ["k=int(1)", "k~int(2)", "k~int(3)"])
    let proxy = try ConnectionProxy(database: database)
    try proxy.setObject(4, forKey: "p", inCollection: "c", durability: .committed)
    #expect(heard.withLock { $0 }.last == "p=int(4)")
  }

  @Test("give a collection its own format, which tools still see as bytes")
  func serializers() throws {
    struct Point: Codable, Equatable { var x = 1.5, y = -2.0 }
    var rules = CollectionRules()
    rules.objectSerializer = Serializer(
      serialize: { .data(try PropertyListEncoder().encode([$0 as! Point])) },
      deserialize: { value, _ in
        guard case .data(let data) = value else { throw Refusal() }
        return try PropertyListDecoder().decode([Point].self, from: data)[0]
      })
    database.setRules(rules, forCollection: "points")
    try connection.readWrite { try $0.setObject(Point(), forKey: "p", inCollection: "points") }
    try connection.read { transaction in
      #expect(try transaction.object(forKey: "p", inCollection: "points") == Point())
      #expect(try transaction.value(forKey: "p", inCollection: "points")?.kind == .data)
      #expect(throws: CofferError.self) {
        _ = try transaction.object(forKey: "p", inCollection: "points", as: Int.self)
      }
      var points: [Point] = []
      try transaction.enumerateKeysAndObjects(inCollection: "points", as: Point.self) { _, point, _ in
        points.append(point)
      }
      #expect(points == [Point()])
    }
  }

  @Test("of all collections apply if a collection has none of its own")
  func defaultRules() throws {
    var (own, others) = (CollectionRules(), CollectionRules())
    own.objectSanitizer = { _, _, _ in "own" }
    others.objectSanitizer = { collection, _, _ in .string("other: \(collection)") }
    database.setRules(own, forCollection: "a")
    database.setDefaultRules(others)
    let proxy = try ConnectionProxy(database: database)
    func stored() throws -> [String] {
      try ["a", "b", ""].map { collection in
        try proxy.setObject("set", forKey: "k", inCollection: collection)
        return try #require(try proxy.object(forKey: "k", inCollection: collection))
      }
    }
    #expect(try stored() == ["own", "other: b", "other: "])
    database.setRules(nil, forCollection: "a")
    #expect(try stored() == ["other: a", "other: b", "other: "])
    database.setDefaultRules(nil)
    #expect(try stored() == ["set", "set", "set"])
  }

  @Test("for a type apply in every collection whose rules name no serializer, also for metadata")
  func serializerOfType() throws {
    struct Point: Codable, Equatable { var x = 1, y = 2 }
    func serializer(_ name: String) -> Serializer {
      Serializer(serialize: { _ in .string(name) }, deserialize: { _, _ in Point(x: name.utf8.count) })
    }
    var (own, others) = (CollectionRules(), CollectionRules())
    own.objectSerializer = serializer("collection")
    others.objectSerializer = serializer("others")
    database.setRules(own, forCollection: "own")
    database.setRules(CollectionRules(), forCollection: "standard")
    database.setDefaultRules(others)
    database.setSerializer(serializer("type"), for: Point.self)
    let expected: [(String, Value, Int)] = [
      ("own", "collection", 10), ("standard", "type", 4), ("", "type", 4),
    ]
    for (collection, value, x) in expected {
      try connection.readWrite { transaction in
        try transaction.setObject(Point(), forKey: "p", inCollection: collection, withMetadata: Point())
        #expect(try transaction.value(forKey: "p", inCollection: collection) == value)
        #expect(try transaction.object(forKey: "p", inCollection: collection) == Point(x: x))
        #expect(try transaction.metadata(forKey: "p", inCollection: collection) == Point(x: 4))
        // No value of the type, but one that holds it.
        guard collection == "standard" else { return }
        try transaction.setObject([Point()], forKey: "list", inCollection: collection)
        #expect(try transaction.value(forKey: "list", inCollection: collection)?.kind == .json)
      }
    }
    database.setSerializer(nil, for: Point.self)
    try connection.readWrite { transaction in
      try transaction.setObject(Point(), forKey: "p", withMetadata: Point())
      #expect(try transaction.value(forKey: "p") == "others")
      #expect(try transaction.metadata(forKey: "p") == Point())
    }
  }
}
