import Coffer

/// The collections that this member had, and has no longer: given back, what was removed meanwhile must not come back from here, also
/// after the fleet has forgotten the removal.
struct LostCollections {
  struct Entry {
    let collection: String
    /// The version of the members when it was lost.
    let version: UInt32
    /// The commit with which the store was in step there.
    let commit: UInt64
    /// The last commit of the store then.
    let last: CommitNumber
    /// What was changed or removed here, and not pushed, with the record that it was in step with; nil for one that the fleet never had.
    ///
    /// Given back, it is merged as on a host that was away.
    let changed: [ByteString: StoredRecord?]

    /// Whether the store has had an item from the fleet, and not changed it since.
    func isAsTaken(_ key: String, _ version: CommitNumber) -> Bool {
      version <= last && changed[ByteString(key)] == nil
    }
  }

  private(set) var entries: [Entry] = []

  subscript(collection: String) -> Entry? { entries.first { $0.collection.utf8.elementsEqual(collection.utf8) } }

  /// Notes what this member has no longer, and forgets what is shared again: then it has no removals of before.
  ///
  /// Called before the records of these collections are removed.
  mutating func follow(from known: Membership, to members: Members, _ transaction: FleetTransaction) throws {
    entries.removeAll { entry in members.shared(entry.collection).map { $0.since > entry.version } ?? false }
    let (agreed, backlog) = (
      try Consent(transaction, known.id, known.members).agreed, try Backlog(transaction, known.id)
    )
    for name in agreed where !members.shares(name) {
      // Nothing of it was ever taken.
      if try backlog[name]?.isOfJoining ?? false && !transaction.shares(name, in: known.id) { continue }
      try lose(name, since: known.members.version, backlog[name]?.commit ?? known.seen, transaction, known.id)
    }
  }

  /// The same for a store that had left the fleet, and joins again with fewer collections.
  mutating func follow(from left: StoredFleet, to members: Members, _ transaction: FleetTransaction) throws {
    guard let id = left.id else { return }
    entries.removeAll { entry in members.shared(entry.collection).map { $0.since > entry.version } ?? false }
    let (version, backlog) = (try Authority(verified: left.authority).version, try Backlog(transaction, id))
    for name in try transaction.collections(of: id) where !members.shares(name) {
      try lose(name, since: version, backlog[name]?.commit ?? UInt64(clamping: left.number), transaction, id)
    }
  }

  private mutating func lose(
    _ name: String, since version: UInt32, _ commit: UInt64, _ transaction: FleetTransaction, _ fleet: Int64
  ) throws {
    guard self[name] == nil else { return }
    entries.append(
      Entry(
        collection: name, version: version, commit: commit, last: try transaction.lastNumber(),
        changed: Dictionary(
          try transaction.notInStep(in: name, of: fleet).map { (ByteString($0.key), $0.record) },
          uniquingKeysWith: { first, _ in first })))
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
    let bytes = entries.isEmpty ? nil : bytes
    guard try transaction.note(.lost, of: fleet) != bytes else { return }
    try transaction.set(.lost, to: bytes, of: fleet)
  }

  private var bytes: [UInt8] {
    var bytes: [UInt8] = [1]
    for entry in entries {
      bytes.append(number: entry.version)
      bytes.append(number: entry.commit)
      bytes.append(number: entry.last)
      bytes.append(text: entry.collection)
      bytes.append(number: UInt32(entry.changed.count))
      for (key, record) in entry.changed.sorted(by: { $0.key < $1.key }) {
        bytes.append(text: key.string)
        bytes.append(record == nil ? 0 : 1)
        guard let record else { continue }
        bytes.append(number: record.counter)
        bytes.append(number: record.clock)
        bytes += record.author
        bytes.append(record.isRemoved ? 1 : 0)
        bytes.append(number: record.expires ?? .max)
        bytes.append(number: record.version)
      }
    }
    return bytes
  }

  private static func entries(in bytes: UnsafeRawBufferPointer) throws(MalformedObject) -> [Entry] {
    var reader = ByteReader(bytes)
    guard try reader.number(UInt8.self) == 1 else { throw MalformedObject(reason: "its version is unknown") }
    var entries: [Entry] = []
    while !reader.isAtEnd {
      let (version, commit) = (try reader.number(UInt32.self), try reader.number(UInt64.self))
      let (last, collection) = (try reader.number(CommitNumber.self), try reader.text())
      var changed: [ByteString: StoredRecord?] = [:]
      for _ in 0..<(try reader.number(UInt32.self)) {
        let key = try reader.text()
        changed[ByteString(key)] = .some(try record(of: key, in: collection, &reader))
      }
      entries.append(Entry(collection: collection, version: version, commit: commit, last: last, changed: changed))
    }
    return entries
  }

  private static func record(
    of key: String, in collection: String, _ reader: inout ByteReader
  ) throws(MalformedObject) -> StoredRecord? {
    guard try reader.number(UInt8.self) == 1 else { return nil }
    let (counter, clock) = (try reader.number(Int64.self), try reader.number(Int64.self))
    let author = try reader.array(MemberID.byteCount)
    let isRemoved = try reader.number(UInt8.self) == 1
    let (expires, version) = (try reader.number(Int64.self), try reader.number(CommitNumber.self))
    return StoredRecord(
      collection: collection, key: key, name: [], counter: counter, clock: clock, author: author, isRemoved: isRemoved,
      expires: expires == .max ? nil : expires, version: version, digest: [])
  }
}
