import Coffer
import Testing

@testable import PrefsPage

@Suite("Environments in the settings page", .serialized) struct EnvironmentTests {
  /// A collection with an environment that sets one of its keys.
  private func page(collections: [String] = []) async throws -> ServedPage {
    try await ServedPage(collections: collections) { transaction in
      try transaction.setObject(500, forKey: "limit", inCollection: "web")
      try transaction.setObject("blue", forKey: "colour", inCollection: "web")
      try transaction.setObject(Value.secret(Secret("hunter2")), forKey: "password", inCollection: "web")
      _ = try transaction.makeEnvironment("staging", of: "web")
      try transaction.setObject(100, forKey: "limit", inCollection: "web@staging")
    }
  }

  /// The rows of the environment, as name, value and origin.
  private func rows(_ page: ServedPage, _ session: PageSession) async throws -> [[String]] {
    let answer = try await page.call("list", #"{"collection":"web@staging"}"#, session: session)
    return (answer.object["rows"] as? [[String: Any]] ?? []).map { row in
      ["key", "value", "origin"].map { row[$0].map { "\($0)" } ?? "" }
    }
  }

  @Test("Show the values of their parent where they have none, and those of secrets not")
  func values() async throws {
    let page = try await page()
    let session = try await page.session()
    #expect(
      try await rows(page, session) == [
        ["colour", "blue", "parent:web"], ["limit", "100", "store"], ["password", "<secret: 7 bytes>", "parent:web"],
      ])
    let name = #"{"collection":"web@staging","key":"password"}"#
    let setting = try await page.call("setting", name, session: session)
    #expect(setting.object["parent"] as? String == "web")
    #expect(!setting.body.contains("hunter2"))
    #expect(try await page.call("reveal", name, session: session).object["text"] as? String == "hunter2")
    let found = try await page.call("list", #"{"collection":"web@staging","search":"blue"}"#, session: session)
    #expect(found.object["total"] as? Int == 1)
    try await page.close()
  }

  @Test("Are not made by setting something in one that does not exist")
  func missing() async throws {
    let page = try await page()
    let session = try await page.session()
    let change =
      #"{"changes":[{"collection":"web@stagign","key":"limit","store":0,"version":0,"type":"int","text":"1"}]}"#
    let answer = try await page.call("change", change, session: session)
    #expect(answer.status == 422)
    #expect(answer.object["error"] as? String == "notFound")
    try await page.close()
  }

  @Test("Follow what is set and removed in their parent, and environments that come")
  func followed() async throws {
    let page = try await page()
    let session = try await page.session()
    let (commits, feed) = AsyncStream<String>.makeStream()
    let registration = try page.store.follow { feed.yield($0) }
    var told = commits.makeAsyncIterator()
    let connection = try page.database.makeConnection()
    try await connection.readWrite { transaction in
      try transaction.setObject("red", forKey: "colour", inCollection: "web")
      try transaction.removeObject(forKey: "limit", inCollection: "web@staging")
    }
    let event = try #require(await told.next())
    #expect(event.contains(#"["web@staging","colour"]"#))
    #expect(
      try await rows(page, session).prefix(2) == [["colour", "red", "parent:web"], ["limit", "500", "parent:web"]])
    try await connection.readWrite { _ = try $0.makeEnvironment("new", of: "web") }
    #expect(await told.next()?.contains(#""keys":null"#) == true)
    let answer = try await page.call("list", #"{"collection":"web@new"}"#, session: session)
    #expect(answer.object["total"] as? Int == 3)
    registration.cancel()
    try await page.close()
  }
}
