import Coffer

/// Which of a fleet's collections this host takes and gives.
///
/// Those that were shared when it joined are agreed to; one that is shared later waits until someone agrees to it here. So an admin
/// does not get the contents of a collection, or set them, only by sharing its name.
struct Consent {
  /// In the place of a rule.
  private static let waits: Int64 = 3

  let agreed: [String]
  let waiting: [String]

  init(_ transaction: FleetTransaction, _ fleet: Int64, _ members: Members) throws {
    let rules = try transaction.rules(of: fleet)
    agreed = members.collections.filter { rules[$0] != Self.waits }
    waiting = members.collections.filter { rules[$0] == Self.waits }
  }

  func isAgreed(_ collection: String) -> Bool { agreed.contains { $0.utf8.elementsEqual(collection.utf8) } }

  /// Notes which collections are shared now.
  ///
  /// - Parameter new: Those that have to wait.
  static func adopt(_ members: Members, new: [String], of fleet: Int64, _ transaction: FleetTransaction) throws {
    for (name, rule) in try transaction.rules(of: fleet) where rule == waits && !members.shares(name) {
      try transaction.removeRule(for: name, of: fleet)
    }
    for name in new { try transaction.setRule(waits, for: name, of: fleet) }
  }

  /// Agrees to collections that wait.
  static func agree(to names: [String], of fleet: Int64, _ transaction: FleetTransaction) throws {
    let rules = try transaction.rules(of: fleet)
    for name in names where rules[name] == waits {
      try transaction.removeRule(for: name, of: fleet)
      // They are merged as those of a new one.
      try transaction.removeRecords(in: name, of: fleet)
    }
  }
}
