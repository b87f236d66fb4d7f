import CofferCrypto
import Dispatch
import Synchronization

/// The listeners for changes of a proxy; they are notified of one batch after another, on a queue.
final class ChangeListeners: Sendable {
  /// The change to an item.
  struct ItemChange: Sendable {
    let item: ProxyItem
    let before: ProxyItem.Knowledge
    var after: ProxyItem.Knowledge
    /// The kind of change, if it is known without comparing the two.
    let kind: ChangeKind?
  }

  /// Changes that were made together.
  struct Batch: Sendable {
    var origin: ChangeOrigin
    var items: [ObjectIdentifier: ItemChange] = [:]
    /// Collections in which any key may have changed.
    var whole: Set<ByteString> = []
    var isEverything = false

    /// Adds a change; for several changes to one item, the first `before` and the last `after` and kind are kept.
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
  ///   - receive: Receives the events of `interest`, on the queue.
  ///   - finish: Runs when no more events will come.
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

  /// Notifies all listeners of a batch; on the queue.
  func tell(_ batch: Batch, _ core: DatabaseCore) {
    let event = ConnectionProxy.ChangeEvent(batch, core)
    for listener in listeners.withLock({ $0 }) {
      if let event = event.concerning(listener.interest) { listener.receive(event) }
    }
  }

  /// Ends all streams, after the events that are queued.
  func finish() {
    // Usually there are no listeners, and then no thread need be woken or started.
    guard areThere else { return }
    let finished = listeners.withLock { $0.map(\.finish) }
    queue.async { for finish in finished { finish() } }
  }
}
