/// A commit of several changes that is being applied to a folder.
///
/// It is in the file `pending`, durable, from before its first change until after its last: once there, it is applied even if its
/// writer is killed, because the next writer that takes the folder's lock completes it. A copy of the folder may still have the file
/// long afterwards, so it is applied only while its condition holds.
///
/// After the digest that all files have, the file consists of: a byte, 1, for this format; the name of the condition; a byte, 1, and
/// the SHA-256 of the required object, or 0 if it must be absent; then each change: a byte, 1, the name and the
/// object, or 0 and the name of a removed one. A name or object follows its length: four bytes, big-endian.
///
/// Modelled in `Documentation/Models/FolderCommit.pml`.
struct PendingCommit {
  private let conditionName: String
  private let conditionDigest: ObjectDigest?
  /// The object of the condition comes last.
  private let changes: [CarrierChange]

  /// The size of the largest commit.
  static let byteLimit = 20 << 20

  init(changes: [CarrierChange], condition: CarrierCondition) throws {
    conditionName = condition.name
    conditionDigest = try condition.bytes.map { try ObjectDigest(of: $0) }
    self.changes = changes.filter { $0.name != condition.name } + changes.filter { $0.name == condition.name }
  }

  // MARK: - With the folder locked

  func make(in folder: CarrierFolder) throws {
    // A single change is one atomic system call.
    guard changes.count > 1 else { return try apply(in: folder) }
    try folder.syncName(of: conditionName)
    try folder.save(encoded, at: folder.pendingPath)
    try Self.sync(in: folder)
    try apply(in: folder)
    try Self.remove(from: folder)
  }

  private static func sync(in folder: CarrierFolder) throws {
    try folder.sync(folder.pendingPath)
    try folder.syncFolder(above: folder.pendingPath)
  }

  /// Whether there is a commit to complete.
  static func isLeft(in folder: CarrierFolder) throws -> Bool {
    guard let commit = try read(in: folder) else { return false }
    return try folder.object(commit.conditionName).map { try ObjectDigest(of: $0) } == commit.conditionDigest
  }

  /// Completes a commit that was left.
  static func complete(in folder: CarrierFolder) throws {
    guard let commit = try read(in: folder) else { return }
    // What a killed writer has done need not be durable.
    if try isLeft(in: folder) {
      try sync(in: folder)
      try commit.apply(in: folder)
    } else {
      try folder.syncName(of: commit.conditionName)
    }
    try remove(from: folder)
  }

  private func apply(in folder: CarrierFolder) throws {
    try apply(changes.dropLast(), in: folder)
    // Only after all others are durable: this one ends the condition. If it were in part, there would be no condition at all.
    try apply(changes.suffix(1), in: folder, isWhole: true)
  }

  /// Makes changes, then syncs them together, which costs the disk a fraction of syncing each.
  private func apply(_ changes: ArraySlice<CarrierChange>, in folder: CarrierFolder, isWhole: Bool = false) throws {
    var shards: Set<String> = []
    for change in changes {
      switch change {
      case .put(let object): try folder.put(object.name, object.bytes, isWhole: isWhole)
      case .remove(let name): guard try folder.remove(folder.objectPath(name)) else { continue }
      }
      shards.insert(CarrierFolder.folder(above: try folder.objectPath(change.name)))
    }
    for case .put(let object) in changes where !isWhole { try folder.sync(folder.objectPath(object.name)) }
    for shard in shards { try folder.sync(shard) }
  }

  private static func remove(from folder: CarrierFolder) throws {
    try folder.remove(folder.pendingPath)
    // It must not reappear after a power cut, when its condition may hold again.
    try folder.syncFolder(above: folder.pendingPath)
  }

  // MARK: - The file

  var encoded: [UInt8] {
    var bytes: [UInt8] = [1]
    bytes.append(counted: conditionName.utf8)
    bytes.append(conditionDigest == nil ? 0 : 1)
    bytes += conditionDigest?.bytes ?? []
    for change in changes {
      switch change {
      case .put(let object):
        bytes.append(1)
        bytes.append(counted: object.name.utf8)
        bytes.append(counted: object.bytes)
      case .remove(let name):
        bytes.append(0)
        bytes.append(counted: name.utf8)
      }
    }
    return bytes
  }

  /// - Returns: Nil if there is none, or only an incomplete copy.
  private static func read(in folder: CarrierFolder) throws -> PendingCommit? {
    guard case .whole(let bytes, _) = try folder.file(at: folder.pendingPath) else { return nil }
    var reader = PendingReader(bytes: bytes[...])
    guard reader.byte() == 1 else {
      throw folder.unreachable("\(folder.pendingPath) was written by a newer version of this program")
    }
    guard let commit = PendingCommit(&reader) else {
      throw folder.unreachable("\(folder.pendingPath) is damaged; remove it while no program is writing")
    }
    return commit
  }

  private init?(_ reader: inout PendingReader) {
    guard let name = reader.name(), let hasDigest = reader.byte(), hasDigest <= 1 else { return nil }
    conditionName = name
    conditionDigest = hasDigest == 1 ? reader.digest() : nil
    guard hasDigest == 0 || conditionDigest != nil else { return nil }
    var changes: [CarrierChange] = []
    while let kind = reader.byte() {
      guard kind <= 1, let name = reader.name() else { return nil }
      if kind == 0 {
        changes.append(.remove(name: name))
      } else {
        guard let bytes = reader.counted() else { return nil }
        changes.append(.put(CarrierObject(name: name, bytes: Array(bytes))))
      }
    }
    self.changes = changes
  }
}

private struct PendingReader {
  var bytes: ArraySlice<UInt8>

  mutating func byte() -> UInt8? { bytes.popFirst() }

  mutating func counted() -> ArraySlice<UInt8>? {
    guard let length = part(4), let part = part(length.reduce(0) { $0 << 8 | Int($1) }) else { return nil }
    return part
  }

  mutating func name() -> String? {
    counted().map { String(decoding: $0, as: UTF8.self) }.flatMap { CarrierName.isValid($0) ? $0 : nil }
  }

  mutating func digest() -> ObjectDigest? { part(ObjectDigest.byteCount).flatMap { ObjectDigest(bytes: Array($0)) } }

  private mutating func part(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= bytes.count else { return nil }
    defer { bytes = bytes.dropFirst(count) }
    return bytes.prefix(count)
  }
}

extension [UInt8] {
  fileprivate mutating func append(counted bytes: some Collection<UInt8>) {
    for shift in [24, 16, 8, 0] { append(UInt8(truncatingIfNeeded: bytes.count >> shift)) }
    append(contentsOf: bytes)
  }
}
