import Coffer
import CofferCrypto

/// Keeps the record of one store in memory, and reports it.
package final class RecordedAnchor: FreshnessAnchor {
  private let kept: Lock<[UInt8]?>
  private let onKeep: @Sendable ([UInt8]?) -> Void
  package let interval: Duration

  /// - Parameter interval: Zero by default, so that each synced commit is kept.
  package init(
    _ record: [UInt8]? = nil, interval: Duration = .zero, onKeep: @escaping @Sendable ([UInt8]?) -> Void = { _ in }
  ) {
    kept = Lock(record)
    self.interval = interval
    self.onKeep = onKeep
  }

  package var record: [UInt8]? { kept.withLock { $0 } }

  package func record(ofStoreAt path: String) -> [UInt8]? { record }

  package func keep(_ record: [UInt8]?, ofStoreAt path: String) {
    kept.withLock { $0 = record }
    onKeep(record)
  }
}

extension Database.Options {
  /// The same, with `anchor` as the store's anchor.
  package func anchored(_ anchor: some FreshnessAnchor) -> Database.Options {
    var options = self
    options.freshness = .anchored(anchor)
    return options
  }
}
