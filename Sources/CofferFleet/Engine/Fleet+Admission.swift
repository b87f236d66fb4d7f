import Coffer
import CofferCrypto

/// One invitation is one host: the host makes its own keys as it joins, and an admin's host lists these instead of the invitation's.
extension Fleet {
  /// Uses the invitation, unless that is done: what a host that joins does before it takes anything.
  ///
  /// - Throws: ``FleetError/invitationUsed`` if another host was faster.
  func claim(_ membership: Membership) async throws {
    guard let own = membership.ownIdentity else { return }
    let fleet = membership.authority.fleet
    let object = JoinRequest.object(own.member)
    let request = try JoinRequest.signed(by: membership.identity, and: own, in: fleet)
    do {
      let isFirst = try await carrier.commit(
        [.put(CarrierObject(name: object, bytes: request))], if: CarrierCondition(name: object, bytes: nil))
      guard isFirst else { throw FleetError.invitationUsed }
    } catch {
      // If the answer was lost, it may still be this host's.
      guard try await carrier.read([object]).first?.bytes == request else { throw error }
    }
  }

  /// Makes the invitation usable again, as far as possible, for a host that could not join.
  func unclaim() async {
    guard let own = membership.ownIdentity else { return }
    let object = JoinRequest.object(own.member)
    guard let request = try? await carrier.read([object]).first?.bytes,
      request.dropFirst(1 + MemberID.byteCount).starts(with: own.signingKey)
    else { return }
    _ = try? await carrier.commit([.remove(name: object)], if: CarrierCondition(name: object, bytes: request))
  }

  /// Admits the hosts that have used their invitations, and removes the members whose invitations have expired unused; on an admin's host.
  func admit() async throws {
    guard membership.mayManage else { return }
    let invited = membership.members.members.filter { $0.standing == .invited }
    guard !invited.isEmpty else { return }
    let fleet = membership.authority.fleet
    let now = try connection.readFleets { $0.time }
    let (expired, waiting) = (invited.filter { $0.isExpired(at: now) }, invited.filter { !$0.isExpired(at: now) })
    let objects = try await carrier.read(waiting.map { JoinRequest.object($0.id) })
    let requests = waiting.compactMap { member in
      // One that does not open keeps no one from joining but its member, who needs another invitation.
      objects.first { $0.name == JoinRequest.object(member.id) }.flatMap {
        try? JoinRequest(opening: $0.bytes, of: member, in: fleet)
      }
    }
    guard !requests.isEmpty || !expired.isEmpty else { return }
    do {
      try await edit { members, _ in
        for request in requests { members.admit(request) }
        // Who has such an invitation can read until then, with a program that ignores the time.
        return try members.remove(unchanged: expired)
      }
    } catch FleetError.busy {
      // The next sync does it.
      return
    }
    let done = requests.map(\.member) + expired.map(\.id)
    for object in done.map(JoinRequest.object) where objects.contains(where: { $0.name == object }) {
      _ = try await make([.remove(name: object)])
    }
  }
}

extension Members {
  /// Removes the members that are still as they were.
  ///
  /// - Returns: Whether there were any.
  fileprivate mutating func remove(unchanged members: [Member]) throws -> Bool {
    var hasRemoved = false
    for member in members where self[member.id] == member {
      try remove(member)
      hasRemoved = true
    }
    return hasRemoved
  }
}
