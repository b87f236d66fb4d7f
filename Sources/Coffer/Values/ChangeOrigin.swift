import Synchronization

/// Who made a change.
public enum ChangeOrigin: Sendable, Hashable {
  /// The proxy itself; its commits have another origin.
  case proxy
  /// A connection of this database, possibly another proxy's; compare with ``Connection/id``.
  case connection(ConnectionID)
  /// An unknown connection of this database: there was no listener when the change was made.
  case thisDatabase
  /// Another process, or another `Database` of this one.
  case elsewhere
  /// More than one: several changes were merged for a slow consumer.
  case several
}

/// Identifies a connection while it exists.
public struct ConnectionID: Hashable, Sendable {
  private let number: UInt64

  private static let lastNumber = Atomic<UInt64>(0)

  /// That of a new connection.
  static func next() -> ConnectionID { ConnectionID(number: lastNumber.add(1, ordering: .relaxed).newValue) }
}
