@testable import CofferFleet

extension FleetStatus {
  /// The collections that wait to be accepted.
  var waitingCollections: [String] { waits.filter { $0.reason == .consent }.map(\.collection) }

  /// The collections that wait because they are sealed here or in the fleet, and why.
  var held: [String: FleetWait.Reason] {
    Dictionary(uniqueKeysWithValues: waits.filter { $0.reason != .consent }.map { ($0.collection, $0.reason) })
  }
}
