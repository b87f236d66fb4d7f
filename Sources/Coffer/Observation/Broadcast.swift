import CofferCrypto
import CofferStorage
import Synchronization

/// Hands each element to every stream made from it.
final class Broadcast<Element: Sendable>: Sendable {
  /// A consumer that falls further behind than this loses the oldest elements.
  private static var bufferCount: Int { 64 }
  private let continuations = Lock<[UInt64: AsyncStream<Element>.Continuation]>([:])
  private let count = Atomic<UInt64>(0)

  func stream() -> AsyncStream<Element> {
    AsyncStream(bufferingPolicy: .bufferingNewest(Self.bufferCount)) { continuation in
      let id = count.wrappingAdd(1, ordering: .relaxed).newValue
      continuations.withLock { $0[id] = continuation }
      continuation.onTermination = { [weak self] _ in
        self?.continuations.withLock { _ = $0.removeValue(forKey: id) }
      }
    }
  }

  func send(_ element: Element) {
    for continuation in continuations.withLock({ Array($0.values) }) { continuation.yield(element) }
  }

  deinit {
    for continuation in continuations.withLock({ Array($0.values) }) { continuation.finish() }
  }
}
