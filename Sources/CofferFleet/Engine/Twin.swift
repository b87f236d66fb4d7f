import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Another host that acts as the same member, as far as a store can tell; see ``FleetStatus/twin``.
public struct FleetTwin: Sendable, Hashable {
  /// Whether there is one.
  ///
  /// Otherwise this store may have been put back to an earlier state, and has found its own later changes.
  public let isCertain: Bool
  /// When changes by this member that this store has not made were first found here.
  public let firstFound: Date
  /// When they were last found.
  public let lastFound: Date
  /// The name of the host on which the last ones were made, as that says; empty if it does not.
  public let host: String
}

/// What a store knows about another host with its identity, such as a machine that was cloned from the same image.
///
/// Both sign with the same keys, and each finds changes that the other has made. So does a host whose store was put back or has lost its
/// last commits in a power failure, but those were made on that host, or before it has committed again. What is made on a host of
/// another name, after a commit that this store remembers, is another's.
struct Twin: Equatable {
  enum Stage: UInt8 {
    /// Changes by the own member were found that this store has not made.
    case found = 1
    /// This store has committed since.
    case committed = 2
    /// Then more were found, made on another host.
    case certain = 3
  }

  private(set) var stage: Stage
  private(set) var firstFound: Int64
  private(set) var lastFound: Int64
  private(set) var host: String

  /// What is known, unless that is as old as what the fleet forgets.
  static func known(to transaction: FleetTransaction, of fleet: Int64, _ members: Members) throws -> Twin? {
    guard let twin = Twin(try transaction.twin(of: fleet)),
      transaction.time - twin.lastFound <= members.retention
    else { return nil }
    return twin
  }

  /// Notes changes by the own member that this store has not made.
  ///
  /// - Parameters:
  ///   - hosts: The names of the hosts on which they were made.
  ///   - isFollowing: Whether the commit in which they came follows the last one of this store.
  static func find(
    on hosts: Set<String>, isFollowing: Bool, _ transaction: FleetTransaction, of fleet: Int64, _ members: Members
  ) throws {
    let now = transaction.time
    let other = hosts.subtracting([transaction.hostName, ""]).min()
    var twin =
      try known(to: transaction, of: fleet, members)
      ?? Twin(stage: .found, firstFound: now, lastFound: now, host: "")
    twin.lastFound = now
    twin.host = other ?? hosts.min() ?? ""
    if twin.stage == .committed, isFollowing, other != nil { twin.stage = .certain }
    try transaction.setTwin(twin.bytes, of: fleet)
  }

  /// Notes that this store has committed.
  static func noteCommit(_ transaction: FleetTransaction, of fleet: Int64) throws {
    guard var twin = Twin(try transaction.twin(of: fleet)), twin.stage == .found else { return }
    twin.stage = .committed
    try transaction.setTwin(twin.bytes, of: fleet)
  }

  // MARK: Bytes

  private init(stage: Stage, firstFound: Int64, lastFound: Int64, host: String) {
    (self.stage, self.firstFound, self.lastFound, self.host) = (stage, firstFound, lastFound, host)
  }

  private var bytes: [UInt8] {
    var bytes = [stage.rawValue]
    bytes.append(number: firstFound)
    bytes.append(number: lastFound)
    return bytes + host.utf8
  }

  /// Nil for none, and for what another version may have written.
  private init?(_ bytes: [UInt8]?) {
    guard let bytes, bytes.count >= 17, let stage = Stage(rawValue: bytes[0]),
      let host = String(validating: bytes[17...], as: UTF8.self)
    else { return nil }
    func time(_ range: Range<Int>) -> Int64 { bytes[range].reduce(0) { $0 << 8 | Int64($1) } }
    self.init(stage: stage, firstFound: time(1..<9), lastFound: time(9..<17), host: host)
  }
}

extension FleetTwin {
  init(_ twin: Twin) {
    self.init(
      isCertain: twin.stage == .certain, firstFound: Fleet.date(twin.firstFound), lastFound: Fleet.date(twin.lastFound),
      host: twin.host)
  }
}
