#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads binary property lists, as UserDefaults stores them on Apple systems; the input is untrusted.
///
/// A list is a table of objects that refer to each other by number, see the comments of CFBinaryPList.c in Apple's
/// CoreFoundation: header, objects, the offset of each object, and a trailer of 32 bytes with the position of the offsets.
package struct BinaryPropertyListReader {
  private typealias Problem = PropertyListReader.Problem

  /// The header.
  package static let header = Array("bplist00".utf8)
  private static let trailerCount = 32

  private let bytes: [UInt8]
  private let offsetTable: Int
  private let offsetWidth: Int
  private let referenceWidth: Int
  private let objectCount: Int
  /// How many more objects may be visited, keys included.
  ///
  /// A tree has at most as many as it has bytes; lists that refer to the same lists again and again have exponentially many. And a
  /// list of the same object takes a byte for each, but much more memory.
  private var budget: Int

  /// The value of a binary property list.
  ///
  /// A UID, which occurs only in archives, is returned as in XML: as a dictionary `{ CF$UID = 1; }`.
  package static func value(_ bytes: [UInt8]) throws(PropertyListReader.Problem) -> Value {
    var (reader, top) = try opened(bytes)
    return try reader.object(top, depth: 0)
  }

  /// A binary property list as a file of settings.
  static func fileTree(_ bytes: [UInt8]) throws(PropertyListReader.Problem) -> FileTree {
    var (reader, top) = try opened(bytes)
    return try reader.outer(top, depth: 0)
  }

  private static func opened(
    _ bytes: [UInt8]
  ) throws(PropertyListReader.Problem) -> (reader: BinaryPropertyListReader, top: Int) {
    guard bytes.count >= header.count + trailerCount else { throw Problem(reason: "it is truncated") }
    let trailer = bytes.count - trailerCount
    func number(at offset: Int, _ width: Int) -> UInt64 {
      bytes[trailer + offset..<trailer + offset + width].reduce(0) { $0 << 8 | UInt64($1) }
    }
    let (offsetWidth, referenceWidth) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
    let (count, top, table) = (number(at: 8, 8), number(at: 16, 8), number(at: 24, 8))
    guard (1...8).contains(offsetWidth), (1...8).contains(referenceWidth), count <= UInt64(bytes.count), top < count,
      table <= UInt64(trailer), UInt64(offsetWidth) * count <= UInt64(trailer) - table
    else { throw Problem(reason: "its trailer is malformed") }
    let reader = BinaryPropertyListReader(
      bytes: bytes, offsetTable: Int(table), offsetWidth: offsetWidth, referenceWidth: referenceWidth,
      objectCount: Int(count), budget: min(bytes.count, 2 * JSONReader.countLimit))
    return (reader, Int(top))
  }

  // MARK: Objects

  private mutating func object(_ index: Int, depth: Int) throws(Problem) -> Value {
    guard depth <= JSONReader.depthLimit else {
      throw Problem(reason: "it nests deeper than \(JSONReader.depthLimit) levels")
    }
    budget -= 1
    guard budget >= 0 else { throw tooMany }
    var offset = try self.offset(index)
    let marker = bytes[offset]
    let low = Int(marker & 0xf)
    offset += 1
    switch marker >> 4 {
    case 0x0: return try constant(low)
    case 0x1: return try integer(at: offset, low)
    case 0x2 where low == 2:
      return .double(Double(Float(bitPattern: UInt32(truncatingIfNeeded: try number(at: offset, 4)))))
    case 0x2 where low == 3: return .double(Double(bitPattern: try number(at: offset, 8)))
    case 0x3 where low == 3:
      return .date(Date(timeIntervalSinceReferenceDate: Double(bitPattern: try number(at: offset, 8))))
    case 0x4: return .data(Data(try contents(&offset, low, width: 1)))
    case 0x5: return .string(try string(contents(&offset, low, width: 1), isWide: false))
    case 0x6: return .string(try string(contents(&offset, low, width: 2), isWide: true))
    case 0x8: return .dictionary(["CF$UID": try uid(at: offset, low + 1)])
    case 0xa:
      var elements: [Value] = []
      for reference in try references(&offset, low, perElement: 1) {
        elements.append(try object(reference, depth: depth + 1))
      }
      return .array(elements)
    case 0xd: return .dictionary(try dictionary(references(&offset, low, perElement: 2), depth: depth))
    default: throw Problem(reason: "an object has an unknown type")
    }
  }

  private var tooMany: Problem { Problem(reason: "it has too many values, or refers to them too often") }

  /// The position of an object.
  private func offset(_ index: Int) throws(Problem) -> Int {
    let offset = Int(truncatingIfNeeded: try number(at: offsetTable + index * offsetWidth, offsetWidth))
    guard offset >= Self.header.count, offset < offsetTable else { throw Problem(reason: "an offset is malformed") }
    return offset
  }

  private mutating func outer(_ index: Int, depth: Int) throws(Problem) -> FileTree {
    var offset = try self.offset(index)
    let marker = bytes[offset]
    guard depth < FileTree.outerLevels, marker >> 4 == 0xd else { return .value(try object(index, depth: depth)) }
    budget -= 1
    guard budget >= 0 else { throw tooMany }
    offset += 1
    var members = FileTree.Builder()
    try eachMember(references(&offset, Int(marker & 0xf), perElement: 2), depth: depth) {
      reader, name, value throws(Problem) in
      guard members.append(name, try reader.outer(value, depth: depth + 1)) else {
        throw Problem(reason: "a key occurs twice")
      }
    }
    return members.tree
  }

  private func constant(_ low: Int) throws(Problem) -> Value {
    switch low {
    case 0: return .null
    case 8: return .bool(false)
    case 9: return .bool(true)
    default: throw Problem(reason: "an object has an unknown type")
    }
  }

  /// One, two and four bytes are unsigned, eight are signed; sixteen hold values above the greatest signed number.
  private func integer(at offset: Int, _ logarithm: Int) throws(Problem) -> Value {
    switch logarithm {
    case 0...2: return .int(Int64(truncatingIfNeeded: try number(at: offset, 1 << logarithm)))
    case 3: return .int(Int64(bitPattern: try number(at: offset, 8)))
    case 4:
      let (high, word) = (try number(at: offset, 8), try number(at: offset + 8, 8))
      if high == 0 { return Int64(exactly: word).map(Value.int) ?? .uint64(word) }
      let signed = Int64(bitPattern: word)
      guard high == .max, signed < 0 else { throw Problem(reason: "an integer does not fit") }
      return .int(signed)
    default: throw Problem(reason: "an integer does not fit")
    }
  }

  private func uid(at offset: Int, _ width: Int) throws(Problem) -> Value {
    guard width <= 8, let number = Int64(exactly: try number(at: offset, width)) else {
      throw Problem(reason: "a UID does not fit")
    }
    return .int(number)
  }

  private func string(_ contents: ArraySlice<UInt8>, isWide: Bool) throws(Problem) -> String {
    let text: String?
    if isWide {
      let units = stride(from: contents.startIndex, to: contents.endIndex, by: 2)
        .map { UInt16(contents[$0]) << 8 | UInt16(contents[$0 + 1]) }
      text = String(validating: units, as: UTF16.self)
    } else {
      text = String(validating: contents, as: UTF8.self)
    }
    guard let text else { throw Problem(reason: "a string is malformed") }
    return text
  }

  private mutating func dictionary(_ references: [Int], depth: Int) throws(Problem) -> [String: Value] {
    var members: [String: Value] = [:]
    try eachMember(references, depth: depth) { reader, name, value throws(Problem) in
      guard members.updateValue(try reader.object(value, depth: depth + 1), forKey: name) == nil else {
        throw Problem(reason: FileTree.reason(forSecond: name, in: members))
      }
    }
    return members
  }

  /// Calls `read` with each key and the number of its value.
  private mutating func eachMember(
    _ references: [Int], depth: Int,
    _ read: (_ reader: inout BinaryPropertyListReader, _ name: String, _ value: Int) throws(Problem) -> Void
  ) throws(Problem) {
    let count = references.count / 2
    for (name, value) in zip(references.prefix(count), references.dropFirst(count)) {
      guard case .string(let key) = try object(name, depth: depth + 1) else {
        throw Problem(reason: "a key is not text")
      }
      try read(&self, key, value)
    }
  }

  // MARK: Bytes

  private func number(at offset: Int, _ width: Int) throws(Problem) -> UInt64 {
    guard offset <= bytes.count - width else { throw Problem(reason: "it is truncated") }
    return bytes[offset..<offset + width].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The bytes of an object whose elements have `width` bytes each.
  ///
  /// Their count is in the marker, or in an integer after it.
  private func contents(_ offset: inout Int, _ low: Int, width: Int) throws(Problem) -> ArraySlice<UInt8> {
    var count = low
    if low == 0xf {
      guard offset < bytes.count, bytes[offset] >> 4 == 1, case let logarithm = Int(bytes[offset] & 0xf),
        logarithm <= 3,
        let number = Int(exactly: try number(at: offset + 1, 1 << logarithm))
      else { throw Problem(reason: "a length is malformed") }
      count = number
      offset += 1 + 1 << logarithm
    }
    guard count <= (offsetTable - offset) / width else { throw Problem(reason: "it is truncated") }
    return bytes[offset..<offset + count * width]
  }

  /// The numbers of the objects in a list or dictionary.
  private func references(
    _ offset: inout Int, _ low: Int, perElement: Int
  ) throws(Problem) -> [Int] {
    let contents = try contents(&offset, low, width: referenceWidth * perElement)
    guard contents.count / referenceWidth <= budget else { throw tooMany }
    var references: [Int] = []
    for start in stride(from: contents.startIndex, to: contents.endIndex, by: referenceWidth) {
      guard let reference = Int(exactly: try number(at: start, referenceWidth)), reference < objectCount else {
        throw Problem(reason: "a reference is malformed")
      }
      references.append(reference)
    }
    return references
  }
}
