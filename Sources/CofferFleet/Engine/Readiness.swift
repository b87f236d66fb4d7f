import Coffer

/// A shared collection that this host does not exchange, or not in both directions, and why.
public struct FleetWait: Sendable, Hashable {
  /// Why a collection waits.
  ///
  /// Later versions may add cases: have a `default`.
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// It was shared after this host joined, and waits for ``Fleet/accept(collections:)``.
    case consent
    /// It is sealed here, and the program that syncs has not unlocked the vault; see `Vault.unlock(_:)`.
    case vaultLocked
    /// It is sealed in the fleet and not here: seal it, see `Database.seal(collection:)`.
    case notSealedHere
    /// It is sealed here and not in the fleet, where others would keep its values unsealed: what is set here stays here, until an admin calls
    /// ``Fleet/seal(collections:)``. What others set is taken.
    case notSealedInFleet
  }

  /// The collection.
  public let collection: String
  /// Why it waits.
  public let reason: Reason
}

/// Which of the collections that were agreed to this host can exchange now.
///
/// Values of a collection that is sealed here are opened with the vault's key as they leave, and sealed under it as they come. What is sealed in
/// the fleet is taken only where it is sealed, too: its values never land in a store where the store's key alone opens them.
struct Readiness {
  let consent: Consent
  let backlog: Backlog
  /// Why collections are not taken.
  private var obstacles: [ByteString: FleetWait.Reason] = [:]
  /// Those that are only taken, as the fleet has them unsealed.
  private var onlyTaken: Set<ByteString> = []

  init(_ transaction: FleetTransaction, _ membership: Membership) throws {
    consent = try Consent(transaction, membership.id, membership.members)
    backlog = try Backlog(transaction, membership.id)
    var hasKey: Bool?
    for name in consent.agreed {
      let isSealedInFleet = membership.members.shared(name)?.isSealed ?? false
      guard try transaction.isSealed(name) else {
        if isSealedInFleet { obstacles[ByteString(name)] = .notSealedHere }
        continue
      }
      let isUnlocked = try hasKey ?? transaction.hasVaultKey()
      hasKey = isUnlocked
      if !isUnlocked {
        obstacles[ByteString(name)] = .vaultLocked
      } else if !isSealedInFleet, membership.me.role.mayWrite {
        onlyTaken.insert(ByteString(name))
      }
    }
  }

  /// Those that can be taken, if all records are at hand where commits were passed over.
  func taken(hasAllRecords: Bool) -> [String] {
    consent.agreed.filter { obstacles[ByteString($0)] == nil && (hasAllRecords || backlog[$0] == nil) }
  }

  /// Those whose changes here can be pushed.
  var given: [String] { taken(hasAllRecords: false).filter { !onlyTaken.contains(ByteString($0)) } }

  /// The others.
  var notGiven: [String] {
    let given = Set(given.map(ByteString.init))
    return consent.agreed.filter { !given.contains(ByteString($0)) }
  }

  /// Those that can be taken again, for which all records have to be read.
  var resumable: [String] { consent.agreed.filter { obstacles[ByteString($0)] == nil && backlog[$0] != nil } }

  /// What waits.
  ///
  /// A locked vault delays nothing as long as nothing has changed, here or elsewhere.
  func waits(_ transaction: FleetTransaction, _ membership: Membership) throws -> [FleetWait] {
    let notGiven = notGiven
    // What is changed on a reader's host stays there anyway.
    let changed = membership.me.role.mayWrite ? try kept(transaction, membership) : []
    let held = notGiven.compactMap { name -> FleetWait? in
      let name = ByteString(name)
      guard let reason = obstacles[name] ?? (onlyTaken.contains(name) ? .notSealedInFleet : nil) else { return nil }
      let waits = reason == .notSealedHere || changed.contains(name) || backlog[name.string] != nil
      return waits ? FleetWait(collection: name.string, reason: reason) : nil
    }
    return consent.waiting.map { FleetWait(collection: $0, reason: .consent) } + held
  }

  /// The collections in which something was set or declared here that cannot be pushed yet.
  func kept(_ transaction: FleetTransaction, _ membership: Membership) throws -> Set<ByteString> {
    let notGiven = notGiven
    let values = try transaction.localChanges(of: membership.stored, in: notGiven, withValues: false)
    let declarations = try transaction.localDeclarations(
      of: membership.stored, in: notGiven, besides: consent.agreed)
    return Set(values.joined().map { ByteString($0.collection) } + declarations.map { ByteString($0.collection) })
  }
}
