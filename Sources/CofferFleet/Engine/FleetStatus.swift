#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The state of a fleet on a host.
public struct FleetStatus: Sendable, Hashable {
  /// The fleet's name.
  public let fleet: String
  /// The carrier's address.
  public let carrier: String
  /// This host's name and role.
  public let member: String
  /// Its role.
  public let role: FleetRole
  /// Whether an admin's host has seen that this one has joined; until then it only reads.
  public let isAdmitted: Bool
  /// The shared collections that were agreed to here: this host takes and gives those that do not wait.
  public let collections: [String]
  /// Whether this host was invited to all collections of the fleet, and to those that are shared later.
  public let hasAllCollections: Bool
  /// Those that are sealed in the fleet, see ``Fleet/seal(collections:)``.
  public let sealedCollections: [String]
  /// Those that this host does not exchange now, and why.
  public let waits: [FleetWait]
  /// The number of the last commit that this host has seen.
  public let commit: UInt64
  /// When that was made, by the clock of its author; nil before the first sync.
  public let committed: Date?
  /// The member that made it; empty for a former member.
  public let committer: String
  /// Whether that commit is older than the fleet allows, so that the carrier may withhold later ones.
  public let isStale: Bool
  /// How old that may be; nil for any age.
  ///
  /// See ``Fleet/setGreatestAge(_:)``.
  public let greatestAge: Duration?
  /// When it was last in sync; nil for never.
  public let lastInStep: Date?
  /// How the last attempt ended.
  public let condition: FleetCondition
  /// The number of settings changed here that are not on the carrier yet.
  public let unpushedCount: Int
  /// The number of settings declared here in another way than on the carrier.
  public let unpushedDeclarationCount: Int
  /// The number of unresolved conflicts.
  public let conflictCount: Int
  /// The settings that cannot be shared and why, as sentences.
  public let problems: [String]
  /// Another host that acts as this member, such as a machine that was cloned from the same image; nil if there is no sign of one.
  ///
  /// It is known by its changes: of two hosts that only read, nothing is known.
  public let twin: FleetTwin?
}

/// The result of the last sync.
public enum FleetCondition: Sendable, Hashable {
  /// There was no sync yet.
  case unknown
  /// The store has what the carrier has.
  case inStep
  /// The store has what the carrier has, but the last commit, from this time, is older than the fleet allows: the carrier may withhold
  /// later ones.
  case stale(since: Date)
  /// The store has what the carrier has, except for collections that wait because they are sealed here or in the fleet: see
  /// ``FleetStatus/waits``.
  case waiting
  /// The carrier could not be reached, for this reason; the store serves what it has.
  case offline(String)
  /// The carrier, or the disk of the store, is full, for this reason: what waits is exchanged once there is room.
  case full(String)
  /// A problem that needs attention, with its reason; the store serves what it has.
  case stopped(String)
  /// The store is no longer a member.
  case left
}
