import Coffer
import CofferCrypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The last change of a shared setting.
public struct FleetChange: Sendable, Hashable {
  /// The collection of the setting.
  public let collection: String
  /// The key of the setting.
  public let key: String
  /// The member on whose host the setting was changed; empty for a former member.
  public let member: String
  /// The time, by the clock of that host.
  public let time: Date
  /// The number of changes of the setting, including this one.
  public let number: Int64
  /// Whether the setting was removed.
  public let isRemoval: Bool
  /// Whether its declaration was changed, not its value.
  public let isDeclaration: Bool
}

extension Fleet {
  /// The carrier at an address: `etcd://host1,host2/prefix`, `etcds://…` for TLS, `s3://bucket/prefix?endpoint=…&region=…`, or `file:///path`.
  ///
  /// ```swift
  /// let carrier = try Fleet.carrier(at: "file:///srv/fleets/web")
  /// ```
  ///
  /// - Parameters:
  ///   - password: Called if the address of an etcd names a user; in UTF-8.
  ///   - credentials: Called for the access key of an S3-compatible storage, and again if it is no longer accepted.
  /// - Throws: ``CarrierError/badAddress(_:reason:)``, also for a user without a password, or a storage without an access key; errors of
  ///   `password` and `credentials`.
  public static func carrier(
    at address: String, password: () throws -> SecretBytes? = { nil },
    credentials: @escaping @Sendable () throws -> S3Credentials? = { nil }
  ) throws -> any Carrier {
    let parts = try CarrierAddress(address)
    switch parts.scheme {
    case "file": return try FileCarrier(address: address)
    case "etcd", "etcds":
      return try EtcdCarrier(address: address, password: parts.user == nil ? nil : password())
    case "s3": return try S3Carrier(address: address, credentials: credentials)
    default:
      throw CarrierError.badAddress(address, reason: "it must begin with file:///, etcd://, etcds:// or s3://")
    }
  }

  /// Asks the carrier whether it has newer commits, and changes nothing.
  ///
  /// - Returns: Whether the host is up to date.
  /// - Throws: ``FleetError/rolledBack(seen:found:)`` and others that ``sync()`` throws; ``CarrierError``.
  public func isInStep() async throws -> Bool {
    try await turns.take {
      let head = try await currentHead()
      try await checkSuccession(head)
      return try head == membership.stored.head && !isResuming()
    }
  }

  /// The values in the shared collections that violate a declaration, and the fleet's declarations that cannot be read here,
  /// as sentences.
  ///
  /// A value from elsewhere is applied even if a program of this host cannot use it: such a program keeps its last good one.
  /// Values are compared with the fleet's declarations and with those by programs of this host.
  ///
  /// - Throws: `CofferError`.
  public func findings() throws -> [String] {
    try connection.readFleets { transaction in
      // Those of a sealed collection cannot be read while the vault is locked.
      let readiness = try Readiness(transaction, membership)
      return try transaction.findings(of: membership.id, in: readiness.taken(hasAllRecords: true))
    }
  }

  /// The last change of each shared setting, and of its declaration, newest first.
  ///
  /// As known on this host, without changes that are not on the carrier yet.
  ///
  /// - Throws: `CofferError`.
  public func changes() throws -> [FleetChange] {
    try connection.readFleets { try $0.records(of: membership.id) }.map { row in
      let clock = HybridClock(rawValue: UInt64(bitPattern: row.clock))
      return FleetChange(
        collection: row.collection, key: row.key, member: membership.members[MemberID(bytes: row.author)]?.name ?? "",
        time: Self.date(clock.milliseconds), number: row.counter, isRemoval: row.isRemoved,
        isDeclaration: row.declaration != nil)
    }.sorted { ($1.time, $0.collection, $0.key) < ($0.time, $1.collection, $1.key) }
  }
}
