import Coffer
import CofferCrypto

extension Fleet {
  /// Pushes local changes.
  ///
  /// - Returns: Whether everything was pushed; false if another member has committed meanwhile.
  func push(_ report: inout SyncReport) async throws -> Bool {
    guard try await settleEarlier() else { return false }
    let (declarations, parts, isAllPushed, number) = try connection.readFleets { transaction in
      // Without its records, which are deleted with the fleet, everything would look new.
      try checkIsPresent(transaction)
      let readiness = try Readiness(transaction, membership)
      try Self.check(readiness.consent.agreed, transaction, except: membership.id)
      return (
        try transaction.localDeclarations(
          of: membership.stored, in: readiness.given, besides: readiness.consent.agreed),
        try transaction.localChanges(of: membership.stored, in: readiness.given),
        try readiness.kept(transaction, membership).isEmpty, try transaction.lastNumber()
      )
    }
    let now = try connection.readFleets { $0.time }
    report.unsharedSettings = []
    // First, so that no host sees the values before what they have to be.
    let declared = try drafts(of: declarations, &report) { $0.clock(at: now) }
    if !declared.isEmpty {
      guard try await commit(declared) else { return false }
      report.pushedCount += declared.count
    }
    let clocks = TransactionClocks(of: parts, at: now)
    for part in squashed(parts) {
      let drafts = try drafts(of: part, &report) { clocks[$0] }
      if drafts.isEmpty { continue }
      guard try await commit(drafts) else { return false }
      report.pushedCount += drafts.count
    }
    // The next search starts after this commit; the next push stores that.
    if report.unsharedSettings.isEmpty, isAllPushed { membership.setPushed(number) }
    return try await forget()
  }

  // MARK: Drafts

  /// A change that is being pushed.
  struct Draft {
    /// The new record, nil to remove it.
    var object: CarrierObject?
    /// The store's row before the push, and after it; nil for none.
    var before: StoredRecord?
    var after: StoredRecord?

    /// The place of the record.
    var place: [UInt8] { after?.name ?? before?.name ?? [] }
  }

  /// The number of commits that are pushed one by one; more are squashed.
  private static let partCount = 16

  /// Joins consecutive parts, if there are many, up to the size of a request.
  private func squashed(_ parts: [[LocalChange]]) -> [[LocalChange]] {
    guard parts.count > Self.partCount else { return parts }
    var joined: [[LocalChange]] = []
    var byteCount = 0
    for part in parts {
      let more = part.reduce(0) { $0 + Self.estimatedByteCount($1) }
      if let last = joined.last, last.count + part.count + Self.blockCount < carrier.limits.operationCount,
        byteCount + more + Self.headByteCount < carrier.limits.requestByteCount
      {
        joined[joined.count - 1] += part
        byteCount += more
      } else {
        joined.append(part)
        byteCount = more
      }
    }
    return joined
  }

  private static func estimatedByteCount(_ change: LocalChange) -> Int {
    768 + change.key.utf8.count + change.collection.utf8.count + (change.value?.byteCount ?? 0)
  }

  /// More blocks of the log of heads than a commit ever completes.
  private static let blockCount = 4

  /// An upper bound for the size of a head with its collections and log, and of the names in a request.
  static let headByteCount = 64 * 1024

  /// The largest record that the carrier accepts, alone in its request or piece.
  private var maximumRecordByteCount: Int {
    pieceByteCount - 64
  }

  private func drafts<Change: PushedChange>(
    of changes: [Change], _ report: inout SyncReport, clock: (Change) -> HybridClock
  ) throws -> [Draft] {
    var records = changes.map { change in
      Record(
        collection: change.collection, key: change.key, counter: UInt64(clamping: change.record?.counter ?? 0) + 1,
        clock: clock(change), author: membership.identity.member, writer: change.author, content: change.recordContent)
    }
    try Record.sign(&records, by: membership.identity, in: membership.authority.fleet)
    return try zip(changes, records).compactMap { change, record in
      var draft = try draft(record, over: change.record, version: change.version, &report)
      draft?.after?.declaration = change.declaration
      return draft
    }
  }

  /// - Returns: Nil if it is too large.
  private func draft(
    _ record: Record, over before: StoredRecord?, version: CommitNumber, _ report: inout SyncReport
  ) throws -> Draft? {
    guard let keys = membership.keys.collection(named: record.collection) else { return nil }
    let place = try record.place(keys)
    let object = try record.sealed(keys, at: place)
    guard object.bytes.count <= maximumRecordByteCount else {
      report.unsharedSettings.append(
        """
        \(record.isOfDeclaration ? "The declaration of " : "")"\(record.key)" in "\(record.collection)" stays on this host: it \
        takes \(object.bytes.count) bytes, and the carrier holds up to \(maximumRecordByteCount). Make it smaller, or keep it in a \
        collection that is not shared.
        """)
      return nil
    }
    let after = StoredRecord(
      collection: record.collection, key: record.key,
      name: place, counter: Int64(record.counter), clock: Int64(bitPattern: record.clock.rawValue),
      author: record.author.bytes, isRemoved: record.value == nil && record.declaration == nil,
      expires: record.value?.dates.expires, version: version, digest: try object.bytes.digest)
    return Draft(object: object, before: before, after: after)
  }

  // MARK: Commits

  /// Commits changes, so that others see all of them or none.
  ///
  /// Modelled in `Documentation/Models/FleetCommit.pml`.
  ///
  /// - Returns: False if another member was faster; then nothing was changed.
  func commit(_ drafts: [Draft], forgets: Bool = false) async throws -> Bool {
    let changes: [CarrierChange] = drafts.map { draft in
      draft.object.map { .put($0) } ?? .remove(name: FleetKeys.object(draft.place))
    }
    let isSmall = fits(changes)
    let pieces = isSmall ? [] : try Self.pieces(of: drafts, pieceByteCount)
    guard pieces.count <= Head.maximumPieceCount else {
      throw FleetError.tooLarge(
        object: "A commit", byteCount: pieces.reduce(0) { $0 + $1.bytes.count },
        limit: pieceByteCount * Head.maximumPieceCount)
    }
    let references = try pieces.map {
      Head.PieceReference(id: try RandomSource.bytes(count: Head.pieceIDByteCount), digest: try $0.bytes.digest)
    }
    let staged = zip(references, pieces).map { reference, piece in
      CarrierChange.put(CarrierObject(name: Piece.object(reference.id, membership.keys), bytes: piece.bytes))
    }
    async let isStaged = Self.make(staged, on: carrier, if: membership.condition)
    let collections = try self.collections(after: drafts, forgets: forgets)
    guard try await isStaged else { return false }
    if !isSmall { try await onStep(.didStage) }
    let now = try connection.readFleets { $0.time }
    let next = try membership.nextHead(collections, time: now, pieces: references)
    let isPublished = try await publish(next, isSmall ? changes : [], settling: isSmall ? [] : changes) {
      try $0.acknowledge(drafts, self.membership.id)
    }
    guard isPublished else { return false }
    return pieces.isEmpty ? true : try await finishSettling(next.head)
  }

  /// The collections that the changes change, by folder.
  private func collections(
    after drafts: [Draft], forgets: Bool
  ) throws -> [[UInt8]: Membership.CollectionChange] {
    var counts: [[UInt8]: UInt64] = [:]
    var changes: [[UInt8]: [UInt8]?] = [:]
    for draft in drafts {
      let folder = FleetKeys.folder(of: draft.place)
      var count = counts[folder] ?? membership.head?.collection(folder)?.recordCount ?? 0
      if draft.before.map({ !$0.digest.isEmpty }) ?? false { count &-= 1 }
      if draft.object != nil { count += 1 }
      counts[folder] = count
      changes[draft.place] = .some(draft.object == nil ? nil : draft.after?.digest)
    }
    var sets = membership.sets
    try connection.readFleets { transaction in
      // The rows are those of the sets.
      try checkIsPresent(transaction)
      try RecordSet.update(&sets, changes) { try transaction.digests(ofNamesBeginningWith: $0, of: membership.id) }
    }
    return Dictionary(
      uniqueKeysWithValues: counts.map { folder, count in
        let change = Membership.CollectionChange(
          set: sets[folder] ?? RecordSet(), recordCount: count, horizon: forgets ? membership.head?.number : nil)
        return (folder, change)
      })
  }

  /// Swaps the head, and records the result in the store.
  ///
  /// - Parameter settled: The changes in the head's pieces, applied while the store is written. Until then, others read them
  ///   from the pieces.
  func publish(
    _ commit: Membership.NextHead, _ changes: [CarrierChange], settling settled: [CarrierChange] = [],
    _ acknowledge: (FleetTransaction) throws -> Void
  ) async throws -> Bool {
    let head = commit.head
    let bytes = try head.sealed(membership.keys, by: membership.identity)
    try await onStep(.willCommit)
    let put = CarrierChange.put(CarrierObject(name: Head.object, bytes: bytes))
    guard try await carrier.commit(changes + commit.blocks + [put], if: membership.condition) else { return false }
    try await onStep(.didCommit)
    let next = try Membership(membership.stored, isHeadOpened: false)
    next.take(head, bytes, commit.sets, synced: head.time)
    async let isSettled = Self.make(settled, on: carrier, if: CarrierCondition(name: Head.object, bytes: bytes))
    try connection.writeFleets { transaction in
      try checkIsPresent(transaction)
      try acknowledge(transaction)
      try next.save(transaction)
      try Twin.noteCommit(transaction, of: next.id)
    }
    note(bytes)
    membership = next
    try await onStep(.didAcknowledge)
    return try await isSettled
  }

  private func fits(_ changes: [CarrierChange]) -> Bool {
    changes.count + Self.blockCount < carrier.limits.operationCount
      && changes.reduce(Self.headByteCount) { $0 + $1.byteCount } <= carrier.limits.requestByteCount
  }

  /// The largest object that the carrier accepts in one request with a head.
  var pieceByteCount: Int {
    min(carrier.limits.objectByteCount, carrier.limits.requestByteCount - Self.headByteCount)
  }

  private static func pieces(of drafts: [Draft], _ limit: Int) throws -> [Piece] {
    var pieces = [Piece()]
    for draft in drafts {
      let change: Piece.Change = (draft.place, draft.object?.bytes)
      if pieces[pieces.count - 1].bytes.count + Piece.byteCount(of: change) > limit { pieces.append(Piece()) }
      pieces[pieces.count - 1].append(change)
    }
    return pieces
  }

  // MARK: Settling

  /// Settles the commit that the store is in sync with, unless that is done: moves the contents of its pieces into the records' own
  /// objects, and commits a head without pieces.
  ///
  /// Any writer may repeat any step: all writers put the same bytes.
  ///
  /// Modelled in `Documentation/Models/FleetCommit.pml`.
  func settleEarlier() async throws -> Bool {
    guard let head = membership.head, !head.pieces.isEmpty else { return true }
    guard let pieces = try await pieces() else { return false }
    let changes: [CarrierChange] = pieces.map { place, record in
      let object = FleetKeys.object(place)
      return record.map { .put(CarrierObject(name: object, bytes: $0)) } ?? .remove(name: object)
    }
    guard try await make(changes) else { return false }
    return try await finishSettling(head)
  }

  private func finishSettling(_ head: Head) async throws -> Bool {
    let next = try membership.nextHead(time: try connection.readFleets { $0.time })
    guard try await publish(next, [], { _ in }) else { return false }
    try await onStep(.didSettle)
    return try await make(head.pieces.map { .remove(name: Piece.object($0.id, membership.keys)) })
  }

  /// The number of concurrent requests whose order does not matter: etcd syncs them to its disks together.
  private static let parallelRequestCount = 4

  /// Makes changes that need not become visible together, while the head stays the same.
  func make(_ changes: [CarrierChange], if condition: CarrierCondition? = nil) async throws -> Bool {
    try await Self.make(changes, on: carrier, if: condition ?? membership.condition)
  }

  private static func make(
    _ changes: [CarrierChange], on carrier: any Carrier, if condition: CarrierCondition
  ) async throws -> Bool {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      var isMade = true
      for (number, request) in requests(changes, carrier.limits).enumerated() {
        if number >= parallelRequestCount { isMade = try await group.next() ?? true }
        guard isMade else { break }
        group.addTask { try await carrier.commit(request, if: condition) }
      }
      for try await isRequestMade in group { isMade = isMade && isRequestMade }
      return isMade
    }
  }

  /// The changes, split into requests that the carrier accepts.
  private static func requests(_ changes: [CarrierChange], _ limits: CarrierLimits) -> [[CarrierChange]] {
    var requests: [[CarrierChange]] = []
    var byteCount = 0
    for change in changes {
      if let count = requests.last?.count, count + 1 < limits.operationCount,
        byteCount + change.byteCount <= limits.requestByteCount
      {
        requests[requests.count - 1].append(change)
      } else {
        requests.append([change])
        byteCount = headByteCount
      }
      byteCount += change.byteCount
    }
    return requests
  }

  // MARK: Forgetting

  /// The number of removals forgotten at a time.
  private static let forgottenCount = 100

  /// Deletes removals and expired values from the carrier once the fleet's retention period is over.
  private func forget() async throws -> Bool {
    let (id, retention) = (membership.id, membership.members.retention)
    let old = try connection.readFleets { transaction in
      var old: [StoredRecord] = []
      for collection in try Readiness(transaction, membership).given {
        // By a wrong clock this is early, which the horizon makes harmless.
        old += try transaction.forgettableRecords(
          of: id, in: collection, before: transaction.time - retention, atMost: Self.forgottenCount - old.count)
      }
      return old
    }
    guard !old.isEmpty else { return true }
    return try await commit(old.map { Draft(object: nil, before: $0, after: nil) }, forgets: true)
  }
}

/// A change of this host that becomes a record.
private protocol PushedChange {
  var collection: String { get }
  var key: String { get }
  var author: String { get }
  /// The store's row before it.
  var record: StoredRecord? { get }
  var recordContent: Record.Content { get }
  /// What the row has after it.
  var version: CommitNumber { get }
  var declaration: StoredDeclaration? { get }
}

extension LocalChange: PushedChange {
  fileprivate var recordContent: Record.Content { value.map { .value($0) } ?? .tombstone }
  fileprivate var declaration: StoredDeclaration? { nil }
}

extension LocalDeclaration: PushedChange {
  fileprivate var recordContent: Record.Content { content.map { .declaration($0) } ?? .declarationTombstone }
  fileprivate var version: CommitNumber { StoredRecord.inStep }
  fileprivate var declaration: StoredDeclaration? { StoredDeclaration(content: content, own: own, isShared: true) }
}

extension CarrierChange {
  /// Its approximate size in a request.
  fileprivate var byteCount: Int {
    switch self {
    case .put(let object): object.name.utf8.count + object.bytes.count + 32
    case .remove(let name): name.utf8.count + 32
    }
  }
}

extension FleetTransaction {
  /// Records that changes are on the carrier.
  fileprivate func acknowledge(_ drafts: [Fleet.Draft], _ fleet: Int64) throws {
    for draft in drafts {
      if let after = draft.after {
        try save(after, of: fleet)
      } else if let before = draft.before {
        try remove(before, of: fleet)
      }
    }
  }
}
