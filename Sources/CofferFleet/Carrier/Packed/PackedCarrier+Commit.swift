import CofferCrypto

extension PackedCarrier {
  func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool {
    try check(changes, condition)
    try Task.checkCancellation()
    guard !changes.isEmpty else { return try await holds(condition, in: try await refresh()).isMet }
    // Without reading it first, if it was read before.
    var (isMet, state) = try await holds(condition, in: try await present())
    if !isMet { (isMet, state) = try await holds(condition, in: try await refresh()) }
    guard isMet else { return false }
    if state.root == nil { try await checkConditions() }
    if (state.root?.runs.count ?? 0) >= PackedRoot.maximumRunCount - 4 { try await maintain() }
    var draft = try await Draft(changes, condition, over: state.root, sizes, storage)
    let (isMade, isWritten) = try await turns.take {
      try await publish(&draft, changes, condition)
    }
    if !isWritten { await draft.writer.discard() }
    // The commit is made, whether this succeeds or not.
    if isWritten { try? await maintain() }
    return isMade
  }

  /// Whether a condition holds, and the state in which it does or does not.
  private func holds(_ condition: CarrierCondition, in state: State) async throws -> (isMet: Bool, state: State) {
    try await reading(from: state) { state in
      guard let root = state.root else { return (condition.bytes == nil, state) }
      return (try await objects([condition.name], in: root)[condition.name] == condition.bytes, state)
    }
  }

  /// How often other writers may be faster.
  private static let attemptCount = 60
  /// How often an answer may be lost.
  private static let failureCount = 4
  /// After so many seconds, parts that are not named yet are written again: they may be removed as those of a killed writer.
  private static let draftLifetime: Int64 = 3600

  /// Replaces the root.
  ///
  /// - Returns: Whether the commit was made, and whether its parts are in use.
  private func publish(
    _ draft: inout Draft, _ changes: [CarrierChange], _ condition: CarrierCondition
  ) async throws -> (isMade: Bool, isWritten: Bool) {
    let (id, lineage) = (
      try RandomSource.bytes(count: PackedRoot.idByteCount), try RandomSource.bytes(count: PackedRoot.idByteCount)
    )
    var state = try await present()
    var isFresh = false
    var failureCount = 0
    for attempt in 0..<Self.attemptCount {
      let (isMet, current) = try await holds(condition, in: state)
      state = current
      guard isMet else {
        if isFresh { return (false, false) }
        (state, isFresh) = (try await refresh(), true)
        continue
      }
      if draft.isOld(at: state.date, limit: Self.draftLifetime) {
        await draft.writer.discard()
        draft = try await Draft(changes, condition, over: state.root, sizes, storage)
      }
      let root = draft.applied(to: state.root ?? PackedRoot(lineage: lineage), id: id, date: state.date)
      do {
        if try await replace(state, by: root) { return (true, true) }
      } catch CarrierError.unreachable(let carrier, let reason) {
        // It may have been replaced, or may still be.
        failureCount += 1
        guard failureCount < Self.failureCount else {
          throw CarrierError.unreachable(carrier: carrier, reason: reason)
        }
      }
      try await Self.pause(after: attempt)
      (state, isFresh) = (try await refresh(), true)
      if let later = state.root, later.commitIDs.contains(id) { return (true, true) }
      // So many have followed that this one would no longer be listed.
      guard failureCount == 0 || (state.root?.sequence ?? 0) < root.sequence + UInt64(PackedRoot.commitIDCount) / 2
      else {
        throw CarrierError.unreachable(carrier: description, reason: "the answer to a commit was lost")
      }
    }
    throw CarrierError.unreachable(carrier: description, reason: "other hosts commit without a pause")
  }

  /// Replaces the root on the condition that it is the one that is known.
  ///
  /// - Returns: False if another writer was faster.
  func replace(_ state: State, by root: PackedRoot) async throws -> Bool {
    let bytes = root.bytes
    guard bytes.count <= PackedRoot.maximumByteCount else {
      throw CarrierError.full(
        carrier: description, reason: "its object \(PackedRoot.key) would have \(bytes.count) bytes")
    }
    let condition = state.tag.map(PutCondition.unchanged) ?? .absent
    let answer = try await storage.put(PackedRoot.key, bytes, if: condition)
    guard case .stored(let tag) = answer.content else { return false }
    known.withLock { $0 = State(root: root, tag: tag, date: answer.date) }
    return true
  }

  /// At random, and longer each time, so that writers that came at once come one after another.
  static func pause(after attempt: Int) async throws {
    try await Task.sleep(for: .milliseconds(Int.random(in: 0...(10 << min(attempt, 6)))))
  }

  /// Refuses a storage that does not heed conditions, before the first commit on it.
  private func checkConditions() async throws {
    let key = try PartWriter.newID().key
    guard case .stored(let tag) = try await storage.put(key, [1], if: .absent).content,
      try await storage.put(key, [2], if: .absent).content == .refused,
      try await storage.put(key, [2], if: .unchanged(tag: "\"\(String(repeating: "0", count: 32))\"")).content
        == .refused,
      case .stored = try await storage.put(key, [2], if: .unchanged(tag: tag)).content
    else {
      try? await storage.remove(key)
      throw CarrierError.withoutConditions(description)
    }
    try await storage.remove(key)
  }
}

/// A commit before it is made, with its parts, which are written.
private struct Draft {
  private(set) var writer: PartWriter
  /// What the root has itself, and large objects.
  private var entries: [(name: String, content: PackEntry.Content)] = []
  private var packed: [PackEntry] = []
  private var packs: [Pack] = []

  init(
    _ changes: [CarrierChange], _ condition: CarrierCondition, over root: PackedRoot?, _ sizes: PackedCarrier.Sizes,
    _ storage: any ConditionalStorage
  ) async throws {
    writer = PartWriter(storage)
    let byteCount = changes.reduce(0) { $0 + $1.name.utf8.count + ($1.object?.bytes.count ?? 0) }
    let isInline = byteCount <= sizes.inlineByteCount && (root?.recentByteCount ?? 0) <= 8 * sizes.recentByteCount
    var largeCount = root?.large.count ?? 0
    var parts: [(id: PartID, bytes: @Sendable () -> [UInt8])] = []
    for change in changes {
      guard let bytes = change.object?.bytes else {
        add(change.name, .removed, isInline)
        continue
      }
      if bytes.count >= sizes.largeByteCount, largeCount < PackedRoot.maximumLargeCount {
        let object = LargeObject(id: try PartWriter.newID(), byteCount: bytes.count)
        parts.append((object.id, { bytes }))
        entries.append((change.name, .large(object)))
        largeCount += 1
      } else {
        // The head is read more often than all others.
        add(change.name, .bytes(bytes), isInline || change.name == condition.name)
      }
    }
    packed.sort { $0.name < $1.name }
    do {
      try await writer.write(parts)
      packs = try await writer.write(packed)
    } catch {
      await writer.discard()
      throw error
    }
  }

  private mutating func add(_ name: String, _ content: PackEntry.Content, _ isInline: Bool) {
    if isInline {
      entries.append((name, content))
    } else {
      // The number of the commit is not known yet: 0 stands for it.
      packed.append(PackEntry(name: name, sequence: 0, content: content))
    }
  }

  func isOld(at date: Int64, limit: Int64) -> Bool { !writer.ids.isEmpty && date - writer.date > limit }

  func applied(to earlier: PackedRoot, id: [UInt8], date: Int64) -> PackedRoot {
    var root = earlier
    root.sequence += 1
    root.commitIDs = root.commitIDs.suffix(PackedRoot.commitIDCount - 1) + [id]
    for entry in packed { root.drop(entry.name, at: date) }
    if !packs.isEmpty {
      root.runs.insert(
        PackedRoot.Run(
          sequence: root.sequence, entryCount: packed.count, removedCount: packed.count(where: \.isRemoved),
          packs: packs),
        at: 0)
    }
    for entry in entries { root.set(entry.name, entry.content, at: date) }
    return root
  }
}
