import CofferCrypto

/// Writes parts, a few at a time.
struct PartWriter {
  private let storage: any ConditionalStorage
  private(set) var ids: [PartID] = []
  /// When the first was written, by the storage's clock.
  private(set) var date = Int64.max

  /// The number of concurrent requests.
  private static let parallelCount = 4

  init(_ storage: any ConditionalStorage) { self.storage = storage }

  static func newID() throws -> PartID { PartID(bytes: try RandomSource.bytes(count: PartID.byteCount)) }

  /// - Parameter parts: The contents of each, made when it is sent.
  mutating func write(_ parts: [(id: PartID, bytes: @Sendable () -> [UInt8])]) async throws {
    ids += parts.map(\.id)
    let storage = storage
    let first = try await withThrowingTaskGroup(of: Int64.self) { group in
      var first = Int64.max
      for (number, part) in parts.enumerated() {
        if number >= Self.parallelCount { first = min(first, try await group.next() ?? first) }
        group.addTask { try await storage.put(part.id.key, part.bytes(), if: .none).date }
      }
      for try await date in group { first = min(first, date) }
      return first
    }
    date = min(date, first)
  }

  /// Writes entries into packs.
  mutating func write(_ entries: [PackEntry]) async throws -> [Pack] {
    let packs = try Self.split(entries).map { (Pack($0, id: try Self.newID()), $0) }
    try await write(packs.map { pack, entries in (pack.id, { Pack.bytes(entries) }) })
    return packs.map(\.0)
  }

  private static func split(_ entries: [PackEntry]) -> [[PackEntry]] {
    var (parts, byteCount) = ([[PackEntry]](), Pack.byteLimit)
    for entry in entries {
      if byteCount >= Pack.byteLimit {
        parts.append([])
        byteCount = 0
      }
      parts[parts.count - 1].append(entry)
      byteCount += entry.byteCount
    }
    return parts
  }

  /// Removes what was written, as far as possible: the rest is found later by its age.
  func discard() async { await Self.remove(ids, from: storage) }

  /// Removes parts, as far as possible.
  static func remove(_ ids: [PartID], from storage: any ConditionalStorage) async {
    await withTaskGroup(of: Void.self) { group in
      for (number, id) in ids.enumerated() {
        if number >= parallelCount { await group.next() }
        group.addTask { try? await storage.remove(id.key) }
      }
    }
  }
}
