import Coffer
import CofferFleet
import Foundation

/// Pushes many settings, and pulls them on another host.
///
/// First measures etcd alone with as many objects of that size; at last, a tenth of the settings through a folder, where each is
/// a file that is synced to disk.
func measureFirstSync(_ cluster: Cluster, _ folder: String, count: Int) async throws {
  try await measureRawObjects(try Fleet.carrier(at: cluster.address("raw")), count: count)
  for (carrier, address, count) in [
    ("etcd", cluster.address("many"), count), ("a folder", "file://\(folder)/many", count / 10),
  ] {
    let (office, web) = (try Host(in: folder), try Host(in: folder))
    try await office.connection.readWrite { transaction in
      for number in 0..<count {
        try transaction.setObject("value \(number)", forKey: "key-\(number)", inCollection: "web")
      }
    }
    let fleet = try await office.create(at: address)
    try await measure("first sync, \(carrier): push", count) { _ = try await fleet.sync() }
    let invitation = try await fleet.invite("web", role: .reader)
    try await measure("first sync, \(carrier): pull", count) { _ = try await web.join(invitation) }
  }
}

/// Puts and reads as many objects of a record's size as a first sync does, without a fleet: an upper bound.
private func measureRawObjects(_ carrier: any Carrier, count: Int) async throws {
  let head = CarrierObject(name: "head", bytes: [1])
  _ = try await carrier.commit([.put(head)], if: CarrierCondition(name: "head", bytes: nil))
  let condition = CarrierCondition(name: "head", bytes: head.bytes)
  let requestSize = carrier.limits.operationCount - 1
  let requests = stride(from: 0, to: count, by: requestSize).map { start in
    (start..<min(start + requestSize, count)).map { number in
      CarrierChange.put(CarrierObject(name: "r/\(number)", bytes: [UInt8](repeating: UInt8(number & 255), count: 170)))
    }
  }
  try await measure("etcd alone: put", count) {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, request) in requests.enumerated() {
        if number >= 4 { _ = try await group.next() }
        group.addTask { _ = try await carrier.commit(request, if: condition) }
      }
      try await group.waitForAll()
    }
  }
  var objectCount = 0
  try await measure("etcd alone: read all", count) {
    _ = try await carrier.readAll { objectCount += $0.count }
  }
}

/// Reports the time of an operation, and the processor time of this process.
func measure(_ what: String, _ count: Int, _ body: () async throws -> Void) async throws {
  let (start, used) = (ContinuousClock.now, cpuTime())
  try await body()
  let seconds = start.duration(to: .now).milliseconds / 1000
  report(
    what,
    String(
      format: "%d in %.1f s, %.0f records/s; %.1f s of processor time in this process", count, seconds,
      Double(count) / seconds,
      cpuTime() - used))
}
