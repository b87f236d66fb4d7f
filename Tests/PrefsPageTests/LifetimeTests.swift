import Foundation
import Testing

@testable import PrefsPage

@Suite("The lifetime of the settings page") struct LifetimeTests {
  private let clock = TestClock()

  private func lifetime() -> PageLifetime { PageLifetime(idleLimit: .seconds(900)) { [clock] in clock.now } }

  @Test("The page ends a minute after its last tab, unless another is opened")
  func lastTab() {
    let lifetime = lifetime()
    lifetime.openTab()
    lifetime.openTab()
    lifetime.closeTab()
    clock.advance(by: .seconds(61))
    #expect(lifetime.end == nil)
    lifetime.closeTab()
    clock.advance(by: .seconds(59))
    #expect(lifetime.end == nil)
    lifetime.openTab()
    clock.advance(by: .seconds(2))
    #expect(lifetime.end == nil)
    lifetime.closeTab()
    clock.advance(by: .seconds(60))
    #expect(lifetime.end == .lastTabClosed)
  }

  @Test("A tab that is closed while it loads is a tab, too")
  func closedWhileLoading() async throws {
    let page = try await ServedPage()
    let session = try await page.session()
    page.clock.advance(by: .seconds(59))
    #expect(try await page.call("list", session: session).status == 200)
    page.clock.advance(by: .seconds(59))
    #expect(page.lifetime.end == nil)
    page.clock.advance(by: .seconds(1))
    #expect(page.lifetime.end == .lastTabClosed)
    try await page.close()
  }

  @Test("It waits for its first tab as long as for anything else")
  func firstTab() {
    let lifetime = lifetime()
    clock.advance(by: .seconds(899))
    #expect(lifetime.end == nil)
    clock.advance(by: .seconds(1))
    #expect(lifetime.end == .idle)
  }

  @Test("It ends when unused, though a tab is open")
  func idle() {
    let lifetime = lifetime()
    lifetime.openTab()
    clock.advance(by: .seconds(800))
    lifetime.use()
    clock.advance(by: .seconds(899))
    #expect(lifetime.end == nil)
    clock.advance(by: .seconds(1))
    #expect(lifetime.end == .idle)
  }

  @Test("Automatic requests of a page do not keep it alive")
  func automaticRequests() async throws {
    let page = try await ServedPage()
    let session = try await page.session()
    page.clock.advance(by: .seconds(899))
    #expect(try await page.call("list", session: session, changing: ["X-Coffer-Automatic": "1"]).status == 200)
    page.clock.advance(by: .seconds(1))
    #expect(page.lifetime.end == .idle)
    #expect(try await page.call("list", session: session).status == 200)
    #expect(page.lifetime.end == nil)
    try await page.close()
  }
}

@Suite("The events of the settings page") struct EventQueueTests {
  @Test("Of a page that reads none for long become one that has it look at everything, and the newest")
  func overflow() throws {
    let queue = EventQueue()
    for number in 0..<300 { queue.add(.init(name: "commit", json: "\(number)")) }
    queue.finish()
    var events: [String] = []
    while let event = queue.next() { events.append(event.json) }
    #expect(events.first == CommitText.everything)
    #expect(events.last == "299")
    #expect(events.count < 300)
  }

  @Test("Reach the pages before the end, with its reason")
  func end() throws {
    let events = EventStream(PageLifetime(idleLimit: .seconds(900)))
    let page = try #require(events.subscribe())
    let reader = Thread {
      var last: EventStream.Event?
      while let event = page.events.next() { last = event }
      #expect(last?.name == "end")
      #expect(last?.json == #"{"reason":"idle"}"#)
      events.close(page.number)
    }
    reader.start()
    events.end("idle")
    #expect(events.subscribe() == nil)
  }
}
