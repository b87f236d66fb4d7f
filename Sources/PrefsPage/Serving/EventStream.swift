import Dispatch
import Synchronization

/// The events sent to open pages: commits, the state of the vault, the end.
final class EventStream: Sendable {
  /// An event with its data as JSON.
  struct Event: Sendable {
    let name: String
    let json: String
  }

  /// The maximum number of pages that get events.
  private static let limit = 32

  private struct State {
    var next = 0
    var pages: [Int: EventQueue] = [:]
    var isOver = false
  }

  private let state = Mutex(State())
  private let lifetime: PageLifetime
  /// The pages with unread events.
  private let open = DispatchGroup()

  init(_ lifetime: PageLifetime) { self.lifetime = lifetime }

  /// Sends an event to all pages.
  func send(_ name: String, _ json: String) {
    for page in state.withLock({ Array($0.pages.values) }) { page.add(Event(name: name, json: json)) }
  }

  /// Collects the events for another page, until ``close(_:)``.
  ///
  /// - Returns: nil if there are too many pages.
  func subscribe() -> (number: Int, events: EventQueue)? {
    let page = state.withLock { state -> (Int, EventQueue)? in
      guard state.pages.count < Self.limit, !state.isOver else { return nil }
      state.next += 1
      let queue = EventQueue()
      state.pages[state.next] = queue
      return (state.next, queue)
    }
    guard let page else { return nil }
    open.enter()
    lifetime.openTab()
    page.1.add(Event(name: "open", json: "{}"))
    return page
  }

  func close(_ number: Int) {
    guard state.withLock({ $0.pages.removeValue(forKey: number) }) != nil else { return }
    lifetime.closeTab()
    open.leave()
  }

  /// Sends the end and its reason to the pages, and waits briefly until they have read it.
  func end(_ reason: String) {
    let pages = state.withLock { state in
      state.isOver = true
      return Array(state.pages.values)
    }
    for page in pages {
      page.add(Event(name: "end", json: #"{"reason":"\#(reason)"}"#))
      page.finish()
    }
    _ = open.wait(timeout: .now() + 2)
  }
}

/// The unread events of a page.
final class EventQueue: Sendable {
  /// How often a closed page is noticed, and an open one learns that the program still runs.
  private static let heartbeat = DispatchTimeInterval.seconds(5)
  private static let limit = 256

  private struct State {
    var events: [EventStream.Event] = []
    var isOver = false
  }

  private let state = Mutex(State())
  private let arrived = DispatchSemaphore(value: 0)

  func add(_ event: EventStream.Event) {
    state.withLock { state in
      // A page that has read nothing for so long fetches everything again.
      if state.events.count >= Self.limit { state.events = [.init(name: "commit", json: CommitText.everything)] }
      state.events.append(event)
    }
    arrived.signal()
  }

  /// Adds no more: the present ones are the last.
  func finish() {
    state.withLock { $0.isOver = true }
    arrived.signal()
  }

  /// Waits for the next event; if there is none for a while, returns `here`; nil at the end.
  func next() -> EventStream.Event? {
    while true {
      let (event, isOver) = state.withLock { state in
        (state.events.isEmpty ? nil : state.events.removeFirst(), state.isOver)
      }
      if let event { return event }
      if isOver { return nil }
      if arrived.wait(timeout: .now() + Self.heartbeat) == .timedOut {
        return EventStream.Event(name: "here", json: "{}")
      }
    }
  }
}
