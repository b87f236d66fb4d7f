import CofferCrypto
import Synchronization

/// Passes each element to every stream made from it.
final class Broadcast<Element: Sendable>: Sendable {
  /// A consumer that falls further behind than this loses the oldest elements.
  private static var bufferCount: Int { 64 }
  private let consumers = Lock<[Consumer]>([])
  private let count = Atomic<UInt64>(0)

  private struct Consumer {
    let id: UInt64
    let continuation: AsyncStream<Element>.Continuation
  }

  /// - Parameter object: Kept while the stream is iterated.
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
