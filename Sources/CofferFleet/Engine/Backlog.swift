import Coffer

/// The collections of which this store has passed over commits, as it was not ready for them; see `Readiness`.
///
/// There it is like a store that was away since: it keeps what it was in step with, and merges once it is ready, with all records at hand.
struct Backlog: Equatable {
  struct Entry: Equatable {
    let collection: String
    /// The commit with which the store is in step there.
    let commit: UInt64
    /// How the commits since relate to that one.
    var relation: Fleet.Relation
    /// Whether the store has joined since, and had nothing of the collection from the fleet.
    var isOfJoining: Bool
  }

  private(set) var entries: [Entry] = []

  subscript(collection: String) -> Entry? { entries.first { $0.collection.utf8.elementsEqual(collection.utf8) } }

  mutating func pass(_ new: Entry) {
    guard let index = entries.firstIndex(where: { $0.collection.utf8.elementsEqual(new.collection.utf8) }) else {
      return entries.append(new)
    }
    entries[index].relation = max(entries[index].relation, new.relation)
    if new.isOfJoining { entries[index].isOfJoining = true }
  }

  /// Forgets all other collections.
  mutating func keep(_ collections: [String]) {
    entries.removeAll { entry in !collections.contains { $0.utf8.elementsEqual(entry.collection.utf8) } }
  }

  // MARK: Stored

  init(_ transaction: FleetTransaction, _ fleet: Int64) throws {
    guard let bytes = try transaction.note(.passed, of: fleet) else { return }
    do {
      entries = try bytes.withUnsafeBytes { try Self.entries(in: $0) }
    } catch let error as MalformedObject {
      throw CofferError.damaged(part: "fleets", reason: "what a fleet was not ready for: \(error.reason)")
    }
  }

  func save(_ transaction: FleetTransaction, of fleet: Int64) throws {
    guard try self != Backlog(transaction, fleet) else { return }
    try transaction.set(.passed, to: entries.isEmpty ? nil : bytes, of: fleet)
  }

  private var bytes: [UInt8] {
    var bytes: [UInt8] = [1]
    for entry in entries {
      bytes.append(number: entry.commit)
      bytes.append(entry.relation.rawValue)
      bytes.append(entry.isOfJoining ? 1 : 0)
      bytes.append(text: entry.collection)
    }
    return bytes
  }

  private static func entries(in bytes: UnsafeRawBufferPointer) throws(MalformedObject) -> [Entry] {
    var reader = ByteReader(bytes)
    guard try reader.number(UInt8.self) == 1 else { throw MalformedObject(reason: "its version is unknown") }
    var entries: [Entry] = []
    while !reader.isAtEnd {
      let commit = try reader.number(UInt64.self)
      let (relation, isOfJoining) = (Fleet.Relation(rawValue: try reader.number()), try reader.number(UInt8.self))
      guard let relation, isOfJoining <= 1 else { throw MalformedObject(reason: "it has an unknown flag") }
      entries.append(
        Entry(collection: try reader.text(), commit: commit, relation: relation, isOfJoining: isOfJoining == 1))
    }
    return entries
  }
}

extension Fleet.Relation: Comparable {
  static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
