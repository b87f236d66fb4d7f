import Coffer
import CofferCrypto

/// The digest of a set of records, of each name once and in order, that is updated in parts.
///
/// There are as many buckets as a name's first byte has values. The digest of a bucket covers its sorted names with the digests of their
/// objects, and the digest of the set covers those of the buckets. So two sets have the same digest only if they are equal.
struct RecordSet: Equatable, Sendable {
  typealias Entry = (name: [UInt8], digest: [UInt8])
  /// The place of a record: the folder of its collection, and its name.
  typealias Placed = (place: [UInt8], digest: [UInt8])

  /// The digests of the buckets, one after another; zeros for an empty one.
  private(set) var bytes = [UInt8](repeating: 0, count: byteCount)

  static let byteCount = StoredFleet.setByteCount

  /// The empty set.
  init() {}

  /// Nil if the number of bytes is not that of the buckets.
  init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// The set of these records, in any order.
  ///
  /// - Precondition: Each name occurs once, and is not empty.
  init(_ records: some Sequence<Entry>) throws {
    var buckets = [[Entry]](repeating: [], count: 256)
    for record in records { buckets[Int(record.name[0])].append(record) }
    for (first, bucket) in buckets.enumerated() where !bucket.isEmpty { try set(bucket, at: UInt8(first)) }
  }

  /// The sets of these records, in any order, by folder.
  static func sets(_ records: some Sequence<Placed>) throws -> [[UInt8]: RecordSet] {
    try Dictionary(grouping: records) { FleetKeys.folder(of: $0.place) }.mapValues { records in
      try RecordSet(records.lazy.map { (CollectionKeys.name(of: $0.place), $0.digest) })
    }
  }

  /// Applies changes of records.
  ///
  /// - Parameters:
  ///   - changes: The new digests by name; nil removes the record.
  ///   - bucket: The records before the changes whose names begin with a byte.
  mutating func update(
    _ changes: [[UInt8]: [UInt8]?], in bucket: (_ first: UInt8) throws -> [Entry]
  ) throws {
    for (first, changes) in Dictionary(grouping: changes, by: { $0.key[0] }) {
      var digests = Dictionary(uniqueKeysWithValues: try bucket(first).map { ($0.name, $0.digest) })
      for (name, digest) in changes { digests[name] = digest }
      try set(digests.map { ($0.key, $0.value) }, at: first)
    }
  }

  /// Applies changes to the sets of collections.
  ///
  /// - Parameters:
  ///   - sets: By folder.
  ///   - changes: The new digests by place; nil removes the record.
  ///   - bucket: The records before the changes whose places begin with these bytes.
  static func update(
    _ sets: inout [[UInt8]: RecordSet], _ changes: [[UInt8]: [UInt8]?],
    in bucket: (_ start: [UInt8]) throws -> [(name: [UInt8], digest: [UInt8])]
  ) throws {
    for (folder, changes) in Dictionary(grouping: changes, by: { FleetKeys.folder(of: $0.key) }) {
      let named = Dictionary(uniqueKeysWithValues: changes.map { (CollectionKeys.name(of: $0.key), $0.value) })
      try sets[folder, default: RecordSet()].update(named) { first in
        try bucket(folder + [first]).map { (CollectionKeys.name(of: $0.name), $0.digest) }
      }
    }
  }

  private mutating func set(_ bucket: [Entry], at first: UInt8) throws {
    var covered: [UInt8] = []
    for record in bucket.sorted(by: { $0.name.lexicographicallyPrecedes($1.name) }) {
      covered += record.name
      covered += record.digest
    }
    let digest = bucket.isEmpty ? [UInt8](repeating: 0, count: SHA256.byteCount) : try covered.digest
    bytes.replaceSubrange(Int(first) * SHA256.byteCount..<(Int(first) + 1) * SHA256.byteCount, with: digest)
  }

  /// The digest of the set in a head.
  var digest: [UInt8] { get throws { try (Self.label + bytes).digest } }

  private static let label = [UInt8]("coffer fleet v1 set".utf8)
}
