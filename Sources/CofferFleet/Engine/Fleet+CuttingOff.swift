extension Fleet {
  /// The records of the state that this store is in step with, on a carrier whose state cannot be verified.
  ///
  /// They count only as far as they have the digests that this store knows.
  ///
  /// - Parameter damage: Why it cannot; thrown if there is no earlier state, or another admin has changed the members since.
  func verifiedView(behind damage: FleetError) async throws -> CarrierView {
    guard let head = membership.head, try await !nextAuthority().isSigned else { throw damage }
    var pieces: [Piece.Change] = []
    do {
      pieces = try await self.pieces(of: head, membership.keys)
    } catch FleetError.damaged {
      // Another commit has moved them to their own objects, or they are lost.
    }
    guard var view = try await CarrierView.readAll(carrier, CarrierBound(head, membership.keys)) else { throw damage }
    for (place, record) in pieces { view.objects[FleetKeys.object(place)] = .some(record) }
    (view.head, view.isCutOff) = (membership.stored.head, true)
    return view
  }

  /// The condition of a version of the members that replaces any head: no admin has published one meanwhile.
  func unpublishedCondition() async throws -> CarrierCondition {
    let next = try await nextAuthority()
    return CarrierCondition(
      name: Authority.object(membership.authority.version + 1), bytes: next.isSigned ? nil : next.bytes)
  }

  /// What is in the place of the next version of the members, and whether an admin has signed it.
  private func nextAuthority() async throws -> (bytes: [UInt8]?, isSigned: Bool) {
    let bytes = try await carrier.read([Authority.object(membership.authority.version + 1)]).first?.bytes
    guard let bytes else { return (nil, false) }
    do {
      _ = try Authority(bytes, after: membership.authority, digest: membership.authorityDigest)
      return (bytes, true)
    } catch FleetError.damaged {
      return (bytes, false)
    }
  }
}
