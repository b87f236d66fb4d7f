import CofferCrypto

extension PackedCarrier {
  /// Moves changes from the root to packs, merges packs, and removes parts that are no longer needed, if it is time for that.
  ///
  /// It changes nothing that a reader sees, so any host may be killed in it, or be overtaken.
  ///
  /// - Parameter isNeeded: Whether to throw what kept it from merging; otherwise a later commit tries again.
  func maintain(isNeeded: Bool = false) async throws {
    let before = try await present()
    guard let root = before.root, let merge = MergePlan(root, sizes) else { return }
    guard isMaintaining.withLock({ !exchange(&$0, true) }) else { return }
    defer { isMaintaining.withLock { $0 = false } }
    let expired = root.retired.filter { before.date - $0.date > sizes.retirement }.map(\.id)
    await PartWriter.remove(expired, from: storage)
    var merged = MergedPacks(storage)
    do {
      try await merged.take(merge, of: root)
      guard try await turns.take({ try await replaceMerged(merged, instead: merge, without: Set(expired)) }) else {
        return await discard(merged.writer)
      }
    } catch {
      // If only the answer was lost, they are in use; otherwise they are found by their age.
      guard isNeeded else { return }
      throw (error as? MissingPart)?.error(of: description) ?? error
    }
    if Int.random(in: 0..<max(1, sizes.sweepOdds)) == 0 { try await sweep() }
  }

  /// Removes parts that were written in vain, as far as possible.
  ///
  /// None that a root names: a storage, or a proxy in front of it, may say that it refused what it has written.
  func discard(_ writer: PartWriter) async {
    guard !writer.ids.isEmpty, let root = try? await refresh().root else { return }
    let named = root.named
    await PartWriter.remove(writer.ids.filter { !named.contains($0) }, from: storage)
  }

  /// - Returns: False if another host has merged the same packs meanwhile.
  private func replaceMerged(_ merged: MergedPacks, instead merge: MergePlan, without expired: Set<PartID>) async throws
    -> Bool
  {
    var state = try await present()
    for attempt in 0..<Self.mergeAttemptCount {
      // It was replaced, whatever the answer was.
      if let root = state.root, merged.isUsed(by: root) { return true }
      guard
        let root = state.root.flatMap({ merged.applied(to: $0, instead: merge, without: expired, date: state.date) })
      else { return false }
      if try await replace(state, by: root) { return true }
      try await Self.pause(after: attempt)
      state = try await refresh()
    }
    return false
  }

  private static let mergeAttemptCount = 8

  /// Removes old parts that no root names: those of killed writers.
  private func sweep() async throws {
    let state = try await refresh()
    guard let root = state.root else { return }
    let named = root.named
    let (oldest, limit) = (state.date - sizes.orphanAge, Self.sweptCount)
    var orphans: [PartID] = []
    try await storage.list(PartID.folder) { objects in
      for object in objects where object.date < oldest && orphans.count < limit {
        if let id = PartID(key: object.key), !named.contains(id) { orphans.append(id) }
      }
      return orphans.count < limit
    }
    await PartWriter.remove(orphans, from: storage)
  }

  /// The largest number of parts to remove at a time.
  private static let sweptCount = 1000
}

private func exchange(_ value: inout Bool, _ new: Bool) -> Bool {
  defer { value = new }
  return value
}

/// What to merge: the changes in the root, except those of the last commit, with the newest runs.
///
/// So the last head stays in the root, where it is read at once.
private struct MergePlan {
  let lineage: [UInt8]
  let number: UInt64
  let runs: [PackedRoot.Run]
  let recent: [PackEntry]
  /// Whether nothing is left of which removals would have to be remembered.
  let isComplete: Bool

  /// Nil if it is not time for that.
  init?(_ root: PackedRoot, _ sizes: PackedCarrier.Sizes) {
    let removedCount = root.runs.reduce(0) { $0 + $1.removedCount }
    let entryCount = root.runs.reduce(0) { $0 + $1.entryCount }
    let recentByteCount = root.recentByteCount
    let weights = root.runs.map(\.byteCount)
    var (count, sum) = (0, recentByteCount)
    if removedCount >= sizes.removedCount, removedCount * 4 >= entryCount {
      count = weights.count
    } else if root.runs.count > sizes.runCount {
      for (index, weight) in weights.enumerated() {
        if weight <= 2 * sum { count = index + 1 }
        sum += weight
      }
    } else {
      guard recentByteCount > sizes.recentByteCount else { return nil }
      // So each run is at least twice as large as the newer ones together, and there are few.
      for weight in weights {
        guard weight <= 2 * sum else { break }
        (count, sum) = (count + 1, sum + weight)
      }
    }
    (lineage, number) = (root.lineage, root.mergeCount)
    runs = Array(root.runs.prefix(count))
    recent = root.recent.values.filter { $0.sequence < root.sequence }.sorted { $0.name < $1.name }
    isComplete = count == root.runs.count
    guard !runs.isEmpty || !recent.isEmpty else { return nil }
  }
}

/// The result of a merge.
private struct MergedPacks {
  private(set) var writer: PartWriter
  private let storage: any ConditionalStorage
  private var packs: [Pack] = []
  private var (entryCount, removedCount) = (0, 0)
  /// The last of the commits whose removals were left out.
  private var forgotten: UInt64 = 0

  /// So much is in memory before it is written: what is written at the same time.
  private static let bufferByteCount = 4 * Pack.byteLimit

  init(_ storage: any ConditionalStorage) { (self.storage, writer) = (storage, PartWriter(storage)) }

  mutating func take(_ merge: MergePlan, of root: PackedRoot) async throws {
    let entries = MergedEntries(merge.runs, and: merge.recent, of: storage)
    var (buffer, byteCount) = ([PackEntry](), 0)
    while let entry = try await entries.next() {
      if let large = root.large[entry.name], large.sequence > entry.sequence { continue }
      if merge.isComplete, entry.isRemoved {
        forgotten = max(forgotten, entry.sequence)
        continue
      }
      buffer.append(entry)
      byteCount += entry.byteCount
      if byteCount >= Self.bufferByteCount {
        try await write(&buffer)
        byteCount = 0
      }
    }
    try await write(&buffer)
  }

  private mutating func write(_ entries: inout [PackEntry]) async throws {
    entryCount += entries.count
    removedCount += entries.count(where: \.isRemoved)
    packs += try await writer.write(entries)
    entries = []
  }

  func isUsed(by root: PackedRoot) -> Bool { packs.first.map { root.parts.contains($0.id) } ?? false }

  /// - Returns: Nil if another merge has ended meanwhile: what it has left out must not come back.
  func applied(
    to earlier: PackedRoot, instead merge: MergePlan, without expired: Set<PartID>, date: Int64
  ) -> PackedRoot? {
    guard earlier.lineage == merge.lineage, earlier.mergeCount == merge.number else { return nil }
    var root = earlier
    root.mergeCount += 1
    let inputs = Set(merge.runs.flatMap { $0.packs.map(\.id) })
    let place = root.runs.firstIndex { run in run.packs.contains { inputs.contains($0.id) } }
    root.runs.removeAll { run in run.packs.contains { inputs.contains($0.id) } }
    let sequence = (merge.runs.map(\.sequence) + merge.recent.map(\.sequence)).max() ?? 0
    if !packs.isEmpty {
      root.runs.insert(
        PackedRoot.Run(sequence: sequence, entryCount: entryCount, removedCount: removedCount, packs: packs),
        at: place ?? root.runs.count(where: { $0.sequence > sequence }))
    }
    for entry in merge.recent where root.recent[entry.name]?.sequence == entry.sequence {
      root.recent[entry.name] = nil
    }
    root.retired.removeAll { expired.contains($0.id) }
    root.retired += inputs.map { ($0, date) }
    root.forgotten = max(root.forgotten, forgotten)
    return root
  }
}
