/// Events as they happen, for `for await`.
///
/// A consumer that falls behind gets several events as one: which one is lost, that something changed never is.
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
