import Coffer
import Testing

@testable import PrefsPage

@Suite("The order of the list", .serialized) struct ArrangementTests {
  private func page() async throws -> ServedPage {
    try await ServedPage { transaction in
      for key in ["name", "http.port", "http.host", "http/proxy", "smtp.host", ".hidden", "http"] {
        try transaction.setObject(key, forKey: key, inCollection: "web")
      }
      try transaction.setObject(1, forKey: "a.b", inCollection: "log")
    }
  }

  /// The rows: keys, and the heads of sections as name, count and whether they are folded.
  private func rows(_ page: ServedPage, _ session: PageSession, _ request: String) async throws -> [String] {
    let answer = try await page.call("list", request, session: session)
    return (answer.object["rows"] as? [[String: Any]] ?? []).map { row in
      guard let section = row["section"] as? [String: Any] else { return row["key"] as? String ?? "" }
      let name = section["part"] as? String ?? section["collection"] as? String ?? ""
      return "# \(name) \(section["count"] ?? "")" + (section["folded"] as? Bool == true ? " folded" : "")
    }
  }

  @Test("Has sections for collections, and in them for names that begin alike; what is alone comes first")
  func sections() async throws {
    let page = try await page()
    let session = try await page.session()
    let web = [".hidden", "http", "name", "smtp.host", "# http 3", "http.host", "http.port", "http/proxy"]
    #expect(try await rows(page, session, #"{"order":"sections"}"#) == ["# log 1", "a.b", "# web 7"] + web)
    #expect(try await rows(page, session, #"{"order":"sections","collection":"web"}"#) == web)
    #expect(
      try await rows(
        page, session,
        #"{"order":"sections","folded":[{"collection":"log"},{"collection":"web","part":"http"}]}"#)
        == ["# log 1 folded", "# web 7", ".hidden", "http", "name", "smtp.host", "# http 3 folded"])
    let answer = try await page.call("list", #"{"order":"sections","offset":3,"limit":2}"#, session: session)
    #expect(answer.object["total"] as? Int == 8)
    #expect(answer.object["count"] as? Int == 11)
    try await page.close()
  }

  @Test("Has the last changed first, and what was never changed last")
  func times() async throws {
    let page = try await page()
    let session = try await page.session()
    #expect(try await rows(page, session, #"{"order":"time","limit":1}"#) == ["a.b"])
    #expect(try await page.call("list", #"{"order":"size"}"#, session: session).status == 422)
    try await page.close()
  }
}
