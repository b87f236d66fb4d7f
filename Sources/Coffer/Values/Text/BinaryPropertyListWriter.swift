#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Writes binary property lists; see ``BinaryPropertyListReader`` for the format.
///
/// Foundation's encoder writes equal objects once, and takes texts that differ only in their Unicode normalization, and 0.0
/// and -0.0, for equal.
package struct BinaryPropertyListWriter {
  private enum Object {
    case scalar([UInt8])
    case array([Int])
    case dictionary(names: [Int], values: [Int])
  }

  private var objects: [Object] = []
  private var names: [ByteString: Int] = [:]

  /// - Throws: `PropertyListReader.Problem` for a value that property lists lack.
  package static func bytes(_ tree: FileTree) throws(PropertyListReader.Problem) -> [UInt8] {
    var writer = BinaryPropertyListWriter()
    _ = try writer.add(tree)
    return writer.bytes()
  }

  // MARK: Objects

  /// - Returns: The number of the object.
  private mutating func add(_ tree: FileTree) throws(PropertyListReader.Problem) -> Int {
    let number = objects.count
    if let members = tree.sortedMembers {
      objects.append(.array([]))
      let names = members.map { name($0.name) }
      var values: [Int] = []
      for member in members { values.append(try add(member.tree)) }
      objects[number] = .dictionary(names: names, values: values)
    } else if case .value(.array(let elements)) = tree {
      objects.append(.array([]))
      var numbers: [Int] = []
      for element in elements { numbers.append(try add(.value(element))) }
      objects[number] = .array(numbers)
    } else if case .value(let value) = tree {
      objects.append(.scalar(try Self.scalar(value)))
    }
    return number
  }

  /// Names occur often, and are written once.
  private mutating func name(_ name: String) -> Int {
    if let known = names[ByteString(name)] { return known }
    objects.append(.scalar(Self.string(name)))
    names[ByteString(name)] = objects.count - 1
    return objects.count - 1
  }

  private static func scalar(_ value: Value) throws(PropertyListReader.Problem) -> [UInt8] {
    switch value {
    case .bool(let isTrue): [isTrue ? 0x09 : 0x08]
    case .int(let number) where number < 0: [0x13] + bigEndian(UInt64(bitPattern: number), width: 8)
    case .int(let number): integer(UInt64(number))
    case .uint64(let number): integer(number)
    case .double(let number): [0x23] + bigEndian(number.bitPattern, width: 8)
    case .date(let date): [0x33] + bigEndian(date.timeIntervalSinceReferenceDate.bitPattern, width: 8)
    case .data(let data): header(0x40, data.count) + Array(data)
    case .string(let text): string(text)
    default: throw PropertyListReader.Problem(reason: "a value has no form in property lists")
    }
  }

  /// Up to four bytes are unsigned, eight are signed, and sixteen hold what is greater.
  private static func integer(_ number: UInt64) -> [UInt8] {
    switch number {
    case 0..<1 << 8: [0x10] + bigEndian(number, width: 1)
    case 0..<1 << 16: [0x11] + bigEndian(number, width: 2)
    case 0..<1 << 32: [0x12] + bigEndian(number, width: 4)
    case 0..<1 << 63: [0x13] + bigEndian(number, width: 8)
    default: [0x14] + bigEndian(0, width: 8) + bigEndian(number, width: 8)
    }
  }

  private static func string(_ text: String) -> [UInt8] {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return header(0x50, text.utf8.count) + Array(text.utf8) }
    let units = Array(text.utf16)
    return header(0x60, units.count) + units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
  }

  /// A marker with a count, which follows as an integer if it has more than four bits.
  private static func header(_ marker: UInt8, _ count: Int) -> [UInt8] {
    count < 15 ? [marker | UInt8(count)] : [marker | 0xf] + integer(UInt64(count))
  }

  private static func bigEndian(_ number: UInt64, width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * (width - 1 - $0))) }
  }

  // MARK: The file

  private func bytes() -> [UInt8] {
    let referenceWidth = Self.width(UInt64(objects.count))
    func references(_ numbers: [Int]) -> [UInt8] {
      numbers.flatMap { Self.bigEndian(UInt64($0), width: referenceWidth) }
    }
    var bytes = BinaryPropertyListReader.header
    var offsets: [Int] = []
    for object in objects {
      offsets.append(bytes.count)
      switch object {
      case .scalar(let scalar): bytes += scalar
      case .array(let elements): bytes += Self.header(0xa0, elements.count) + references(elements)
      case .dictionary(let names, let values):
        bytes += Self.header(0xd0, names.count) + references(names) + references(values)
      }
    }
    let table = bytes.count
    let offsetWidth = Self.width(UInt64(table))
    for offset in offsets { bytes += Self.bigEndian(UInt64(offset), width: offsetWidth) }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetWidth), UInt8(referenceWidth)]
    for number in [objects.count, 0, table] { bytes += Self.bigEndian(UInt64(number), width: 8) }
    return bytes
  }

  private static func width(_ limit: UInt64) -> Int {
    limit < 1 << 8 ? 1 : limit < 1 << 16 ? 2 : limit < 1 << 32 ? 4 : 8
  }
}
