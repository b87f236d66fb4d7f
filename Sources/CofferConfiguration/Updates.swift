#if Configuration
  import Coffer

  /// What something is now, and then after each change that makes it another.
  ///
  /// Ends with the changes: when the proxy is closed, or the task is cancelled.
  struct Updates<Element: Sendable>: AsyncSequence, Sendable {
    private let changes: ConnectionProxy.Changes
    private let current: @Sendable () -> Element
    private let isSame: @Sendable (_ earlier: Element, _ later: Element) -> Bool

    init(
      _ changes: ConnectionProxy.Changes, current: @escaping @Sendable () -> Element,
      isSame: @escaping @Sendable (_ earlier: Element, _ later: Element) -> Bool = { _, _ in false }
    ) {
      (self.changes, self.current, self.isSame) = (changes, current, isSame)
    }

    struct Iterator: AsyncIteratorProtocol {
      var changes: ConnectionProxy.Changes.Iterator
      let current: @Sendable () -> Element
      let isSame: @Sendable (Element, Element) -> Bool
      var last: Element?

      mutating func next() async -> Element? { await next(isolation: nil) }

      mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
        while true {
          // The first one is what there is now.
          if last != nil, await changes.next(isolation: actor) == nil { return nil }
          let element = current()
          if let last, isSame(last, element) { continue }
          last = element
          return element
        }
      }
    }

    func makeAsyncIterator() -> Iterator {
      Iterator(changes: changes.makeAsyncIterator(), current: current, isSame: isSame)
    }
  }
#endif
