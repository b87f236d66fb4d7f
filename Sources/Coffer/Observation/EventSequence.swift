import CofferCrypto
import CofferStorage
import Synchronization

/// Events as they happen, for `for await`.
///
/// A consumer that falls behind gets several events merged into one, but misses no change.
public struct EventSequence<Element: Sendable>: AsyncSequence, Sendable {
  private let buffer: MergingBuffer<Element>

  init(_ buffer: MergingBuffer<Element>) {
    self.buffer = buffer
  }

  /// Waits for events, one after another.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let buffer: MergingBuffer<Element>

    /// The next event; nil when what they come from was closed or is gone, or the task was cancelled.
    public mutating func next() async -> Element? {
      await buffer.next()
    }

    /// The next event; nil when what they come from was closed or is gone, or the task was cancelled.
    public mutating func next(isolation: isolated (any Actor)?) async -> Element? {
      await buffer.next()
    }
  }

  /// Makes the iterator; all iterators of one sequence share its events.
  public func makeAsyncIterator() -> Iterator {
    Iterator(buffer: buffer)
  }
}

/// What a consumer of an asynchronous sequence has not taken yet, and the registration that brings it.
///
/// A consumer that falls behind gets several elements as one.
final class MergingBuffer<Element: Sendable>: Sendable {
  /// More elements than this that wait to be taken become one.
  private static var maximumCount: Int { 64 }

  private struct State {
    var waiting: [Element] = []
    var consumers: [CheckedContinuation<Element?, Never>] = []
    var isFinished = false
    var registration: (any Sendable)?
  }

  private let state = Lock(State())
  private let merge: @Sendable (_ earlier: Element, _ later: Element) -> Element

  init(merge: @escaping @Sendable (_ earlier: Element, _ later: Element) -> Element) {
    self.merge = merge
  }

  /// Keeps the source of the elements as long as they are wanted.
  func attach(_ registration: any Sendable) {
    state.withLock { $0.registration = registration }
  }

  func add(_ element: Element) {
    let consumer = state.withLock { state -> CheckedContinuation<Element?, Never>? in
      guard !state.isFinished else { return nil }
      if !state.consumers.isEmpty { return state.consumers.removeFirst() }
      state.waiting.append(element)
      if state.waiting.count > Self.maximumCount {
        state.waiting[0] = merge(state.waiting[0], state.waiting.remove(at: 1))
      }
      return nil
    }
    consumer?.resume(returning: element)
  }

  func finish() {
    // The registration goes outside of the lock: its end may call back.
    let (consumers, _) = state.withLock { state in
      defer {
        state.consumers = []
        state.registration = nil
      }
      state.isFinished = true
      return (state.consumers, state.registration)
    }
    for consumer in consumers { consumer.resume(returning: nil) }
  }

  func next() async -> Element? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let immediate = state.withLock { state -> Element?? in
          if !state.waiting.isEmpty { return .some(state.waiting.removeFirst()) }
          if state.isFinished || Task.isCancelled { return .some(nil) }
          state.consumers.append(continuation)
          return nil
        }
        if let immediate { continuation.resume(returning: immediate) }
      }
    } onCancel: {
      finish()
    }
  }
}

/// Hands each element to every stream made from it.
final class Broadcast<Element: Sendable>: Sendable {
  /// A consumer that falls further behind than this loses the oldest elements.
  private static var bufferCount: Int { 64 }
  private let consumers = Lock<[Consumer]>([])
  private let count = Atomic<UInt64>(0)

  private struct Consumer {
    let id: UInt64
    let continuation: AsyncStream<Element>.Continuation
  }

  /// - Parameter object: Lives as long as the stream is iterated.
  func stream(keeping object: (any Sendable)? = nil) -> AsyncStream<Element> {
    AsyncStream(bufferingPolicy: .bufferingNewest(Self.bufferCount)) { continuation in
      let id = count.wrappingAdd(1, ordering: .relaxed).newValue
      consumers.withLock { $0.append(Consumer(id: id, continuation: continuation)) }
      continuation.onTermination = { [weak self] _ in
        withExtendedLifetime(object) {}
        self?.consumers.withLock { $0.removeAll { $0.id == id } }
      }
    }
  }

  func send(_ element: Element) {
    for consumer in consumers.withLock({ $0 }) { consumer.continuation.yield(element) }
  }

  deinit {
    for consumer in consumers.withLock({ $0 }) { consumer.continuation.finish() }
  }
}
