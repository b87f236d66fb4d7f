import CofferCrypto
import Dispatch
import Synchronization

/// Who listens to the changes of a proxy, and how they are told: one batch after another, on a queue.
final class ChangeListeners: Sendable {
  /// What became of an item.
  struct ItemChange: Sendable {
    let item: ProxyItem
    let before: ProxyItem.Knowledge
    var after: ProxyItem.Knowledge
    /// What is known without the two.
    let kind: ChangeKind?
  }

  /// What changed together.
  struct Batch: Sendable {
    var origin: ChangeOrigin
    var items: [ObjectIdentifier: ItemChange] = [:]
    /// Collections of which any key may have changed.
    var whole: Set<ByteString> = []
    var isEverything = false

    /// Adds a change; of several of one item, the first one's `before` counts, and the last one's `after` and kind.
    mutating func add(
      _ item: ProxyItem, before: ProxyItem.Knowledge, after: ProxyItem.Knowledge, kind: ChangeKind? = nil
    ) {
      let before = items[ObjectIdentifier(item)]?.before ?? before
      items[ObjectIdentifier(item)] = ItemChange(item: item, before: before, after: after, kind: kind)
    }
  }

  private struct Listener {
    let number: UInt64
    let interest: ConnectionProxy.ChangeEvent.Interest
    let receive: @Sendable (ConnectionProxy.ChangeEvent) -> Void
    let finish: @Sendable () -> Void
  }

  private let queue = DispatchQueue(label: "coffer.changes")
  private let listeners = Lock<[Listener]>([])
  private let lastNumber = Atomic<UInt64>(0)
  private let count = Atomic<Int>(0)

  @inline(__always)
  var areThere: Bool { count.load(ordering: .relaxed) > 0 }

  /// - Parameters:
  ///   - receive: Gets the events of `interest`, on the queue.
  ///   - finish: Runs when there will be no more of them.
  func add(
    _ interest: ConnectionProxy.ChangeEvent.Interest,
    _ receive: @escaping @Sendable (ConnectionProxy.ChangeEvent) -> Void, finish: @escaping @Sendable () -> Void
  ) -> UInt64 {
    let number = lastNumber.add(1, ordering: .relaxed).newValue
    listeners.withLock {
      $0.append(Listener(number: number, interest: interest, receive: receive, finish: finish))
    }
    count.add(1, ordering: .relaxed)
    return number
  }

  func remove(_ number: UInt64) {
    listeners.withLock { listeners in
      guard let index = listeners.firstIndex(where: { $0.number == number }) else { return }
      listeners.remove(at: index)
      count.subtract(1, ordering: .relaxed)
    }
  }

  func enqueue(_ body: @escaping @Sendable () -> Void) {
    queue.async(execute: body)
  }

  /// Tells everyone of a batch; on the queue.
  func tell(_ batch: Batch, _ core: DatabaseCore) {
    let event = ConnectionProxy.ChangeEvent(batch, core)
    for listener in listeners.withLock({ $0 }) {
      if let event = event.concerning(listener.interest) { listener.receive(event) }
    }
  }

  /// Ends all streams, after what is on its way.
  func finish() {
    // Most of the time there are none, and no thread is woken, or started, for them.
    guard areThere else { return }
    let finished = listeners.withLock { $0.map(\.finish) }
    queue.async { for finish in finished { finish() } }
  }
}
