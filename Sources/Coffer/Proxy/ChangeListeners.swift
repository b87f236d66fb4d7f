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

    /// Adds a change; of several changes to one item, the first `before` and the last `after` are kept.
    mutating func add(
      _ item: ProxyItem, before: ProxyItem.Knowledge, after: ProxyItem.Knowledge, kind: ChangeKind? = nil
    ) {
      let earlier = items[ObjectIdentifier(item)]
      let both = if let earlier = earlier?.kind, let kind { earlier.followed(by: kind) ?? kind } else { kind }
      items[ObjectIdentifier(item)] = ItemChange(
        item: item, before: earlier?.before ?? before, after: after, kind: both)
    }
  }

  private struct State {
    var listeners: [Listener] = []
    /// What they want to observe, all together; nil until it is asked for again.
    var interests: ChangeInterests? = ChangeInterests()

    mutating func collect() -> ChangeInterests {
      if let interests { return interests }
      var all = ChangeInterests()
      for listener in listeners { all.add(listener.interest) }
      interests = all
      return all
    }
  }

  private struct Listener {
    let number: UInt64
    let interest: ChangeInterest
    let receive: @Sendable (ConnectionProxy.ChangeEvent) -> Void
    let finish: @Sendable () -> Void
  }

  private let queue = DispatchQueue(label: "coffer.changes")
  private let state = Lock(State())
  private let lastNumber = Atomic<UInt64>(0)
  private let count = Atomic<Int>(0)

  @inline(__always)
  var areThere: Bool { count.load(ordering: .relaxed) > 0 }

  /// - Parameters:
  ///   - receive: Receives the events of `interest`, on the queue.
  ///   - finish: Runs when no more events will come.
  func add(
    _ interest: ChangeInterest,
    _ receive: @escaping @Sendable (ConnectionProxy.ChangeEvent) -> Void, finish: @escaping @Sendable () -> Void
  ) -> UInt64 {
    let number = lastNumber.add(1, ordering: .relaxed).newValue
    state.withLock { state in
      state.listeners.append(Listener(number: number, interest: interest, receive: receive, finish: finish))
      state.interests?.add(interest)
    }
    count.add(1, ordering: .relaxed)
    return number
  }

  func remove(_ number: UInt64) {
    state.withLock { state in
      guard let index = state.listeners.firstIndex(where: { $0.number == number }) else { return }
      state.listeners.remove(at: index)
      state.interests = nil
      count.subtract(1, ordering: .relaxed)
    }
  }

  /// What the listeners want to observe, all together.
  var interests: ChangeInterests { state.withLock { $0.collect() } }

  /// Whether a listener wants to observe the changes of a key.
  ///
  /// A set first asks whether there are any: passing its strings here counts references, which costs a sixth of it.
  @inline(never)
  func want(_ key: String, in collection: String) -> Bool {
    areThere && state.withLock { $0.collect().include(ByteString(key), in: ByteString(collection)) }
  }

  func enqueue(_ body: @escaping @Sendable () -> Void) {
    queue.async(execute: body)
  }

  /// Notifies all listeners of a batch; on the queue.
  func notify(_ batch: Batch, _ core: DatabaseCore) {
    let event = ConnectionProxy.ChangeEvent(batch, core)
    for listener in state.withLock({ $0.listeners }) {
      if let event = event.concerning(listener.interest) { listener.receive(event) }
    }
  }

  /// Ends all streams, after the events that are queued.
  func finish() {
    // Usually there are no listeners, and then no thread need be woken or started.
    guard areThere else { return }
    let finished = state.withLock { $0.listeners.map(\.finish) }
    queue.async { for finish in finished { finish() } }
  }
}
