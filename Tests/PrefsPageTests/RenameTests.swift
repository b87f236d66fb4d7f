import Coffer
import Testing

@testable import PrefsPage

@Suite("Renaming in the settings page", .serialized) struct RenameTests {
  private func page(readOnly: Bool = false, collections: [String] = []) async throws -> ServedPage {
    try await ServedPage(readOnly: readOnly, collections: collections) { transaction in
      try transaction.setObject("Bring the milk", forKey: "first", inCollection: "notes")
      try transaction.setObject(3, forKey: "count", inCollection: "notes")
    }
  }

  private func rename(
    _ page: ServedPage, _ session: PageSession, to collection: String, _ key: String, version: Int64
  ) async throws -> RawAnswer {
    try await page.call(
      "rename",
      #"{"collection":"notes","key":"first","store":0,"version":\#(version),"#
        + #""to":{"collection":"\#(collection)","key":"\#(key)"}}"#,
      session: session)
  }

  private func version(_ page: ServedPage) async throws -> Int64 {
    try await page.database.makeConnection().read { try $0.version(forKey: "first", inCollection: "notes") }
  }

  @Test("Moves the value, and one undo takes it back")
  func moves() async throws {
    let page = try await page()
    let session = try await page.session()
    let answer = try await rename(page, session, to: "lists", "shopping", version: version(page))
    let undo = try #require(answer.object["undo"] as? Int)
    let connection = try page.database.makeConnection()
    #expect(
      try await connection.read { try $0.value(forKey: "shopping", inCollection: "lists") } == .string("Bring the milk")
    )
    #expect(try await version(page) == 0)
    #expect(try await page.call("undo", #"{"undo":\#(undo)}"#, session: session).status == 200)
    #expect(
      try await connection.read { try $0.value(forKey: "first", inCollection: "notes") } == .string("Bring the milk"))
    #expect(try await connection.read { try $0.hasObject(forKey: "shopping", inCollection: "lists") } == false)
    try await page.close()
  }

  @Test("Refuses a name that is taken, a setting that has changed since, and an environment that is missing")
  func refusals() async throws {
    let page = try await page()
    let session = try await page.session()
    let now = try await version(page)
    #expect(try await rename(page, session, to: "notes", "count", version: now).body.contains("exists already"))
    #expect(try await rename(page, session, to: "notes", "other", version: now + 5).status == 409)
    #expect(
      try await rename(page, session, to: "notes@staging", "first", version: now).object["error"] as? String
        == "notFound")
    #expect(try await version(page) == now)
    try await page.close()
  }

  @Test("A page that is read-only, or of other collections, renames nothing")
  func outside() async throws {
    let readOnly = try await page(readOnly: true)
    let answer = try await rename(readOnly, readOnly.session(), to: "notes", "x", version: version(readOnly))
    #expect(answer.status == 422)
    try await readOnly.close()
    let scoped = try await page(collections: ["notes"])
    let other = try await rename(scoped, scoped.session(), to: "lists", "x", version: version(scoped))
    #expect(other.body.contains("does not show"))
    try await scoped.close()
  }
}
