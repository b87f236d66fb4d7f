import CofferCrypto
import CofferStorage

/// What a store knows about a fleet that it belongs to: a row of the table `fleets`.
package struct StoredFleet: Sendable {
  /// The number of the row; nil before it is inserted.
  package var id: Int64?
  /// The ID of the fleet.
  package var fleet: [UInt8]
  /// The carrier's address.
  package var carrier: String
  /// This store's member ID, and the seed of its private keys; behind that of the invitation until an admin has seen that the store
  /// has joined.
  package var member: [UInt8]
  package var identity: SecretBytes
  /// SHA-256 of the first version of the members, from which all others are verified.
  package var firstAuthority: [UInt8]
  /// The commit that the store is in sync with; the highest that it has seen.
  package var number: Int64
  /// The commit of the store up to which its changes were searched.
  package var pushed: CommitNumber
  /// When it was last in sync, in milliseconds since 1970.
  package var synced: Int64
  /// Where the carrier's changes continue; nil if everything must be read.
  package var revision: String?
  /// The verified objects of the head and the members.
  package var head: [UInt8]
  package var authority: [UInt8]
  package var members: [UInt8]
  /// The sets of the records of each collection, see FORMAT.md.
  package var sum: [UInt8]

  package init(
    fleet: [UInt8], carrier: String, member: [UInt8], identity: SecretBytes, firstAuthority: [UInt8], number: Int64 = 0,
    pushed: CommitNumber = 0, synced: Int64 = 0, revision: String? = nil, head: [UInt8] = [], authority: [UInt8],
    members: [UInt8], sum: [UInt8]
  ) {
    (self.fleet, self.carrier, self.member, self.identity) = (fleet, carrier, member, identity)
    (self.firstAuthority, self.number, self.pushed, self.synced) = (firstAuthority, number, pushed, synced)
    (self.revision, self.head, self.authority, self.members) = (revision, head, authority, members)
    self.sum = sum
  }
}

extension StoredFleet {
  /// The size of a set in `sum`: a digest for each value of a name's first byte.
  package static let setByteCount = 256 * 32

  /// `sum` without a set.
  package static let emptySum: [UInt8] = [1]

  /// The sizes of `sum` before it had a set for each collection.
  ///
  /// A store with such a one opens; its fleet has to be joined again.
  private static let earlierSumByteCounts = [2048, setByteCount]

  private var hasPlausibleSum: Bool {
    Self.earlierSumByteCounts.contains(sum.count)
      || sum.starts(with: Self.emptySum) && (sum.count - 1).isMultiple(of: 8 + Self.setByteCount)
  }

  /// Whether the store has left the fleet, and keeps only what it was in step with, for when it joins again.
  package var hasLeft: Bool { identity.withUnsafeBytes { $0.allSatisfy { $0 == 0 } } }

  /// Throws if a part has a form that no fleet has; nothing of it is authenticated here.
  func check() throws {
    for (bytes, name) in [(fleet, "ID"), (member, "member")] where bytes.count != 16 {
      throw FleetTables.damaged("the \(name) of a fleet has \(bytes.count) bytes")
    }
    guard hasPlausibleSum else { throw FleetTables.damaged("the sum of a fleet has \(sum.count) bytes") }
    // Two before an admin has seen that the store has joined: the invitation's, and its own.
    guard [32, 64].contains(identity.count) else {
      throw FleetTables.damaged("the identity of a fleet has \(identity.count) bytes")
    }
    guard !firstAuthority.isEmpty else { throw FleetTables.damaged("the first authority of a fleet is missing") }
    // Each object begins with the version of its format. Before the first sync there is no head.
    for (object, name) in [(authority, "authority"), (members, "members"), (head.isEmpty ? [1] : head, "head")]
    where object.first ?? 0 == 0 {
      throw FleetTables.damaged("the \(name) of a fleet has no version")
    }
    guard number >= 0, pushed >= -1, number <= ChangeLog.maximumNumber, pushed <= ChangeLog.maximumNumber else {
      throw FleetTables.damaged("the position of a fleet is impossible (\(number), \(pushed))")
    }
  }
}

/// What a store knows about a record: a row of the table `fleet_records`, or of `fleet_declarations`.
package struct StoredRecord: Sendable, Equatable {
  package var collection: String
  package var key: String
  package var name: [UInt8]
  package var counter: Int64
  package var clock: Int64
  package var author: [UInt8]
  package var isRemoved: Bool
  package var expires: Int64?
  /// The item's version when it was last in sync: 0 for no item, `notInStep` if it never was; `inStep` for a declaration.
  ///
  /// Below `notInStep` the carrier has lost it, see `lostVersion`.
  package var version: CommitNumber
  /// SHA-256 of the object.
  package var digest: [UInt8]
  /// Of the record of a declaration; nil for one of a value.
  package var declaration: StoredDeclaration?

  package static let notInStep: Int64 = -1
  package static let inStep: Int64 = 1

  /// The version of a record whose change the carrier has lost: pushed again, it is not a new change.
  package static func lost(_ version: CommitNumber) -> CommitNumber { notInStep - 1 - version }

  /// The item's version when it was last in sync, if the carrier has lost that change; nil if it has not.
  package var lostVersion: CommitNumber? { version < Self.notInStep ? Self.notInStep - 1 - version : nil }

  package init(
    collection: String, key: String, name: [UInt8], counter: Int64, clock: Int64, author: [UInt8], isRemoved: Bool,
    expires: Int64?, version: CommitNumber, digest: [UInt8], declaration: StoredDeclaration? = nil
  ) {
    self.declaration = declaration
    (self.collection, self.key, self.name, self.counter) = (collection, key, name, counter)
    (self.clock, self.author, self.isRemoved, self.expires) = (clock, author, isRemoved, expires)
    (self.version, self.digest) = (version, digest)
  }

  /// Whether its parts have the form of those of a record.
  var isPlausible: Bool {
    !name.isEmpty && author.count == 16 && (1...1 << 60).contains(counter)
      && (Self.notInStep...ChangeLog.maximumNumber).contains(lostVersion ?? version)
  }

  /// Whether it has no value at a given time: removed, or expired.
  package func isAbsent(at time: Int64) -> Bool { isRemoved || expires.map { $0 <= time } ?? false }
}

/// The losing value of a concurrent change: a row of the table `fleet_conflicts`.
package struct StoredConflict: Sendable, Equatable {
  package let id: Int64
  package let collection: String
  package let key: String
  /// The version of the losing value in the key's history; 0 for a declaration, which has none.
  package let version: CommitNumber
  package let time: Int64
  package let winner: String
  package let loser: String
  /// The losing declaration, if it is about that.
  package let declaration: SharedDeclaration?
}
