import FlyingFox
import FlyingSocks
import Synchronization

/// Commits on their way to the pages that are open, as server-sent events.
final class EventStream: Sendable {
  /// More pages than these are not told.
  private static let limit = 32
  /// How often a page that has gone away is noticed, and an open one sees that the server is there.
  private static let heartbeat = Duration.seconds(5)
  /// A page that reads nothing loses the oldest events; what it gets after them says what is missing by its number.
  private static let bufferLimit = 256

  private struct State {
    var next = 0
    var pages: [Int: AsyncStream<[UInt8]>.Continuation] = [:]
  }

  private let state = Mutex(State())
  private let lifetime: PageLifetime

  init(_ lifetime: PageLifetime) { self.lifetime = lifetime }

  /// Sends an event to all pages.
  func send(_ name: String, _ json: String) {
    let bytes = Array("event: \(name)\ndata: \(json)\n\n".utf8)
    for page in state.withLock({ Array($0.pages.values) }) { page.yield(bytes) }
  }

  /// The events from now on, for one more page; nil where there are too many.
  func open() -> HTTPBodySequence? {
    let (stream, page) = AsyncStream.makeStream(of: [UInt8].self, bufferingPolicy: .bufferingNewest(Self.bufferLimit))
    let number = state.withLock { state -> Int? in
      guard state.pages.count < Self.limit else { return nil }
      state.next += 1
      state.pages[state.next] = page
      return state.next
    }
    guard let number else { return nil }
    lifetime.openTab()
    page.yield(Array(": open\n\n".utf8))
    let beats = Task {
      while !Task.isCancelled {
        try await Task.sleep(for: Self.heartbeat)
        page.yield(Array(": here\n\n".utf8))
      }
    }
    page.onTermination = { [weak self] _ in
      beats.cancel()
      self?.close(number)
    }
    return HTTPBodySequence(from: EventBytes(stream: stream))
  }

  private func close(_ number: Int) {
    if state.withLock({ $0.pages.removeValue(forKey: number) }) != nil { lifetime.closeTab() }
  }

  func close() {
    for page in state.withLock({ Array($0.pages.values) }) { page.finish() }
  }
}

/// A stream of pieces as the server wants it.
private struct EventBytes: AsyncBufferedSequence {
  typealias Element = UInt8

  let stream: AsyncStream<[UInt8]>

  func makeAsyncIterator() -> Iterator { Iterator(pieces: stream.makeAsyncIterator()) }

  struct Iterator: AsyncBufferedIteratorProtocol {
    var pieces: AsyncStream<[UInt8]>.Iterator

    mutating func next() async -> UInt8? { nil }

    mutating func nextBuffer(suggested count: Int) async -> [UInt8]? { await pieces.next() }
  }
}
