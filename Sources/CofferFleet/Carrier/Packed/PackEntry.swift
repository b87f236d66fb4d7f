/// An object in a pack, or that it was removed.
struct PackEntry: Sendable {
  let name: String
  /// The number of the commit that changed it.
  var sequence: UInt64
  let content: Content

  enum Content: Sendable {
    case removed
    case bytes([UInt8])
    /// It has an object of the storage of its own.
    case large(LargeObject)
  }

  /// Its size in a pack.
  var byteCount: Int {
    let count = if case .bytes(let bytes) = content { 4 + bytes.count } else { 0 }
    return Self.fixedByteCount + name.utf8.count + count
  }

  private static let fixedByteCount = 10

  var isRemoved: Bool { if case .removed = content { true } else { false } }
}

/// An object too large for a pack.
struct LargeObject: Hashable, Sendable {
  let id: PartID
  let byteCount: Int
}

/// The name of a part of a packed carrier: an object of the storage that is never changed.
struct PartID: Hashable, Sendable {
  static let byteCount = 16

  let bytes: [UInt8]

  init(bytes: [UInt8]) { self.bytes = bytes }

  var key: String { "\(Self.folder)\(bytes.hex)" }

  static let folder = "parts/"

  /// Nil if the key is not that of a part.
  init?(key: String) {
    guard key.hasPrefix(Self.folder), let bytes = [UInt8](hex: key.dropFirst(Self.folder.count)),
      bytes.count == Self.byteCount
    else { return nil }
    self.bytes = bytes
  }
}

// MARK: - Bytes

extension [UInt8] {
  mutating func append(shortText text: String) {
    append(UInt8(text.utf8.count))
    append(contentsOf: text.utf8)
  }

  /// - Precondition: The entry is in the pack itself.
  mutating func append(_ entry: PackEntry) {
    append(shortText: entry.name)
    append(number: entry.sequence)
    switch entry.content {
    case .removed: append(0)
    case .bytes(let bytes):
      append(1)
      append(number: UInt32(bytes.count))
      append(contentsOf: bytes)
    case .large: preconditionFailure("A large object is named by the root.")
    }
  }
}

extension ByteReader {
  mutating func shortText() throws(MalformedObject) -> String {
    let bytes = try bytes(Int(try number(UInt8.self)))
    guard let text = String(validating: bytes, as: UTF8.self), CarrierName.isValid(text) else {
      throw MalformedObject(reason: "it has an invalid name")
    }
    return text
  }

  mutating func packEntry() throws(MalformedObject) -> PackEntry {
    let name = try shortText()
    let sequence = try number(UInt64.self)
    switch try number(UInt8.self) {
    case 0: return PackEntry(name: name, sequence: sequence, content: .removed)
    case 1:
      let count = Int(try number(UInt32.self))
      return PackEntry(name: name, sequence: sequence, content: .bytes(try array(count)))
    default: throw MalformedObject(reason: "it has an entry of another kind")
    }
  }

  mutating func partID() throws(MalformedObject) -> PartID { PartID(bytes: try array(PartID.byteCount)) }
}

/// A part with entries, in the order of their names, each name once.
struct Pack: Sendable {
  let id: PartID
  let byteCount: Int
  let sections: [Section]

  /// Entries whose names are in one folder.
  struct Section: Sendable {
    let first: String
    let last: String
    let range: Range<Int>
  }

  /// A pack is complete with this many bytes.
  static let byteLimit = 2 << 20
  /// The largest pack: its last entry may be an object of the largest size.
  static let maximumByteCount = 4 << 20
  private static let sectionByteLimit = 256 << 10

  init(id: PartID, byteCount: Int, sections: [Section]) {
    (self.id, self.byteCount, self.sections) = (id, byteCount, sections)
  }

  /// Packs entries.
  ///
  /// - Precondition: They are in order.
  init(_ entries: [PackEntry], id: PartID) {
    (self.id, byteCount) = (id, entries.reduce(0) { $0 + $1.byteCount })
    var (sections, first, start, end) = ([Section](), 0, 0, 0)
    for (index, entry) in entries.enumerated() {
      end += entry.byteCount
      let next = index + 1
      let isSectionEnd =
        next == entries.count || end - start >= Self.sectionByteLimit
        || Self.folder(of: entries[next].name) != Self.folder(of: entry.name)
      guard isSectionEnd else { continue }
      sections.append(Section(first: entries[first].name, last: entry.name, range: start..<end))
      (first, start) = (next, end)
    }
    self.sections = sections
  }

  private static func folder(of name: String) -> Substring {
    name[..<(name.lastIndex(of: "/") ?? name.startIndex)]
  }

  static func bytes(_ entries: [PackEntry]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(entries.reduce(0) { $0 + $1.byteCount })
    for entry in entries { bytes.append(entry) }
    return bytes
  }

  /// The entries of a pack, or of a section.
  ///
  /// - Parameter sequence: That of a pack whose entries are all of one commit, which they have as 0.
  static func entries(_ bytes: [UInt8], sequence: UInt64) throws(MalformedObject) -> [PackEntry] {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(MalformedObject) in
        var reader = ByteReader(bytes)
        var entries: [PackEntry] = []
        while !reader.isAtEnd {
          var entry = try reader.packEntry()
          guard entries.last.map({ $0.name < entry.name }) ?? true else {
            throw MalformedObject(reason: "its entries are not in order")
          }
          if entry.sequence == 0 { entry.sequence = sequence }
          entries.append(entry)
        }
        return entries
      }
    }
    return try result.get()
  }
}
