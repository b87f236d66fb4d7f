#if Configuration
  import Coffer

  /// A value, then its new value whenever that may have changed: after a change in the collections or in an administrator's files, and after the vault was
  /// locked or unlocked.
  ///
  /// Ends when the proxy is closed, or the task is cancelled.
  struct Updates<Element: Sendable>: AsyncSequence, Sendable {
    private let signals: Signals
    private let current: @Sendable () -> Element
    private let isSame: @Sendable (_ earlier: Element, _ later: Element) -> Bool

    init(
      of collections: [String], _ proxy: ConnectionProxy, _ files: AsyncStream<Void>,
      current: @escaping @Sendable () -> Element,
      isSame: @escaping @Sendable (_ earlier: Element, _ later: Element) -> Bool = { _, _ in false }
    ) throws {
      signals = Signals(try proxy.changes(inCollections: collections), proxy.database.vault.events, files)
      (self.current, self.isSame) = (current, isSame)
    }

    struct Iterator: AsyncIteratorProtocol {
      var signals: AsyncStream<Void>.Iterator
      let current: @Sendable () -> Element
      let isSame: @Sendable (Element, Element) -> Bool
      var last: Element?
      /// Keeps the sources of the signals while this is iterated.
      let source: Signals

      mutating func next() async -> Element? { await next(isolation: nil) }

      mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
        while true {
          // The first element is the current value.
          if last != nil, await signals.next(isolation: actor) == nil { return nil }
          let element = current()
          if let last, isSame(last, element) { continue }
          last = element
          return element
        }
      }
    }

    func makeAsyncIterator() -> Iterator {
      Iterator(signals: signals.stream.makeAsyncIterator(), current: current, isSame: isSame, source: signals)
    }
  }

  /// Three sources of events as one stream; pending events are merged into one.
  final class Signals: Sendable {
    let stream: AsyncStream<Void>
    private let tasks: [Task<Void, Never>]

    /// - Parameter changes: The stream ends when these end.
    init(_ changes: ConnectionProxy.Changes, _ vaultEvents: AsyncStream<VaultEvent>, _ files: AsyncStream<Void>) {
      let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
      self.stream = stream
      tasks = [
        Task {
          for await _ in changes { continuation.yield() }
          continuation.finish()
        },
        Task { for await _ in vaultEvents { continuation.yield() } },
        Task { for await _ in files { continuation.yield() } },
      ]
    }

    deinit { for task in tasks { task.cancel() } }
  }
#endif
