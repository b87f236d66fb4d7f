import Coffer
import Testing

@testable import PrefsPage

@Suite("Collections as columns", .serialized) struct ColumnTests {
  private func page(readOnly: Bool = false, collections: [String] = []) async throws -> ServedPage {
    try await ServedPage(readOnly: readOnly, collections: collections) { transaction in
      try transaction.setObject(500, forKey: "limit", inCollection: "web")
      try transaction.setObject("blue", forKey: "colour", inCollection: "web")
      try transaction.setObject(Value.secret(Secret("hunter2")), forKey: "password", inCollection: "web")
      _ = try transaction.makeEnvironment("staging", of: "web")
      _ = try transaction.makeEnvironment("test", of: "web")
      try transaction.setObject(100, forKey: "limit", inCollection: "web@staging")
      try transaction.setObject("blue", forKey: "colour", inCollection: "web@test")
      try transaction.setObject("x", forKey: "other", inCollection: "log")
      _ = try transaction.makeEnvironment("test", of: "mail")
      try transaction.setObject("only here", forKey: "host", inCollection: "mail@test")
    }
  }

  /// The rows: for each name the values of its cells, with a star where they differ.
  private func table(
    _ page: ServedPage, _ session: PageSession, _ more: String = ""
  ) async throws -> [String: [String]] {
    let answer = try await page.call("list", #"{"columns":true\#(more)}"#, session: session)
    let rows = answer.object["rows"] as? [[String: Any]] ?? []
    return Dictionary(
      uniqueKeysWithValues: rows.map { row in
        let cells = (row["cells"] as? [Any] ?? []).map { cell -> String in
          guard let cell = cell as? [String: Any], let setting = cell["setting"] as? [String: Any] else { return "-" }
          return (setting["value"].map { "\($0)" } ?? "") + (cell["differs"] as? Bool == true ? "*" : "")
        }
        return ("\(row["collection"] ?? "")/\(row["key"] ?? "")", cells)
      })
  }

  @Test("Show what is in force in each, mark what differs, and say nothing of a secret")
  func values() async throws {
    let page = try await page()
    let session = try await page.session()
    let hidden = "<secret: 7 bytes>"
    #expect(
      try await table(page, session) == [
        "mail/host": ["", "-", "only here*"], "web/colour": ["blue", "blue", "blue"],
        "web/limit": ["500", "100*", "500"],
        "web/password": [hidden, hidden, hidden],
      ])
    #expect(try await table(page, session, #","onlyDifferent":true"#).keys.sorted() == ["mail/host", "web/limit"])
    #expect(
      try await table(page, session, #","collection":"web@staging","search":"lim""#).keys.sorted() == ["web/limit"])
    let listed = try await page.call("list", #"{"columns":true,"collection":"log"}"#, session: session)
    #expect(listed.object["columns"] == nil)
    #expect(listed.object["total"] as? Int == 1)
    try await page.close()
  }

  @Test("A tenant's part of a collection is a column, unless programs declare that tenants have none")
  func tenants() async throws {
    let page = try await ServedPage { transaction in
      try transaction.setObject(5, forKey: "limit", inCollection: "billing")
      try transaction.setObject(7, forKey: "limit", inCollection: "acme/billing")
      try transaction.setObject(5, forKey: "limit", inCollection: "globex/billing")
      _ = try transaction.makeEnvironment("test", of: "globex/billing")
      try transaction.setObject(6, forKey: "limit", inCollection: "globex/billing@test")
      // What this is a part of is not known.
      try transaction.setObject(1, forKey: "limit", inCollection: "acme/unknown")
      try transaction.setObject(1, forKey: "size", inCollection: "shared")
      try transaction.setObject(2, forKey: "size", inCollection: "acme/shared")
      try transaction.declare([Declaration("size", in: "shared", type: .int)], by: "shared")
    }
    let session = try await page.session()
    #expect(try await table(page, session) == ["billing/limit": ["5", "7*", "5", "6*"]])
    #expect(try await table(page, session, #","onlyDifferent":true,"collection":"acme/billing""#).count == 1)
    let answer = try await page.call("setting", #"{"collection":"acme/billing","key":"limit"}"#, session: session)
    #expect(answer.object["siblings"] as? [String] == ["billing", "globex/billing", "globex/billing@test"])
    try await page.close()
  }

  @Test("What only the store knows to differ is found among all rows: an environment without its collection")
  func uncertain() async throws {
    let page = try await ServedPage(collections: ["web@staging", "web@test"]) { transaction in
      for key in ["a", "b", "c"] { try transaction.setObject(1, forKey: key, inCollection: "web") }
      _ = try transaction.makeEnvironment("staging", of: "web")
      _ = try transaction.makeEnvironment("test", of: "web")
      try transaction.setObject(1, forKey: "a", inCollection: "web@staging")
      try transaction.setObject(2, forKey: "c", inCollection: "web@test")
    }
    let session = try await page.session()
    #expect(try await table(page, session).count == 3)
    #expect(try await table(page, session, #","onlyDifferent":true"#) == ["web/c": ["1", "2*"]])
    #expect(try await table(page, session, #","onlyDifferent":true,"offset":1"#).isEmpty)
    try await page.close()
  }

  @Test("A copy is a plan that is looked at, of what is set there or in force, and one undo takes it back")
  func copies() async throws {
    let page = try await page()
    let session = try await page.session()
    let plan = try await page.call("copy", #"{"from":"web","to":"web@test","key":"password"}"#, session: session)
    #expect(!plan.body.contains("hunter2"))
    let number = try #require(plan.object["plan"] as? Int)
    #expect(try await page.call("apply", #"{"plan":\#(number)}"#, session: session).status == 200)
    let connection = try page.database.makeConnection()
    let copied = try await connection.read { try $0.value(forKey: "password", inCollection: "web@test") }
    #expect(copied == .secret(Secret("hunter2")))
    let all = try await page.call("copy", #"{"from":"web@staging","to":"web"}"#, session: session)
    #expect(all.object["count"] as? Int == 1)
    // What is inherited counts for one setting, and what a collection has itself already does not change.
    let one = try await page.call("copy", #"{"from":"web@test","to":"web@staging","key":"limit"}"#, session: session)
    #expect(one.object["count"] as? Int == 1)
    let none = try await page.call("copy", #"{"from":"web@test","to":"web","key":"colour"}"#, session: session)
    #expect(none.object["count"] as? Int == 0)
    #expect(
      try await page.call("copy", #"{"from":"web","to":"web@test","key":"missing"}"#, session: session).status == 422)
    try await page.close()
  }

  @Test("A secret is not replaced with a value that everyone could read")
  func revealing() async throws {
    let page = try await page()
    let session = try await page.session()
    try await page.database.makeConnection().readWrite { transaction in
      try transaction.setObject("plain", forKey: "password", inCollection: "web@test")
    }
    let plan = try await page.call("copy", #"{"from":"web@test","to":"web","key":"password"}"#, session: session)
    #expect(plan.object["plan"] as? Int == nil)
    #expect(plan.body.contains("would become readable"))
    try await page.close()
  }

  @Test("A page that is read-only, or of other collections, copies nothing")
  func refused() async throws {
    let readOnly = try await page(readOnly: true)
    let request = #"{"from":"web","to":"web@test","key":"limit"}"#
    #expect(try await readOnly.call("copy", request, session: readOnly.session()).status == 422)
    try await readOnly.close()
    let scoped = try await page(collections: ["web"])
    let session = try await scoped.session()
    #expect(try await scoped.call("copy", request, session: session).status == 422)
    // It shows no environment, and so no columns.
    #expect(try await table(scoped, session)["web/limit"]?.isEmpty == true)
    try await scoped.close()
  }
}
