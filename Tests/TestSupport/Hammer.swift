import Coffer

/// One of two processes that write to one collection through proxies concurrently, and check each other's values.
public final class Hammer: Sendable {
  /// A stale read: a later value had been acknowledged, or read before.
  public struct Stale: Error {
    /// The value read.
    public let read: Int
    /// The value acknowledged, or read before.
    public let expected: Int
  }

  /// The shared collection.
  public static let collection = "hammered"
  private let proxy: ConnectionProxy
  private let name: String
  private let partner: String

  /// Creates the one called `name`.
  public init(_ proxy: ConnectionProxy, name: String, partner: String) {
    self.proxy = proxy
    self.name = name
    self.partner = partner
  }

  /// Increments its own key and a shared one, and keeps reading the partner's; `acknowledge` is called with each
  /// number once it is committed.
  public func run(_ count: Int, acknowledge: (Int) -> Void) throws {
    var last = 0
    for number in 1...count {
      try proxy.update("shared", inCollection: Self.collection, as: Int.self) { ($0 ?? 0) + 1 }
      try proxy.setObject(number, forKey: name, inCollection: Self.collection, durability: .committed)
      acknowledge(number)
      // Written by the next flush.
      try proxy.setObject(-number, forKey: "\(name) pending", inCollection: Self.collection)
      guard try value("\(name) pending") == -number else { throw Stale(read: 0, expected: -number) }
      let seen = try value(partner)
      guard seen >= last else { throw Stale(read: seen, expected: last) }
      last = seen
    }
    try proxy.flushAndWait()
  }

  /// Throws unless a number that the partner reported as committed, or a later one, can be read.
  public func expect(_ acknowledged: Int) throws {
    let seen = try value(partner)
    guard seen >= acknowledged else { throw Stale(read: seen, expected: acknowledged) }
  }

  private func value(_ key: String) throws -> Int {
    try proxy.object(forKey: key, inCollection: Self.collection) ?? 0
  }
}
