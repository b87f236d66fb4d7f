import CofferStorage

/// How much history a collection keeps of its items.
///
/// ```swift
/// try transaction.setHistoryLimits(HistoryLimits(maximumCount: 10), forCollection: "accounts")
/// ```
public struct HistoryLimits: Sendable, Hashable {
  /// The maximum number of earlier values kept of an item; the oldest are dropped first.
  public let maximumCount: Int
  /// In milliseconds; nil for ever.
  let age: Int64?

  /// How long a value is kept after it was overwritten or removed, to the millisecond; nil for ever.
  public var maximumAge: Duration? { age.map { .milliseconds($0) } }

  /// The defaults: 32 values, 90 days.
  ///
  /// - Precondition: The count and the age are positive.
  public init(maximumCount: Int = 32, maximumAge: Duration? = .seconds(90 * 86_400)) {
    precondition(maximumCount > 0, "Keep at least one earlier value; to keep none, set no limits.")
    precondition(maximumAge.map { $0 > .zero } ?? true, "Keep earlier values for a positive time, or set no limits.")
    self.maximumCount = maximumCount
    age = maximumAge.map { max(1, $0.wholeMilliseconds) }
  }

  /// Reads the limits stored in the table `collections`.
  init(storedCount count: Int64, age: Int64?) throws {
    guard count > 0, (age ?? 1) > 0 else {
      throw StorageError.damaged(part: "collections", reason: "the limits of a history are invalid")
    }
    maximumCount = Int(clamping: count)
    self.age = age.map { min($0, Self.maximumAge) }
  }

  /// In milliseconds; small enough to be subtracted from any time.
  private static let maximumAge = Int64.max / 4
}

extension Duration {
  /// Rounded down, and limited to the longest age.
  fileprivate var wholeMilliseconds: Int64 {
    min(components.seconds, Int64.max / 8000) * 1000 + components.attoseconds / 1_000_000_000_000_000
  }
}
