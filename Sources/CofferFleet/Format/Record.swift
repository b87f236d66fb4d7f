import Coffer
import CofferCrypto

/// A setting, or the declaration of one, in the form that is stored on a carrier.
struct Record: Equatable, Sendable {
  enum Content: Equatable, Sendable {
    case value(FleetValue)
    /// The setting was removed.
    case tombstone
    case declaration(SharedDeclaration)
    /// The declaration was removed.
    case declarationTombstone
  }

  var collection: String
  var key: String
  /// One more with each change.
  var counter: UInt64
  /// When it was changed, by its author.
  var clock: HybridClock
  /// The member that made it.
  var author: MemberID
  /// Who set it there: see FORMAT.md, Authors; may be empty.
  var writer: String
  var content: Content
  /// The author's, over all of the above.
  var signature = RecordSignature()

  var value: FleetValue? { if case .value(let value) = content { value } else { nil } }

  var declaration: SharedDeclaration? {
    if case .declaration(let declaration) = content { declaration } else { nil }
  }

  /// Whether it is about the declaration of its setting, not about its value.
  var isOfDeclaration: Bool {
    switch content {
    case .value, .tombstone: false
    case .declaration, .declarationTombstone: true
    }
  }

  /// Its place in its collection.
  func place(_ keys: CollectionKeys) throws -> [UInt8] {
    isOfDeclaration ? try keys.place(ofDeclarationOf: key) : try keys.place(of: key)
  }

  /// Whether it has no value at a given time: removed, or expired.
  func isAbsent(at time: Int64) -> Bool { value.map { $0.dates.expires.map { $0 <= time } ?? false } ?? true }

  /// Whether both came from the same change.
  func isSameChange(_ counter: UInt64, _ clock: HybridClock, _ author: MemberID) -> Bool {
    self.counter == counter && self.clock == clock && self.author == author
  }

  // MARK: Signing

  /// What the author signs of it.
  var leaf: [UInt8] {
    get throws {
      var bytes = encoded
      defer { bytes.withUnsafeMutableBytes { Memory.wipe($0) } }
      return try bytes.withUnsafeBytes { try RecordSignature.leaf(of: $0) }
    }
  }

  /// Signs records that are pushed together.
  static func sign(_ records: inout [Record], by identity: Identity, in fleet: [UInt8]) throws {
    for start in stride(from: 0, to: records.count, by: RecordSignature.groupCount) {
      let group = start..<min(start + RecordSignature.groupCount, records.count)
      let signatures = try RecordSignature.sign(leaves: records[group].map { try $0.leaf }, by: identity, in: fleet)
      for (index, signature) in zip(group, signatures) { records[index].signature = signature }
    }
  }

  // MARK: Bytes

  private enum Kind {
    static let value: UInt8 = 1
    static let tombstone: UInt8 = 2
    static let declaration: UInt8 = 3
    static let declarationTombstone: UInt8 = 4
  }

  private enum Field {
    static let expires: UInt8 = 1
    static let due: UInt8 = 2
    static let metadata: UInt8 = 4
    static let all = expires | due | metadata
  }

  /// The sealed object.
  func sealed(_ keys: CollectionKeys) throws -> CarrierObject { try sealed(keys, at: try place(keys)) }

  /// The sealed object, if its place is known already.
  func sealed(_ keys: CollectionKeys, at place: [UInt8]) throws -> CarrierObject {
    var encoded = encoded
    var plaintext: [UInt8] = []
    defer {
      encoded.withUnsafeMutableBytes { Memory.wipe($0) }
      plaintext.withUnsafeMutableBytes { Memory.wipe($0) }
    }
    // Reserved once: growing would free memory with parts of a secret.
    plaintext.reserveCapacity(512 + encoded.count)
    signature.append(to: &plaintext)
    plaintext += encoded
    var bytes = [Format.version]
    try plaintext.withUnsafeBytes { try keys.seal($0, at: place, into: &bytes) }
    return CarrierObject(name: FleetKeys.object(place), bytes: bytes)
  }

  /// Opens the object of a record, whose place depends on its setting.
  init(opening bytes: [UInt8], at place: [UInt8], _ keys: FleetKeys) throws {
    let object = FleetKeys.object(place)
    guard let keys = keys.collection(at: place) else {
      throw FleetError.damaged(object: object, reason: "it belongs to a collection that is not shared with this member")
    }
    self = try Format.read(bytes, object) { _ in
      try keys.withOpened(bytes, behind: 1, at: place) { try Record(&$0) }
    }
    guard collection.utf8.elementsEqual(keys.name.utf8), try self.place(keys) == place else {
      throw FleetError.damaged(object: object, reason: "it belongs to another setting")
    }
  }

  /// Checks that its setting was not changed more often than its collection, which a head has.
  ///
  /// Otherwise one change would leave no number for those of others.
  func checkCounter(at place: [UInt8], _ head: Head) throws {
    guard counter <= head.collection(FleetKeys.folder(of: place))?.number ?? 0 else {
      throw FleetError.damaged(object: FleetKeys.object(place), reason: "its counter is above its collection's number")
    }
  }

  init(
    collection: String, key: String, counter: UInt64, clock: HybridClock, author: MemberID, writer: String,
    content: Content
  ) {
    (self.collection, self.key, self.counter, self.clock) = (collection, key, counter, clock)
    (self.author, self.writer, self.content) = (author, writer, content)
  }

  private var kind: UInt8 {
    switch content {
    case .value: Kind.value
    case .tombstone: Kind.tombstone
    case .declaration: Kind.declaration
    case .declarationTombstone: Kind.declarationTombstone
    }
  }

  private var encoded: [UInt8] {
    var bytes: [UInt8] = []
    // Reserved once: growing would free memory with parts of a secret.
    bytes.reserveCapacity(128 + collection.utf8.count + key.utf8.count + writer.utf8.count + (value?.byteCount ?? 0))
    bytes.append(kind)
    bytes.append(number: counter)
    bytes.append(number: clock.rawValue)
    bytes += author.bytes
    bytes.append(text: collection)
    bytes.append(text: key)
    bytes.append(text: writer)
    if let declaration {
      bytes.append(text: declaration.application)
      bytes.append(text: declaration.version ?? "")
      bytes.append(contentsOf: declaration.json.utf8)
    }
    guard let value else { return bytes }
    let (expires, due) = (value.dates.expires, value.dates.due)
    bytes.append(
      (expires == nil ? 0 : Field.expires) | (due == nil ? 0 : Field.due) | (value.metadata == nil ? 0 : Field.metadata)
    )
    if let expires { bytes.append(number: expires) }
    if let due { bytes.append(number: due) }
    if let metadata = value.metadata {
      bytes.append(metadata.kind.rawValue)
      metadata.bytes.withUnsafeBytes {
        bytes.append(number: UInt32($0.count))
        bytes.append(contentsOf: $0)
      }
    }
    bytes.append(value.object.kind.rawValue)
    value.object.bytes.withUnsafeBytes { bytes.append(contentsOf: $0) }
    return bytes
  }

  private init(_ reader: inout ByteReader) throws(MalformedObject) {
    signature = try RecordSignature(&reader)
    let kind = try reader.number(UInt8.self)
    counter = try reader.number()
    clock = HybridClock(rawValue: try reader.number())
    author = MemberID(bytes: try reader.array(MemberID.byteCount))
    collection = try reader.text()
    key = try reader.text()
    writer = try reader.text()
    guard (1...Self.maximumCounter).contains(counter) else {
      throw MalformedObject(reason: "its counter is out of range")
    }
    switch kind {
    case Kind.tombstone:
      content = .tombstone
      try reader.end()
    case Kind.declarationTombstone:
      content = .declarationTombstone
      try reader.end()
    case Kind.declaration:
      let (application, version) = (try reader.text(), try reader.text())
      // What it means is decided where it is used: another version may have written it.
      guard let json = String(validating: reader.rest(), as: UTF8.self) else {
        throw MalformedObject(reason: "it has text that is not UTF-8")
      }
      content = .declaration(
        SharedDeclaration(application: application, version: version.isEmpty ? nil : version, json: json))
    case Kind.value:
      let fields = try reader.number(UInt8.self)
      guard fields & ~Field.all == 0 else { throw MalformedObject(reason: "it has unknown fields") }
      let dates = ItemDates(
        expires: fields & Field.expires == 0 ? nil : try reader.number(),
        due: fields & Field.due == 0 ? nil : try reader.number())
      var metadata: StoredValue?
      if fields & Field.metadata != 0 {
        let kind = try reader.number(UInt8.self)
        metadata = try Self.stored(kind, reader.counted())
      }
      let kind = try reader.number(UInt8.self)
      content = .value(FleetValue(object: try Self.stored(kind, reader.rest()), metadata: metadata, dates: dates))
    default: throw MalformedObject(reason: "its kind is unknown")
    }
  }

  /// Larger numbers are invalid: no setting changes so often.
  static let maximumCounter: UInt64 = 1 << 60

  private static func stored(_ kind: UInt8, _ bytes: UnsafeRawBufferPointer) throws(MalformedObject) -> StoredValue {
    guard let value = StoredValue(travelling: kind, bytes) else {
      throw MalformedObject(reason: "its value is malformed")
    }
    return value
  }
}

/// A hybrid logical clock (Kulkarni, Demirbas, Madappa, Avva, Leone, "Logical Physical Clocks", 2014): milliseconds since 1970 in
/// the upper 48 bits, and below them a counter that orders changes of the same time.
struct HybridClock: Hashable, Comparable, Sendable {
  let rawValue: UInt64

  init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The clock of a change at a given time, later than that of the change it replaces.
  init(milliseconds: Int64, after earlier: HybridClock? = nil) {
    let time = UInt64(clamping: milliseconds) << 16
    rawValue = max(time, earlier.map { $0.rawValue + 1 } ?? 0)
  }

  var milliseconds: Int64 { Int64(rawValue >> 16) }

  static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
