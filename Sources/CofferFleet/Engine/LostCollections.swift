import Coffer

/// The collections that this member had, and has no longer: given back, what was removed meanwhile must not come back from here, also
/// after the fleet has forgotten the removal.
struct LostCollections: Equatable {
  struct Entry: Equatable {
    let collection: String
    /// The version of the members when it was lost.
    let version: UInt32
    /// The commit with which the store was in step there.
    let commit: UInt64
    /// The last commit of the store of which everything there was in step.
    let last: CommitNumber
  }

  private(set) var entries: [Entry] = []

  subscript(collection: String) -> Entry? { entries.first { $0.collection.utf8.elementsEqual(collection.utf8) } }

  /// Notes what this member has no longer, and forgets what is shared again: then it has no removals of before.
  ///
  /// Called before the records of these collections are removed.
  mutating func follow(from known: Membership, to members: Members, _ transaction: FleetTransaction) throws {
    entries.removeAll { entry in members.shared(entry.collection).map { $0.since > entry.version } ?? false }
    let given = try Readiness(transaction, known).given
    for name in given where !members.shares(name) && self[name] == nil {
      // What was taken with the last sync is in step, too, but not what was changed since.
      let isChanged = try transaction.hasKeysNotInStep(in: name, of: known.id)
      entries.append(
        Entry(
          collection: name, version: known.members.version, commit: known.seen,
          last: isChanged ? known.stored.pushed : try transaction.lastNumber()))
    }
  }

  /// Forgets collections that are taken again.
  mutating func remove(_ collections: [String]) {
    entries.removeAll { entry in collections.contains { $0.utf8.elementsEqual(entry.collection.utf8) } }
  }

  // MARK: Stored

  init(_ transaction: FleetTransaction, _ fleet: Int64) throws {
    guard let bytes = try transaction.note(.lost, of: fleet) else { return }
    do {
      entries = try bytes.withUnsafeBytes { try Self.entries(in: $0) }
    } catch let error as MalformedObject {
      throw CofferError.damaged(part: "fleets", reason: "the collections that a member has lost: \(error.reason)")
    }
  }

  func save(_ transaction: FleetTransaction, of fleet: Int64) throws {
    guard try self != LostCollections(transaction, fleet) else { return }
    try transaction.set(.lost, to: entries.isEmpty ? nil : bytes, of: fleet)
  }

  private var bytes: [UInt8] {
    var bytes: [UInt8] = [1]
    for entry in entries {
      bytes.append(number: entry.version)
      bytes.append(number: entry.commit)
      bytes.append(number: entry.last)
      bytes.append(text: entry.collection)
    }
    return bytes
  }

  private static func entries(in bytes: UnsafeRawBufferPointer) throws(MalformedObject) -> [Entry] {
    var reader = ByteReader(bytes)
    guard try reader.number(UInt8.self) == 1 else { throw MalformedObject(reason: "its version is unknown") }
    var entries: [Entry] = []
    while !reader.isAtEnd {
      let (version, commit) = (try reader.number(UInt32.self), try reader.number(UInt64.self))
      let last = try reader.number(CommitNumber.self)
      entries.append(Entry(collection: try reader.text(), version: version, commit: commit, last: last))
    }
    return entries
  }
}
