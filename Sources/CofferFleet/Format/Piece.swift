import CofferCrypto

/// Some of the changes of a commit that did not fit into one request.
///
/// It has sealed records; the head that names it has its digest.
struct Piece {
  /// The new record; nil removes it.
  typealias Change = (place: [UInt8], record: [UInt8]?)

  private(set) var bytes = [Format.version]

  /// The size of a change, in bytes.
  static func byteCount(of change: Change) -> Int { FleetKeys.placeByteCount + 4 + (change.record?.count ?? 0) }

  mutating func append(_ change: Change) {
    bytes += change.place
    bytes.append(number: UInt32(change.record?.count ?? 0))
    bytes += change.record ?? []
  }

  /// The changes, by the places of records.
  static func changes(in bytes: [UInt8], _ object: String) throws -> [Change] {
    try Format.read(bytes, object) { reader in
      var changes: [Change] = []
      while !reader.isAtEnd {
        let place = try reader.array(FleetKeys.placeByteCount)
        let record = try reader.counted()
        changes.append((place, record.isEmpty ? nil : Array(record)))
      }
      return changes
    }
  }

  static func object(_ id: [UInt8], _ keys: FleetKeys) -> String { "s/\(keys.folder)/\(id.hex)" }
}
