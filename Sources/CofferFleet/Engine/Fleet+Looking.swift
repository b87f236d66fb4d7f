import Coffer
import CofferCrypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The last change of a shared setting.
public struct FleetChange: Sendable, Hashable {
  /// Of which setting it is.
  public let collection: String
  /// Of which setting it is.
  public let key: String
  /// The member on whose host the setting was changed; empty for a former member.
  public let member: String
  /// When, by the clock of that host.
  public let time: Date
  /// How many changes of the setting there were, this one included.
  public let number: Int64
  /// Whether the setting was removed.
  public let isRemoval: Bool
}

extension Fleet {
  /// The carrier at an address: `etcd://host1,host2/prefix`, `etcds://…` for TLS, or `file:///path`.
  ///
  /// ```swift
  /// let carrier = try Fleet.carrier(at: "file:///srv/fleets/web")
  /// ```
  ///
  /// - Parameter password: Asked for where the address of an etcd names a user; in UTF-8.
  /// - Throws: ``CarrierError/badAddress(_:reason:)``, also where there is a user and no password; what `password` throws.
  public static func carrier(
    at address: String, password: () throws -> SecretBytes? = { nil }
  ) throws -> any Carrier {
    let parts = try CarrierAddress(address)
    switch parts.scheme {
    case "file": return try FileCarrier(address: address)
    case "etcd", "etcds":
      return try EtcdCarrier(address: address, password: parts.user == nil ? nil : password())
    default:
      throw CarrierError.badAddress(address, reason: "it must begin with file:///, etcd:// or etcds://")
    }
  }

  /// Asks the carrier whether it has what this host has, and changes nothing.
  ///
  /// - Returns: Whether it has; false where it has newer commits.
  /// - Throws: ``FleetError/rolledBack(seen:found:)`` and others that ``sync()`` throws; ``CarrierError``.
  public func isInStep() async throws -> Bool {
    try await turns.take {
      guard let head = try await carrier.read([Head.object]).first?.bytes else {
        throw FleetError.rolledBack(seen: membership.seen, found: nil)
      }
      try await checkSuccession(head)
      return head == membership.stored.head
    }
  }

  /// The last change of each shared setting, the newest first.
  ///
  /// It is what this host knows. What was set here and is not on the carrier yet is not in it.
  ///
  /// - Throws: `CofferError`.
  public func changes() throws -> [FleetChange] {
    try connection.readFleets { try $0.records(of: membership.id) }.map { row in
      let clock = HybridClock(rawValue: UInt64(bitPattern: row.clock))
      return FleetChange(
        collection: row.collection, key: row.key, member: membership.members[MemberID(bytes: row.author)]?.name ?? "",
        time: Self.date(clock.milliseconds), number: row.counter, isRemoval: row.isRemoved)
    }.sorted { ($1.time, $0.collection, $0.key) < ($0.time, $1.collection, $1.key) }
  }
}
