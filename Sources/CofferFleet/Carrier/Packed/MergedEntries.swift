/// The entries of several runs of packs, and some in memory, in the order of their names; of several with one name the newest.
///
/// One task uses it. It holds two packs of each run at most.
final class MergedEntries {
  private var sources: [Source]

  /// - Parameter entries: In order.
  init(_ runs: [PackedRoot.Run], and entries: [PackEntry], of storage: any ConditionalStorage) {
    sources = runs.map { Source($0, storage) } + [Source(entries, storage)]
  }

  /// The next entry; nil at the end.
  func next() async throws -> PackEntry? {
    var newest: PackEntry?
    for source in sources {
      if source.current == nil { try await source.load() }
      guard let entry = source.current else { continue }
      guard let best = newest else {
        newest = entry
        continue
      }
      if entry.name < best.name || entry.name == best.name && entry.sequence > best.sequence { newest = entry }
    }
    guard let newest else { return nil }
    for source in sources where source.current?.name == newest.name { source.drop() }
    return newest
  }

  private final class Source {
    private var entries: ArraySlice<PackEntry>
    private var packs: ArraySlice<Pack>
    private let sequence: UInt64
    private let storage: any ConditionalStorage
    /// The pack that is being read.
    private var next: Task<[PackEntry], any Error>?

    var current: PackEntry? { entries.first }

    init(_ run: PackedRoot.Run, _ storage: any ConditionalStorage) {
      (entries, packs, sequence, self.storage) = ([], run.packs[...], run.sequence, storage)
    }

    init(_ entries: [PackEntry], _ storage: any ConditionalStorage) {
      (self.entries, packs, sequence, self.storage) = (entries[...], [], 0, storage)
    }

    deinit { next?.cancel() }

    func drop() { entries.removeFirst() }

    /// Gets the entries of the next pack, if there is one.
    func load() async throws {
      if next == nil { next = readAhead() }
      guard let reading = next else { return }
      next = nil
      entries = try await withTaskCancellationHandler {
        try await reading.value
      } onCancel: {
        reading.cancel()
      }[...]
      next = readAhead()
    }

    private func readAhead() -> Task<[PackEntry], any Error>? {
      guard let pack = packs.popFirst() else { return nil }
      let (storage, sequence) = (storage, sequence)
      return Task { try await storage.entries(of: pack, sequence: sequence) }
    }
  }
}

/// A part that the root names is not there: another writer has merged it into others, and removed it.
struct MissingPart: Error {
  let id: PartID

  /// What it is if the root still names the part.
  func error(of carrier: String) -> CarrierError {
    .garbled(carrier: carrier, reason: "its object \(id.key) is missing")
  }
}

extension ConditionalStorage {
  func entries(of pack: Pack, sequence: UInt64) async throws -> [PackEntry] {
    let bytes = try await part(pack.id, byteCount: pack.byteCount)
    return try entries(bytes, sequence: sequence, of: pack.id)
  }

  func entries(of section: Pack.Section, in pack: Pack, sequence: UInt64) async throws -> [PackEntry] {
    guard let bytes = try await get(pack.id.key, section.range) else { throw MissingPart(id: pack.id) }
    return try entries(bytes, sequence: sequence, of: pack.id)
  }

  private func entries(_ bytes: [UInt8], sequence: UInt64, of id: PartID) throws -> [PackEntry] {
    do {
      return try Pack.entries(bytes, sequence: sequence)
    } catch {
      throw CarrierError.garbled(carrier: description, reason: "its object \(id.key) is damaged: \(error.reason)")
    }
  }

  func bytes(of object: LargeObject) async throws -> [UInt8] {
    try await part(object.id, byteCount: object.byteCount)
  }

  private func part(_ id: PartID, byteCount: Int) async throws -> [UInt8] {
    guard case .present(let bytes, _) = try await get(id.key, unless: nil, limit: byteCount).content else {
      throw MissingPart(id: id)
    }
    guard bytes.count == byteCount else {
      throw CarrierError.garbled(carrier: description, reason: "its object \(id.key) has another size")
    }
    return bytes
  }
}
