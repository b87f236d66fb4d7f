/// Selects the collections that a proxy may show, or write.
///
/// ```swift
/// settings.fetchedCollectionsFilter = .except(["cache"])
/// settings.writtenCollectionsFilter = CollectionFilter { $0.hasPrefix("plugin.") }
/// ```
public struct CollectionFilter: Sendable {
  private let isAllowed: @Sendable (String) -> Bool

  /// Creates a filter from a closure, which must be stable: it has to give the same answer for a collection every time.
  ///
  /// It is called on the threads that read and write.
  public init(_ isAllowed: @escaping @Sendable (_ collection: String) -> Bool) {
    self.isAllowed = isAllowed
  }

  /// Allows only these collections.
  public static func only(_ collections: [String]) -> CollectionFilter {
    let allowed = Set(collections.map { ByteString($0) })
    return CollectionFilter { allowed.contains(ByteString($0)) }
  }

  /// Allows all collections except these.
  public static func except(_ collections: [String]) -> CollectionFilter {
    let refused = Set(collections.map { ByteString($0) })
    return CollectionFilter { !refused.contains(ByteString($0)) }
  }

  /// Whether the filter allows a collection.
  public func allows(_ collection: String) -> Bool {
    isAllowed(collection)
  }
}
