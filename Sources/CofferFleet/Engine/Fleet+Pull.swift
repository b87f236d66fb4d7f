import Coffer
import CofferCrypto

extension Fleet {
  /// Another program has synced the store meanwhile, so start again.
  struct Overtaken: Error {}

  /// Pulls the carrier's state.
  ///
  /// - Parameters:
  ///   - isRollbackAccepted: Whether the carrier may have less than this host has seen.
  ///   - comparesAll: Whether to read all records even if the head is the one last seen.
  /// - Returns: What was taken; nil if there is nothing new.
  @discardableResult
  func pull(
    isRollbackAccepted: Bool = false, comparesAll: Bool = false, report: inout SyncReport
  ) async throws -> CarrierView? {
    let readsAll = isRollbackAccepted || comparesAll
    var attempt = 0
    while true {
      attempt += 1
      let head = try await currentHead()
      guard head != membership.stored.head || readsAll else { return nil }
      do {
        let view = try await view(upTo: head, isComplete: readsAll || attempt > 1)
        return try await take(view, isRollbackAccepted: isRollbackAccepted, report: &report)
      } catch let error as FleetError where attempt < 3 && Self.mayRead(error) {
        // Something changed during the read, or changes were missed. Read everything next time.
        continue
      } catch is Overtaken where attempt < Self.attemptCount {
        try reload()
      }
    }
  }

  /// Reads the head, and refuses one from before an admin has changed the members: a former member may have put it there.
  func currentHead() async throws -> [UInt8] {
    let version = membership.members.version
    for _ in 0..<3 {
      let objects = try await carrier.read([Head.object, Authority.object(version + 1)])
      guard let head = objects.first(where: { $0.name == Head.object })?.bytes else {
        throw FleetError.rolledBack(seen: membership.seen, found: nil)
      }
      // They may have been changed between the two.
      if try objects.count == 1 || Head.membersVersion(of: head) > version { return head }
    }
    throw Self.outdatedHead
  }

  private static let outdatedHead = FleetError.damaged(
    object: Head.object, reason: "it was made under members that an admin has replaced")

  static func isRollback(_ error: any Error) -> Bool {
    switch error as? FleetError {
    case .rolledBack, .forked: true
    default: false
    }
  }

  static func mayRead(_ error: FleetError) -> Bool { if case .damaged = error { true } else { false } }

  private func view(upTo head: [UInt8], isComplete: Bool) async throws -> CarrierView {
    if !isComplete, let revision = membership.stored.revision,
      let view = try await CarrierView.read(carrier, after: CarrierRevision(text: revision), upTo: head)
    {
      return view
    }
    let opened = try await opened(head)
    let bound = CarrierBound(opened.head, opened.membership.keys)
    guard let view = try await CarrierView.readAll(carrier, bound, Preparation(opened.membership)) else {
      throw FleetError.rolledBack(seen: membership.seen, found: nil)
    }
    return view
  }

  /// Applies a state of the carrier, whole or not at all.
  ///
  /// Modelled in `Documentation/Models/FleetEpoch.pml`.
  ///
  /// - Returns: What was applied: all, if only changes were read, and all were needed.
  @discardableResult
  func take(
    _ view: CarrierView, isRollbackAccepted: Bool = false, report: inout SyncReport
  ) async throws -> CarrierView {
    // A former member may have put its head over the one that came with the authority.
    let version = self.membership.members.version
    if try Head.membersVersion(of: view.head) == version, let next = view.objects[Authority.object(version + 1)],
      next != nil
    {
      throw Self.outdatedHead
    }
    let opened = try await opened(view.head)
    let (membership, head) = (opened.membership, opened.head)
    let relation: Relation
    do {
      relation = try await self.relation(of: opened, view.head, view.objects)
    } catch  where isRollbackAccepted && Self.isRollback(error) {
      relation = .unrelated
    }
    // Under another key, all objects of a collection have other names.
    let known = self.membership.keys
    guard view.isComplete || membership.keys.collections.allSatisfy({ known.has(folder: $0.folder) }) else {
      guard let all = try await CarrierView.readAll(carrier, CarrierBound(head, membership.keys)) else {
        throw FleetError.rolledBack(seen: self.membership.seen, found: nil)
      }
      return try await take(all, isRollbackAccepted: isRollbackAccepted, report: &report)
    }

    var objects: [(place: [UInt8], bytes: [UInt8]?)] = view.objects.compactMap { name, bytes in
      membership.keys.place(ofObject: name).map { ($0, bytes) }
    }
    if !head.pieces.isEmpty {
      var changes = Dictionary(uniqueKeysWithValues: objects.map { ($0.place, $0.bytes) })
      for change in try await pieces(of: head, membership.keys)
      where membership.keys.has(folder: FleetKeys.folder(of: change.place)) {
        changes[change.place] = .some(change.record)
      }
      objects = changes.map { ($0.key, $0.value) }
    }
    // Pieces override the records that were read.
    let isPrepared = head.pieces.isEmpty && view.prepared?.folders == membership.keys.collections.map(\.folder)
    let prepared = isPrepared ? view.prepared : nil
    if membership.stored.head.isEmpty { try await claim(membership) }
    try await onStep(.willApply)
    let outcome = try connection.writeFleets { transaction in
      try self.apply(
        objects, prepared, head, view, membership, isRollbackAccepted: isRollbackAccepted, relation, transaction)
    }
    note(view.head)
    self.membership = membership
    report.clockProblems = outcome.problems
    report.pulledCount += outcome.changeCount
    report.conflictCount += outcome.conflictCount
    report.recoveredCount += outcome.recoveredCount
    try await onStep(.didApply)
    return view
  }

  /// Refuses a head that does not follow the one that was seen.
  func checkSuccession(_ bytes: [UInt8]) async throws { _ = try await relation(of: try await opened(bytes), bytes) }

  /// A head, and the membership under which it was made.
  private struct Opened {
    let membership: Membership
    let head: Head
    /// The head on which an admin changed the members, if they have been changed since the last head that was seen.
    let base: Authority.Base?

    var author: String { membership.members[head.author]?.name ?? "" }
  }

  private func opened(_ bytes: [UInt8]) async throws -> Opened {
    let (membership, base) = try await acceptedMembership(for: bytes)
    let head = try Head(
      opening: bytes, membership.keys, members: membership.members, authority: membership.authorityDigest)
    return Opened(membership: membership, head: head, base: base)
  }

  /// The membership under which a head was made: this one, or a later version.
  private func acceptedMembership(for head: [UInt8]) async throws -> (Membership, Authority.Base?) {
    let version = try Head.membersVersion(of: head)
    guard version >= membership.members.version else {
      throw FleetError.rolledBack(seen: membership.seen, found: nil)
    }
    guard version > membership.members.version else {
      return (try Membership(membership.stored, isHeadOpened: false), nil)
    }
    let chain = try await AuthorityChain.read(
      from: carrier, after: membership.authority, membership.stored.authority)
    let later = try Membership(membership.stored, isHeadOpened: false)
    try later.take(chain.authority, chain.bytes, members: chain.members)
    return (later, chain.base)
  }

  /// How a state of the carrier relates to what this store is in step with.
  enum Relation: UInt8 {
    case following = 0
    /// An admin has changed the members over a head from before this store's: the commits since do not count.
    case cutOff = 1
    /// It does not follow, and someone has accepted that.
    case unrelated = 2
  }

  /// Refuses a head that does not follow the one that was seen.
  ///
  /// - Parameter objects: Objects of the carrier that have been read already.
  private func relation(
    of opened: Opened, _ bytes: [UInt8], _ objects: [String: [UInt8]?] = [:]
  ) async throws -> Relation {
    let (seen, known, log) = (membership.seen, membership.stored.head, opened.head.log)
    // Who skips numbers leaves none for others.
    let greatest = membership.head == nil ? Head.greatestFirstNumber : seen + Head.greatestStep
    guard opened.head.number <= greatest else {
      throw FleetError.damaged(
        object: Head.object, reason: "its author, \(opened.author), has skipped numbers up to \(opened.head.number)")
    }
    guard let last = membership.head, bytes != known else { return .following }
    func has(_ digest: [UInt8], at index: UInt64) async throws -> Bool {
      var blocks: [String: [UInt8]] = [:]
      for name in log.proof(at: index) { blocks[name] = objects[name] ?? nil }
      let unread = log.proof(at: index).filter { blocks[$0] == nil }
      if !unread.isEmpty { for object in try await carrier.read(unread) { blocks[object.name] = object.bytes } }
      return try log.has(digest, at: index, by: blocks)
    }
    if try await has(known.digest, at: last.log.count) {
      // Of collections that this host does not have it knows no more than what was signed, and that it does not go back.
      for collection in opened.head.collections {
        guard last.collection(collection.folder).map(collection.follows) ?? true else {
          throw FleetError.damaged(
            object: Head.object,
            reason: "its author, \(opened.author), has put back a collection of others, or committed after one who had")
        }
      }
      return .following
    }
    // All heads under the later members come after that one.
    if let base = opened.base, try await has(base.head, at: base.index) { return .cutOff }
    guard opened.head.number >= seen else { throw FleetError.rolledBack(seen: seen, found: opened.head.number) }
    throw FleetError.forked(seen: seen, found: opened.head.number)
  }

  /// The changes in the pieces of a commit.
  func pieces(of head: Head, _ keys: FleetKeys) async throws -> [Piece.Change] {
    guard !head.pieces.isEmpty else { return [] }
    let names = head.pieces.map { Piece.object($0.id, keys) }
    let objects = Dictionary(
      try await carrier.read(names).map { ($0.name, $0.bytes) }, uniquingKeysWith: { first, _ in first })
    return try zip(head.pieces, names).flatMap { piece, name in
      guard let bytes = objects[name], ConstantTime.isEqual(try bytes.digest, piece.digest) else {
        throw FleetError.damaged(object: name, reason: "it does not match the head")
      }
      let changes = try Piece.changes(in: bytes, name)
      // What its author may not write is as it was.
      guard changes.allSatisfy({ head.collection(FleetKeys.folder(of: $0.place))?.number == head.number }) else {
        throw FleetError.damaged(object: name, reason: "it changes a collection that its commit leaves as it is")
      }
      return changes
    }
  }

  /// The changes in the pieces of the commit that the store is in step with.
  ///
  /// - Returns: Nil if another member has committed meanwhile, which may have settled it, and removed them.
  func pieces() async throws -> [Piece.Change]? {
    guard let head = membership.head else { return [] }
    do {
      return try await pieces(of: head, membership.keys)
    } catch let error as FleetError {
      guard try await carrier.read([Head.object]).first?.bytes == membership.stored.head else { return nil }
      throw error
    }
  }
}
