import CofferCrypto

/// A commit on a carrier: its head, and the records that are there or have changed.
struct CarrierView {
  var head: [UInt8]
  /// By object name; nil for a removed object.
  var objects: [String: [UInt8]?]
  /// Whether these are all records, not only changed ones.
  var isComplete: Bool
  var revision: CarrierRevision
  var prepared: PreparedRecords?
  /// Whether the carrier has another head, which an admin cuts off.
  var isCutOff = false

  /// Reads everything.
  ///
  /// - Parameters:
  ///   - bound: What a member has signed; a carrier that lists more is refused while it does.
  ///   - preparation: Processes the records while more are read.
  /// - Returns: Nil if there is no head.
  static func readAll(
    _ carrier: any Carrier, _ bound: CarrierBound, _ preparation: Preparation? = nil
  ) async throws -> CarrierView? {
    let (pages, page) = AsyncStream.makeStream(of: [CarrierObject].self)
    async let prepared = preparation?.records(of: pages)
    var objects: [String: [UInt8]?] = [:]
    var recordCount = 0
    let revision = try await carrier.readAll { listed in
      var records: [CarrierObject] = []
      for object in listed {
        let isRecord = bound.isRecord(object.name)
        // Beside the member's records, the head and blocks of its log are needed, which are small; of the rest the name is enough.
        let isBlock = object.name.hasPrefix("l/") && object.bytes.count <= Self.smallByteCount
        let isNeeded = isRecord || isBlock || object.name == Head.object
        let bytes = isNeeded ? object.bytes : []
        guard objects.updateValue(bytes, forKey: object.name) == nil else {
          throw CarrierError.garbled(carrier: carrier.description, reason: "it lists an object twice")
        }
        if isRecord { records.append(object) }
      }
      if let refusal = preparation?.refusal.error { throw refusal }
      recordCount += records.count
      guard recordCount <= bound.recordCount, objects.count <= bound.objectCount else {
        throw CarrierError.garbled(carrier: carrier.description, reason: "it lists more objects than were written")
      }
      page.yield(records)
    }
    page.finish()
    guard let head = objects[Head.object] ?? nil else { return nil }
    return CarrierView(
      head: head, objects: objects, isComplete: true, revision: revision, prepared: try await prepared)
  }

  /// Reads what changed since a revision, up to a head.
  ///
  /// - Returns: Nil if the carrier no longer knows the changes, or they do not arrive in time.
  static func read(
    _ carrier: any Carrier, after revision: CarrierRevision, upTo head: [UInt8]
  ) async throws -> CarrierView? {
    try await withThrowingTaskGroup(of: CarrierView?.self) { group in
      group.addTask {
        var changes = CarrierChanges()
        for try await event in carrier.changes(after: revision) {
          guard changes.add(event) else { return nil }
          if let view = changes.view, view.head == head { return view }
        }
        return nil
      }
      group.addTask {
        try await Task.sleep(for: patience)
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next() ?? nil
    }
  }

  /// More than a block of the log has.
  private static let smallByteCount = 1024

  /// How long to wait for changes; after that, everything is read.
  private static let patience = Duration.seconds(10)
}

/// How many objects a carrier can have.
struct CarrierBound {
  /// Those of the records of the member's collections, in hexadecimal.
  private let folders: Set<Substring>
  let recordCount: Int
  let objectCount: Int

  /// - Parameter head: The last one that is known: a few commits may have been added meanwhile.
  init(_ head: Head, _ keys: FleetKeys) {
    folders = Set(keys.collections.map { Substring($0.folder.hex) })
    func count(_ collections: [CollectionHead]) -> Int {
      let signed = collections.reduce(0) { min($0 + Int(clamping: min($1.recordCount, 1 << 40)), 1 << 40) }
      return signed + signed / 8 + 1_024 + head.pieces.count * Self.pieceRecordCount
    }
    recordCount = count(head.collections.filter { keys.has(folder: $0.folder) })
    // Each attempt to renew a key may have left a folder.
    objectCount =
      Fleet.attemptCount * count(head.collections) + Int(clamping: min(head.log.count, 1 << 40)) / 8
      + Int(head.membersVersion) + 8_192
  }

  func isRecord(_ object: String) -> Bool {
    object.hasPrefix("r/") && folders.contains(object.dropFirst(2).prefix(2 * Authority.folderByteCount))
  }

  /// More than a piece has changes of records.
  private static let pieceRecordCount = 50_000
}

/// Collects a carrier's changes until they form a commit.
struct CarrierChanges {
  private var objects: [String: [UInt8]?] = [:]
  private(set) var revision: CarrierRevision?

  /// - Returns: False if the carrier no longer knows the changes.
  mutating func add(_ event: CarrierEvent) -> Bool {
    guard event != .interrupted else { return true }
    guard case .changed(let changes, let revision) = event else { return false }
    guard objects.count + changes.count <= Self.maximumCount else { return false }
    for change in changes {
      switch change {
      case .put(let object): objects[object.name] = .some(object.bytes)
      case .remove(let name): objects[name] = .some(nil)
      }
    }
    self.revision = revision
    return true
  }

  /// More than a commit changes; then everything is read.
  private static let maximumCount = 1_000_000

  mutating func removeAll() { self = CarrierChanges() }

  /// Nil if there is no head among them.
  var view: CarrierView? {
    guard let revision, let head = objects[Head.object] ?? nil else { return nil }
    return CarrierView(head: head, objects: objects, isComplete: false, revision: revision)
  }
}
