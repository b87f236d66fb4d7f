import CofferCrypto
import CofferStorage
import Synchronization

/// Events as they happen, for `for await`.
///
/// If a consumer falls behind, events are merged, but no change is missed.
public struct EventSequence<Element: Sendable>: AsyncSequence, Sendable {
  private let buffer: MergingBuffer<Element>

  init(_ buffer: MergingBuffer<Element>) {
    self.buffer = buffer
  }

  /// Waits for one event after another.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let buffer: MergingBuffer<Element>

    /// The next event; nil when the source is closed or released, or the task is cancelled.
    public mutating func next() async -> Element? {
      await buffer.next()
    }

    /// The next event; nil when the source is closed or released, or the task is cancelled.
    public mutating func next(isolation: isolated (any Actor)?) async -> Element? {
      await buffer.next()
    }
  }

  /// Creates an iterator; all iterators of one sequence share its events.
  public func makeAsyncIterator() -> Iterator {
    Iterator(buffer: buffer)
  }
}

/// The elements that a consumer of an asynchronous sequence has not taken yet, and the registration that supplies them.
///
/// If a consumer falls behind, elements are merged.
final class MergingBuffer<Element: Sendable>: Sendable {
  /// When more elements than this are waiting, they are merged into one.
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

  /// Keeps the source of the elements while they are wanted.
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
    // Release the registration outside the lock: its deinit may call back.
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
