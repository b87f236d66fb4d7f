import Testing

@testable import Coffer

extension Keys {
  fileprivate static let count = Key("count", in: "places", default: 7)
  fileprivate static let title = Key("title", in: "places", default: "untitled")
  fileprivate static let own = Key("own", default: 1)
  fileprivate static let checked = Key("checked", in: "places", default: 5, limits: .range(...9))
  fileprivate static let many = (0..<300).map { Key("many \($0)", in: "places", default: -1) }
}

@Suite("The cache slots of typed keys") struct KeyPlaceTests {
  private let fixture: ProxyFixture
  private var proxy: ConnectionProxy { fixture.proxy }

  init() throws {
    fixture = try ProxyFixture()
  }

  @Test("4.14 answer without the store, and follow every change by the program and by others")
  func follow() throws {
    let proxy = proxy
    #expect(proxy[.count] == 7 && proxy[.title] == "untitled")
    try proxy.state.reader.perform { _ in
      #expect(proxy[.count] == 7 && proxy[.title] == "untitled")
    }
    proxy[.count] = 8
    proxy[.title] = "set"
    #expect(proxy[.count] == 8 && proxy[.title] == "set")
    try proxy.flushAndWait()
    #expect(proxy[.count] == 8 && proxy[.title] == "set")
    try fixture.other.readWrite { transaction in
      try transaction.setObject(9, forKey: "count", inCollection: "places")
      try transaction.setObject("theirs", forKey: "title", inCollection: "places")
    }
    #expect(proxy[.count] == 9 && proxy[.title] == "theirs")
    try fixture.other.readWrite { try $0.removeAllObjects(inCollection: "places") }
    #expect(proxy[.count] == 7 && proxy[.title] == "untitled")
    // Another type is reported, and reads as the default.
    try proxy.setObject("text", forKey: "count", inCollection: "places")
    #expect(proxy[.count] == 7)
    try proxy.close()
    #expect(proxy[.count] == 7)
    #expect(throws: CofferError.closed) { try proxy.value(of: Keys.count) }
  }

  @Test("stay when the cache is swept, one for each key")
  func stay() throws {
    for (number, key) in Keys.many.enumerated() { proxy[key] = number }
    try proxy.flushAndWait()
    #expect(Keys.many.indices.allSatisfy { proxy[Keys.many[$0]] == $0 })
    proxy.cacheByteLimit = 0
    for number in 0..<50 { _ = try proxy.hasObject(forKey: "\(number)") }
    #expect(Keys.many.indices.allSatisfy { proxy[Keys.many[$0]] == $0 })
  }

  @Test("respect validation, the rules of a collection, and overriding layers")
  func exceptions() throws {
    proxy[.checked] = 6
    try proxy.setObject(60, forKey: "checked", inCollection: "places")
    #expect(proxy[.checked] == 5)
    let preferences = Preferences(
      proxy: proxy, collection: "app", layers: [.forced(["own": 3])])
    let plain = Preferences(proxy: proxy, collection: "app")
    for _ in 0..<2 { #expect(preferences[.own] == 3 && plain[.own] == 1) }
    try plain.set(2, forKey: "own")
    for _ in 0..<2 { #expect(preferences[.own] == 3 && plain[.own] == 2) }
    try proxy.setObject(4, forKey: "own", inCollection: Preferences.globalCollection)
    try plain.removeObject(forKey: "own")
    for _ in 0..<2 { #expect(plain[.own] == 4) }
    proxy[.count] = 1
    #expect(proxy[.count] == 1)
    var rules = CollectionRules()
    rules.objectSanitizer = { _, _, _ in 42 }
    fixture.database.setRules(rules, forCollection: "places")
    proxy[.count] = 2
    #expect(proxy[.count] == 42)
  }
}
