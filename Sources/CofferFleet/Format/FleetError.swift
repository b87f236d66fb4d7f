#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Why an operation on a fleet failed, as cases that a caller can act on.
///
/// After any error the store keeps and serves its contents.
public enum FleetError: Error, Hashable, Sendable {
  // MARK: What is on the carrier

  /// There is no fleet at this carrier.
  case fleetNotFound(carrier: String)
  /// There is already a fleet at this carrier; a fleet is never replaced.
  case fleetExists(carrier: String)
  /// An object does not parse or does not authenticate: it was changed, truncated, or swapped.
  case damaged(object: String, reason: String)
  /// An object was written by a newer version of Coffer.
  case newerFormat(object: String, found: Int, supported: Int)
  /// The carrier shows an earlier state than this host has seen: it was restored from a backup, or rolled back.
  ///
  /// `found` is nil if it is empty. See ``Fleet/acceptRollback()``.
  case rolledBack(seen: UInt64, found: UInt64?)
  /// The carrier shows a state that does not descend from the one that this host has seen: hosts were shown different ones.
  case forked(seen: UInt64, found: UInt64)

  // MARK: Members

  /// This store does not belong to this fleet.
  case notJoined
  /// The store is already a member of this fleet.
  case alreadyJoined
  /// This member was removed from the fleet.
  case removed
  /// This member's role does not allow it.
  case notAllowed(role: FleetRole)
  /// There is already a member with this name.
  case memberExists(name: String)
  /// There is no member with this name.
  case memberNotFound(name: String)
  /// The last admin cannot be removed: the members could never be changed again.
  case lastAdmin
  /// The last admin does not leave unasked: the members could never be changed again.
  case lastAdminLeaves
  /// A name is empty, longer than 64 bytes, or has control characters.
  case badName(String)
  /// The text is not an invitation.
  case badInvitation(reason: String)
  /// The carrier shows the fleet as it was before the invitation was made.
  case olderThanInvitation(carrier: String)
  /// The invitation was used already, by another host.
  case invitationUsed
  /// Only readers can be many hosts with one invitation.
  case manyMayOnlyRead
  /// Admins have all collections.
  case adminsHaveAll
  /// The fleet does not share a collection.
  case collectionNotShared(String)
  /// A fleet shares up to this number of collections.
  case tooManyCollections(limit: Int)
  /// The invitation expired on this date.
  case invitationExpired(Date)

  // MARK: This host

  /// A collection is shared with another fleet.
  case collectionShared(String)
  /// A collection does not wait for consent: it is not shared, or was agreed to.
  case collectionNotWaiting(String)
  /// A collection was shared after this host joined, and waits to be accepted.
  case collectionWaits(String)
  /// There is no such conflict, or it was resolved.
  case conflictNotFound(id: Int64)
  /// More than one carrier object can hold; nothing was sent.
  case tooLarge(object: String, byteCount: Int, limit: Int)
  /// Other hosts kept committing, and this host did not get its turn; try again.
  case busy
}

extension FleetError: CustomStringConvertible {
  /// What happened and what to do, in sentences; without keys and values.
  public var description: String {
    switch self {
    case .fleetNotFound(let carrier): "There is no fleet at \(carrier)."
    case .fleetExists(let carrier): "There is already a fleet at \(carrier). Choose another prefix or folder."
    case .damaged(let object, let reason):
      """
      The carrier's object \(object) is damaged: \(reason). Nothing was taken from it. If it stays so, restore the carrier from \
      a backup.
      """
    case .newerFormat(let object, let found, let supported):
      "The object \(object) has format \(found), and this program reads up to \(supported). Update it."
    case .rolledBack(let seen, let found):
      """
      The carrier was rolled back: this host has seen commit \(seen), and finds \
      \(found.map { "commit \($0)" } ?? "nothing"). \
      If a backup was restored, accept the rollback to push what the carrier has lost.
      """
    case .forked(let seen, let found):
      """
      The carrier's commit \(found) does not descend from commit \(seen), which this host has seen. Accept the rollback to \
      continue from it, and push what it lacks.
      """
    case .notJoined: "This store does not belong to that fleet."
    case .alreadyJoined:
      "This store is already a member of the fleet. To join with another invitation, leave the fleet first."
    case .removed:
      """
      This member was removed from the fleet; its store keeps the settings. To return, leave the fleet there, and join with \
      a new invitation.
      """
    case .notAllowed(let role):
      "This host is a \(role) of the fleet, which may not do this. Do it on the host of an admin."
    case .memberExists(let name): "There is already a member named \(name)."
    case .memberNotFound(let name): "There is no member named \(name)."
    case .lastAdmin: "The last admin cannot be removed. Invite another one first."
    case .lastAdminLeaves:
      """
      This host is the fleet's last admin: no one could invite or remove members after it has left. Invite another admin first, or \
      say that it leaves even so.
      """
    case .badName(let name): "\"\(name)\" is not a valid name: use 1 to 64 bytes without control characters."
    case .badInvitation(let reason): "Not an invitation: \(reason)."
    case .olderThanInvitation(let carrier):
      """
      The fleet at \(carrier) is from before the invitation: the carrier was put back, or is a copy that someone kept. Nothing was \
      taken from it.
      """
    case .invitationUsed:
      """
      The invitation was used already, and another host is that member. If it should not be, remove the member on an admin's \
      host, and invite it again.
      """
    case .manyMayOnlyRead:
      "Only a reader can be many hosts with one invitation. Invite each writer and admin by itself."
    case .adminsHaveAll: "An admin has all collections: it gives their keys to others."
    case .collectionNotShared(let name): "The fleet does not share the collection \"\(name)\"."
    case .tooManyCollections(let limit): "A fleet shares up to \(limit) collections."
    case .invitationExpired(let date): "The invitation expired on \(date). Ask for another one."
    case .collectionShared(let name):
      """
      The collection "\(name)" is already shared with another fleet. Leave that fleet, or choose another collection.
      """
    case .collectionNotWaiting(let name):
      "The collection \"\(name)\" does not wait to be accepted: the fleet does not share it, or this host has agreed already."
    case .collectionWaits(let name):
      "The collection \"\(name)\" was shared after this host joined, and waits. Accept it first."
    case .conflictNotFound(let id): "There is no conflict \(id)."
    case .tooLarge(let object, let byteCount, let limit):
      "\(object) takes \(byteCount) bytes, and the carrier holds objects of up to \(limit)."
    case .busy: "Other hosts kept committing, and this host did not get its turn. Try again."
    }
  }
}
