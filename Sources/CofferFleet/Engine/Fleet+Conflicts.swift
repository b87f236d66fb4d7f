import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A setting that was changed concurrently on two hosts, and its outcome.
public struct FleetConflict: Sendable, Hashable {
  /// Its number on this host.
  public let id: Int64
  /// The collection of the setting.
  public let collection: String
  /// The key of the setting.
  public let key: String
  /// The version of the losing value in the history of the key; 0 for a declaration, which has none.
  public let version: Int64
  /// When it was resolved.
  public let time: Date
  /// The member whose value won; empty where the fleet had removed the setting.
  public let winner: String
  /// The member whose value lost.
  public let loser: String
  /// Whether it is about how the setting is declared, not about its value.
  public let isDeclaration: Bool
}

extension Fleet {
  /// The unresolved conflicts: settings changed concurrently on two hosts, in order.
  ///
  /// - Throws: `CofferError`.
  public func conflicts() throws -> [FleetConflict] {
    try connection.readFleets { try $0.conflicts(of: membership.id) }.map {
      FleetConflict(
        id: $0.id, collection: $0.collection, key: $0.key, version: $0.version, time: Self.date($0.time),
        winner: $0.winner, loser: $0.loser, isDeclaration: $0.declaration != nil)
    }
  }

  /// Sets a setting to the losing value, or declares it as it lost, as a new change, and removes the conflict from the list.
  ///
  /// - Throws: ``FleetError/conflictNotFound(id:)``; `CofferError.versionNotFound` if the history no longer has it.
  public func restore(_ conflict: FleetConflict) throws {
    try check(conflict)
    if conflict.isDeclaration { return try restoreDeclaration(conflict) }
    try connection.readWrite { transaction in
      try transaction.restoreObject(
        forKey: conflict.key, inCollection: conflict.collection, version: conflict.version)
    }
    try dismiss(conflict)
  }

  /// Makes the losing declaration that of the fleet; the next sync pushes it.
  private func restoreDeclaration(_ conflict: FleetConflict) throws {
    try connection.writeFleets { transaction in
      let lost = try transaction.conflicts(of: membership.id).first { $0.id == conflict.id }?.declaration
      guard let lost, var row = try transaction.declaration(conflict.key, in: conflict.collection, of: membership.id)
      else { throw FleetError.conflictNotFound(id: conflict.id) }
      row.declaration?.content = lost
      row.declaration?.own = try transaction.ownDeclaration(conflict.key, in: conflict.collection)?.json
      (row.version, row.isRemoved) = (StoredRecord.notInStep, false)
      try transaction.save(row, of: membership.id)
      transaction.noteDeclarations(of: lost.application)
      try transaction.removeConflict(conflict.id, of: membership.id)
    }
  }

  /// Removes a conflict from the list; the losing value stays in the history of its key.
  ///
  /// - Throws: ``FleetError/conflictNotFound(id:)``; `CofferError`.
  public func dismiss(_ conflict: FleetConflict) throws {
    try check(conflict)
    try connection.writeFleets { try $0.removeConflict(conflict.id, of: membership.id) }
  }

  private func check(_ conflict: FleetConflict) throws {
    guard try conflicts().contains(conflict) else { throw FleetError.conflictNotFound(id: conflict.id) }
  }

  /// Sets the rule for settings of a collection that were changed both here and elsewhere, on this host only.
  ///
  /// By default the later change wins; on a reader's host, the change from elsewhere. A reader's own changes are never shared: with
  /// `.oursWins` they stay in effect on its host only.
  ///
  /// - Throws: ``FleetError/collectionWaits(_:)``; `CofferError`.
  public func setRule(_ rule: FleetRule, forCollection collection: String) throws {
    try connection.writeFleets { transaction in
      let waiting = try Consent(transaction, membership.id, membership.members).waiting
      guard !waiting.contains(where: { $0.utf8.elementsEqual(collection.utf8) }) else {
        throw FleetError.collectionWaits(collection)
      }
      try transaction.setRule(rule.rawValue, for: collection, of: membership.id)
    }
  }
}
