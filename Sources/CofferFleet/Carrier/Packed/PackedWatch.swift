/// The stream of a packed carrier's changes: each call reads the root, until it has changed.
actor PackedWatch {
  private let carrier: PackedCarrier
  /// Nil at the end.
  private var position: Position?
  /// Whether the stream began with a revision of another carrier.
  private var isUnknown: Bool
  private var isInterrupted = false
  /// The number of consecutive failures.
  private var failureCount = 0
  /// Whether to wait before the next look.
  private var isPaused = false

  /// A state of the carrier.
  private struct Position {
    /// Nil for an empty one.
    var lineage: [UInt8]?
    var sequence: UInt64 = 0
    var id: [UInt8] = []

    /// Nil for a revision of another carrier.
    init?(_ revision: CarrierRevision) {
      if revision == PackedCarrier.noRevision { return }
      let parts = revision.text.split(separator: "-", omittingEmptySubsequences: false)
      guard parts.count == 3, let lineage = [UInt8](hex: parts[0]), let sequence = UInt64(parts[1]),
        let id = [UInt8](hex: parts[2])
      else { return nil }
      (self.lineage, self.sequence, self.id) = (lineage, sequence, id)
    }

    /// Whether the state of a root is this one, or follows it, and has all changes since.
    func isKnown(to root: PackedRoot?) -> Bool {
      guard let root else { return lineage == nil }
      guard lineage == nil || lineage == root.lineage, sequence <= root.sequence, sequence >= root.forgotten else {
        return false
      }
      let distance = root.sequence - sequence
      // A storage that was put back may have had other commits since.
      return distance >= UInt64(root.commitIDs.count)
        || root.commitIDs[root.commitIDs.count - 1 - Int(distance)] == id
    }
  }

  /// More changes than this are not collected: everything is read instead.
  private static let byteLimit = 64 << 20

  init(carrier: PackedCarrier, revision: CarrierRevision) {
    self.carrier = carrier
    position = Position(revision)
    isUnknown = position == nil
  }

  /// The next event; nil at the end.
  func next() async throws -> CarrierEvent? {
    while let position {
      do {
        if isPaused { try await pause() }
        isPaused = true
        let event = try await look(since: position)
        (isInterrupted, failureCount) = (false, 0)
        if let event { return event }
      } catch is CancellationError {
        return nil
      } catch CarrierError.unreachable {
        failureCount += 1
        if !isInterrupted {
          isInterrupted = true
          return .interrupted
        }
      }
    }
    guard isUnknown else { return nil }
    isUnknown = false
    return .readAll
  }

  /// - Returns: The changes, if there are any.
  private func look(since position: Position) async throws -> CarrierEvent? {
    try await carrier.reading { state in
      guard position.isKnown(to: state.root) else { return end() }
      guard let root = state.root, root.sequence > position.sequence || position.lineage == nil else { return nil }
      guard let changes = try await changes(in: root, since: position.sequence) else { return end() }
      self.position = Position(root.revision)
      return changes.isEmpty ? nil : .changed(changes, root.revision)
    }
  }

  /// Everything must be read again.
  private func end() -> CarrierEvent {
    position = nil
    return .readAll
  }

  /// Nil if there are too many.
  private func changes(in root: PackedRoot, since sequence: UInt64) async throws -> [CarrierChange]? {
    let runs = root.runs.filter { $0.sequence > sequence }
    let entries = MergedEntries(runs, and: root.entriesInMemory, of: carrier.storage)
    var (changes, byteCount) = ([CarrierChange](), 0)
    while let entry = try await entries.next() {
      guard entry.sequence > sequence else { continue }
      let bytes = try await carrier.bytes(of: entry)
      changes.append(bytes.map { .put(CarrierObject(name: entry.name, bytes: $0)) } ?? .remove(name: entry.name))
      byteCount += entry.name.utf8.count + (bytes?.count ?? 0)
      guard byteCount <= Self.byteLimit else { return nil }
    }
    return changes
  }

  /// So that not all hosts come at once; less often while the storage is not available.
  private func pause() async throws {
    let interval = carrier.pollInterval * Double.random(in: 0.75...1.25)
    try await Task.sleep(for: min(interval * Double(1 << min(failureCount, 4)), max(interval, .seconds(30))))
  }
}
