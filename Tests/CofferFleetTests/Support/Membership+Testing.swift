@testable import Coffer
@testable import CofferFleet

extension Membership {
  /// The keys of the first collection, which is that of most tests.
  var first: CollectionKeys { keys.collections[0] }

  /// A head by this member over all records among objects that it can read.
  func nextHead(over objects: [String: [UInt8]], time: Int64 = 0) throws -> NextHead {
    let records = try objects.compactMap { name, bytes in
      try keys.place(ofObject: name).map { (place: $0, digest: try bytes.digest) }
    }
    let grouped = Dictionary(grouping: records) { FleetKeys.folder(of: $0.place) }
    let changes = try Dictionary(
      uniqueKeysWithValues: keys.collections.map { keys in
        let records = grouped[keys.folder] ?? []
        let set = try RecordSet(records.map { (CollectionKeys.name(of: $0.place), $0.digest) })
        return (keys.folder, CollectionChange(set: set, recordCount: UInt64(records.count)))
      })
    return try nextHead(changes, time: time)
  }
}
