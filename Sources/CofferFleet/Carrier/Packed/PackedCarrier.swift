import CofferCrypto

/// A carrier on a storage that can replace one object on a condition, and nothing more.
///
/// The object `root` names the whole state, so that replacing it is a commit: it has the last changes in itself, and names *parts*, which are
/// written before and never changed. A writer that is killed before it replaces the root leaves parts that nothing names; one that is killed
/// after it has committed. Parts are merged from time to time; those that are no longer named are removed ten minutes later.
///
/// The layout is in Documentation/PackedCarrier.md.
final class PackedCarrier: Carrier {
  let storage: any ConditionalStorage
  let pollInterval: Duration
  let sizes: Sizes
  let limits = CarrierLimits(operationCount: 8192, requestByteCount: 8 << 20, objectByteCount: 1 << 20)

  let known = Lock<State?>(nil)
  let turns = Turns()
  let isMaintaining = Lock(false)

  /// When something is done; other numbers are for tests.
  struct Sizes: Sendable {
    /// A commit with more bytes than this is written into packs of its own.
    var inlineByteCount = 16 << 10
    /// With more bytes of changes than this in the root, they are moved to a pack.
    var recentByteCount = 32 << 10
    /// An object of this size is a part of its own.
    var largeByteCount = 256 << 10
    /// With more runs than this, several are merged.
    var runCount = 12
    /// With so many removals, and a quarter of all entries, everything is merged.
    var removedCount = 64
    /// How long parts stay that are no longer named, in seconds.
    var retirement: Int64 = 600
    /// The age of parts that no root has named, in seconds.
    var orphanAge: Int64 = 86_400
    /// One of so many merges looks for them.
    var sweepOdds = 16
  }

  /// The root, as it was last read or written.
  struct State: Sendable {
    /// Nil if there is none.
    let root: PackedRoot?
    let tag: String?
    /// By the storage's clock, in seconds since 1970.
    let date: Int64
  }

  var description: String { storage.description }

  init(_ storage: any ConditionalStorage, pollInterval: Duration, sizes: Sizes = Sizes()) {
    (self.storage, self.pollInterval, self.sizes) = (storage, pollInterval, sizes)
  }

  // MARK: - The state

  /// Reads the root, unless it is unchanged.
  func refresh() async throws -> State {
    let before = known.withLock(\.self)
    let answer = try await storage.get(PackedRoot.key, unless: before?.tag, limit: PackedRoot.maximumByteCount)
    let state =
      switch answer.content {
      case .absent: State(root: nil, tag: nil, date: answer.date)
      case .unchanged: State(root: before?.root, tag: before?.tag, date: answer.date)
      case .present(let bytes, let tag):
        State(root: try PackedRoot(bytes, of: description), tag: tag, date: answer.date)
      }
    known.withLock { $0 = state }
    return state
  }

  /// The state that is known, which may be an old one.
  func present() async throws -> State {
    if let state = known.withLock(\.self) { return state }
    return try await refresh()
  }

  /// Runs `body` on the present state, and again on a later one if a part of it has been removed meanwhile.
  func reading<Result>(
    from first: State? = nil, isRepeatable: () -> Bool = { true }, isolation: isolated (any Actor)? = #isolation,
    _ body: (State) async throws -> Result
  ) async throws -> Result {
    var state: State
    if let first { state = first } else { state = try await refresh() }
    for _ in 0..<Self.readAttemptCount {
      do {
        return try await body(state)
      } catch let missing as MissingPart {
        let later = try await refresh()
        guard later.tag != state.tag else {
          throw missing.error(of: description)
        }
        guard isRepeatable() else { break }
        state = later
      }
    }
    throw CarrierError.unreachable(carrier: description, reason: "its objects were merged during the read; try again")
  }

  private static let readAttemptCount = 4

  // MARK: - Reading

  func readAll(_ body: ([CarrierObject]) throws -> Void) async throws -> CarrierRevision {
    var hasPassed = false
    return try await reading(isRepeatable: { !hasPassed }) { state in
      guard let root = state.root else { return Self.noRevision }
      try await objects(in: root) { objects in
        hasPassed = true
        try body(objects)
      }
      return root.revision
    }
  }

  /// The revision of an empty carrier.
  static let noRevision = CarrierRevision(text: "0")

  /// Passes all objects, in batches of about a megabyte.
  private func objects(in root: PackedRoot, _ body: ([CarrierObject]) throws -> Void) async throws {
    let entries = MergedEntries(root.runs, and: root.entriesInMemory, of: storage)
    var (batch, byteCount, count, removedCount) = ([CarrierObject](), 0, 0, 0)
    while let entry = try await entries.next() {
      guard let bytes = try await bytes(of: entry) else {
        removedCount += 1
        // The caller counts objects, and there is no end to what a storage may send.
        guard removedCount <= Self.removedLimit + 16 * count else {
          throw CarrierError.garbled(carrier: description, reason: "it lists more removals than were written")
        }
        continue
      }
      batch.append(CarrierObject(name: entry.name, bytes: bytes))
      (byteCount, count) = (byteCount + bytes.count + entry.name.utf8.count, count + 1)
      guard byteCount >= Self.batchByteCount else { continue }
      try Task.checkCancellation()
      try body(batch)
      (batch, byteCount) = ([], 0)
    }
    if !batch.isEmpty { try body(batch) }
  }

  private static let batchByteCount = 1 << 20
  private static let removedLimit = 1_000_000

  /// Nil if it was removed.
  func bytes(of entry: PackEntry) async throws -> [UInt8]? {
    switch entry.content {
    case .removed: nil
    case .bytes(let bytes): bytes
    case .large(let object): try await storage.bytes(of: object)
    }
  }

  func read(_ names: [String]) async throws -> [CarrierObject] {
    for name in names { checkName(name) }
    return try await reading { state in
      guard let root = state.root else { return [] }
      let objects = try await self.objects(names, in: root)
      return names.compactMap { name in objects[name].map { CarrierObject(name: name, bytes: $0) } }
    }
  }

  /// Those of the named objects that exist.
  func objects(_ names: [String], in root: PackedRoot) async throws -> [String: [UInt8]] {
    var found: [String: PackEntry] = [:]
    for name in names { found[name] = root.entryInMemory(name) }
    // Each section once, however many of the names are in it.
    var sections: [(run: PackedRoot.Run, pack: Pack, section: Pack.Section)] = []
    for run in root.runs {
      var places: Set<[Int]> = []
      for name in names where found[name].map({ $0.sequence < run.sequence }) ?? true {
        guard let pack = run.packs.firstIndex(where: { $0.mayHave(name) }),
          let section = run.packs[pack].sections.firstIndex(where: { $0.mayHave(name) })
        else { continue }
        places.insert([pack, section])
      }
      sections += places.map { (run, run.packs[$0[0]], run.packs[$0[0]].sections[$0[1]]) }
    }
    let wanted = Set(names)
    for (run, pack, section) in sections {
      for entry in try await storage.entries(of: section, in: pack, sequence: run.sequence)
      where wanted.contains(entry.name) && (found[entry.name].map { $0.sequence < entry.sequence } ?? true) {
        found[entry.name] = entry
      }
    }
    var objects: [String: [UInt8]] = [:]
    for (name, entry) in found { objects[name] = try await bytes(of: entry) }
    return objects
  }

  // MARK: - Changes

  func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error> {
    let watch = PackedWatch(carrier: self, revision: revision)
    return AsyncThrowingStream { try await watch.next() }
  }
}

extension PackedRoot {
  /// In order.
  var entriesInMemory: [PackEntry] {
    (recent.values + large.map { PackEntry(name: $0, sequence: $1.sequence, content: .large($1.object)) })
      .sorted { $0.name < $1.name }
  }

  func entryInMemory(_ name: String) -> PackEntry? {
    large[name].map { PackEntry(name: name, sequence: $0.sequence, content: .large($0.object)) } ?? recent[name]
  }
}

extension Pack {
  func mayHave(_ name: String) -> Bool {
    sections.first.map { $0.first <= name } ?? false && sections.last.map { name <= $0.last } ?? false
  }
}

extension Pack.Section {
  func mayHave(_ name: String) -> Bool { first <= name && name <= last }
}
