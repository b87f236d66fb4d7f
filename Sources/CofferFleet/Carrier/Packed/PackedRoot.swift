/// The state of a packed carrier, in the object `root`: a commit replaces it.
///
/// Its bytes are in Documentation/PackedCarrier.md.
struct PackedRoot: Sendable {
  /// Random; that of a carrier that was made again at the same place is another one.
  var lineage: [UInt8]
  /// The number of the last commit.
  var sequence: UInt64
  /// Of the last commits, the last one last: so that a writer finds its own if the answer is lost.
  var commitIDs: [[UInt8]]
  /// Removals up to this commit may be forgotten.
  var forgotten: UInt64
  /// The number of merges: one that began before another has ended has read what is no longer there, and is void.
  var mergeCount: UInt64
  /// The newest first.
  var runs: [Run]
  /// The objects that are too large for packs.
  var large: [String: (sequence: UInt64, object: LargeObject)]
  /// Parts that are no longer needed, and since when, in seconds since 1970: who has read an earlier root may still be reading them.
  var retired: [(id: PartID, date: Int64)]
  /// The last changes, by name.
  var recent: [String: PackEntry]

  /// Packs that have each name once.
  struct Run: Sendable {
    /// The highest number of a commit that it has changes of.
    var sequence: UInt64
    var entryCount: Int
    var removedCount: Int
    let packs: [Pack]

    var byteCount: Int { packs.reduce(0) { $0 + $1.byteCount } }
  }

  static let key = "root"
  static let idByteCount = 8
  static let commitIDCount = 64
  static let maximumByteCount = 8 << 20
  /// Reading takes memory for each.
  static let maximumRunCount = 32
  static let maximumLargeCount = 4096
  static let maximumSequence: UInt64 = 1 << 60

  init(lineage: [UInt8]) {
    (self.lineage, sequence, commitIDs, forgotten, mergeCount) = (lineage, 0, [], 0, 0)
    (runs, large, retired, recent) = ([], [:], [], [:])
  }

  /// What it has too much of to be read again, with a number; nil if nothing.
  ///
  /// - Parameter bytes: Its own.
  func excess(_ bytes: [UInt8]) -> String? {
    if bytes.count > Self.maximumByteCount { return "\(bytes.count) bytes" }
    if runs.count > Self.maximumRunCount { return "\(runs.count) runs of packs, which could not be merged" }
    if large.count > Self.maximumLargeCount { return "\(large.count) large objects" }
    let number = max(sequence, mergeCount)
    return number >= Self.maximumSequence ? "the number \(number), which is above all that are allowed" : nil
  }

  var recentByteCount: Int { recent.values.reduce(0) { $0 + $1.byteCount } }

  var revision: CarrierRevision {
    CarrierRevision(text: "\(lineage.hex)-\(sequence)-\((commitIDs.last ?? []).hex)")
  }

  /// The parts that it needs.
  var parts: Set<PartID> {
    Set(runs.flatMap { $0.packs.map(\.id) }).union(large.values.map(\.object.id))
  }

  /// All parts that it names: also those that a reader of an earlier root may still need.
  var named: Set<PartID> { parts.union(retired.map(\.id)) }

  // MARK: - Changes

  /// Changes an object, by the commit that has the root's number.
  mutating func set(_ name: String, _ content: PackEntry.Content, at date: Int64) {
    drop(name, at: date)
    if case .large(let object) = content {
      large[name] = (sequence, object)
    } else {
      recent[name] = PackEntry(name: name, sequence: sequence, content: content)
    }
  }

  /// Drops what it has itself of an object, which a pack has now.
  mutating func drop(_ name: String, at date: Int64) {
    if let old = large.removeValue(forKey: name) { retired.append((old.object.id, date)) }
    recent[name] = nil
  }

  // MARK: - Bytes

  var bytes: [UInt8] {
    var bytes: [UInt8] = [1]
    bytes += lineage
    bytes.append(number: sequence)
    bytes.append(number: forgotten)
    bytes.append(number: mergeCount)
    bytes.append(UInt8(commitIDs.count))
    for id in commitIDs { bytes += id }
    bytes.append(UInt8(runs.count))
    for run in runs {
      bytes.append(number: run.sequence)
      bytes.append(number: UInt32(run.entryCount))
      bytes.append(number: UInt32(run.removedCount))
      bytes.append(number: UInt32(run.packs.count))
      for pack in run.packs {
        bytes += pack.id.bytes
        bytes.append(number: UInt32(pack.byteCount))
        bytes.append(number: UInt32(pack.sections.count))
        for section in pack.sections {
          bytes.append(shortText: section.first)
          bytes.append(shortText: section.last)
          bytes.append(number: UInt32(section.range.count))
        }
      }
    }
    bytes.append(number: UInt32(large.count))
    for (name, object) in large.sorted(by: { $0.key < $1.key }) {
      bytes.append(shortText: name)
      bytes.append(number: object.sequence)
      bytes += object.object.id.bytes
      bytes.append(number: UInt32(object.object.byteCount))
    }
    bytes.append(number: UInt32(retired.count))
    for (id, date) in retired {
      bytes += id.bytes
      bytes.append(number: date)
    }
    bytes.append(number: UInt32(recent.count))
    for entry in recent.values.sorted(by: { $0.name < $1.name }) { bytes.append(entry) }
    return bytes
  }

  /// - Throws: ``CarrierError/garbled(carrier:reason:)``, also for a newer format.
  init(_ bytes: [UInt8], of carrier: String) throws(CarrierError) {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(MalformedObject) in
        var reader = ByteReader(bytes)
        return try PackedRoot(&reader)
      }
    }
    do throws(MalformedObject) {
      self = try result.get()
    } catch {
      throw .garbled(carrier: carrier, reason: "its object \(Self.key) is damaged: \(error.reason)")
    }
  }

  private init(_ reader: inout ByteReader) throws(MalformedObject) {
    let format = try reader.number(UInt8.self)
    guard format == 1 else {
      throw MalformedObject(
        reason: "its format is \(format), which is not a fleet's, or that of a newer version of this program")
    }
    self.init(lineage: try reader.array(Self.idByteCount))
    sequence = try reader.number()
    forgotten = try reader.number()
    mergeCount = try reader.number()
    let idCount = try reader.number(UInt8.self)
    guard idCount <= Self.commitIDCount, idCount <= sequence, forgotten <= sequence, sequence < Self.maximumSequence,
      mergeCount < Self.maximumSequence
    else {
      throw MalformedObject(reason: "its commits do not fit together")
    }
    for _ in 0..<idCount { commitIDs.append(try reader.array(Self.idByteCount)) }
    let runCount = try reader.number(UInt8.self)
    guard runCount <= Self.maximumRunCount else { throw MalformedObject(reason: "it has too many runs of packs") }
    for _ in 0..<runCount { runs.append(try Self.run(&reader, sequence)) }
    let largeCount = try reader.number(UInt32.self)
    guard largeCount <= Self.maximumLargeCount else { throw MalformedObject(reason: "it has too many large objects") }
    for _ in 0..<largeCount {
      let name = try reader.shortText()
      let number = try reader.number(UInt64.self)
      let object = LargeObject(id: try reader.partID(), byteCount: Int(try reader.number(UInt32.self)))
      guard number <= sequence, object.byteCount <= Pack.maximumByteCount,
        large.updateValue((number, object), forKey: name) == nil
      else { throw MalformedObject(reason: "it has an invalid large object") }
    }
    for _ in 0..<(try reader.number(UInt32.self)) {
      let id = try reader.partID()
      let date = try reader.number(Int64.self)
      guard (0..<1 << 60).contains(date) else { throw MalformedObject(reason: "it has an invalid time") }
      retired.append((id, date))
    }
    for _ in 0..<(try reader.number(UInt32.self)) {
      let entry = try reader.packEntry()
      guard entry.sequence <= sequence, large[entry.name] == nil, recent.updateValue(entry, forKey: entry.name) == nil
      else { throw MalformedObject(reason: "it has an invalid change") }
    }
    try reader.end()
  }

  private static func run(_ reader: inout ByteReader, _ last: UInt64) throws(MalformedObject) -> Run {
    let sequence = try reader.number(UInt64.self)
    let (entryCount, removedCount) = (Int(try reader.number(UInt32.self)), Int(try reader.number(UInt32.self)))
    var packs: [Pack] = []
    var name: String?
    for _ in 0..<(try reader.number(UInt32.self)) {
      let id = try reader.partID()
      let byteCount = Int(try reader.number(UInt32.self))
      var (sections, end) = ([Pack.Section](), 0)
      for _ in 0..<(try reader.number(UInt32.self)) {
        let (first, last) = (try reader.shortText(), try reader.shortText())
        let count = Int(try reader.number(UInt32.self))
        guard name.map({ $0 < first }) ?? true, first <= last, count > 0 else {
          throw MalformedObject(reason: "its packs are not in order")
        }
        sections.append(Pack.Section(first: first, last: last, range: end..<end + count))
        (name, end) = (last, end + count)
      }
      guard end == byteCount, byteCount <= Pack.maximumByteCount, !sections.isEmpty else {
        throw MalformedObject(reason: "it has a pack of an invalid size")
      }
      packs.append(Pack(id: id, byteCount: byteCount, sections: sections))
    }
    guard sequence <= last, removedCount <= entryCount else { throw MalformedObject(reason: "it has an invalid run") }
    return Run(sequence: sequence, entryCount: entryCount, removedCount: removedCount, packs: packs)
  }
}
