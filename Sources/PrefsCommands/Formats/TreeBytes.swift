import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The encoding of a tree for the pipe between two processes, without loss.
///
/// Each value is a byte for its kind, followed by its contents; numbers and lengths are 8 bytes, big-endian.
package struct TreeBytes {
  private enum Kind: UInt8 {
    case null, no, yes, int, uint64, double, string, data, date, array, dictionary
    /// The members of a dictionary at one of the outer levels.
    case members
  }

  // MARK: - Writing

  /// - Throws: ``FormatProblem`` for a value that cannot be in a file.
  package static func bytes(_ tree: FileTree) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try append(tree, to: &bytes)
    return bytes
  }

  private static func append(_ tree: FileTree, to bytes: inout [UInt8]) throws {
    switch tree {
    case .value(let value): try append(value, to: &bytes)
    case .members(let members):
      bytes.append(Kind.members.rawValue)
      append(UInt64(members.count), to: &bytes)
      for member in members {
        append(UInt64(member.name.utf8.count), to: &bytes)
        bytes += member.name.utf8
        try append(member.tree, to: &bytes)
      }
    }
  }

  private static func append(_ value: Value, to bytes: inout [UInt8]) throws {
    func begin(_ kind: Kind, _ number: UInt64) {
      bytes.append(kind.rawValue)
      append(number, to: &bytes)
    }
    switch value {
    case .null: bytes.append(Kind.null.rawValue)
    case .bool(let isTrue): bytes.append((isTrue ? Kind.yes : .no).rawValue)
    case .int(let number): begin(.int, UInt64(bitPattern: number))
    case .uint64(let number): begin(.uint64, number)
    case .double(let number): begin(.double, number.bitPattern)
    case .date(let date): begin(.date, date.timeIntervalSinceReferenceDate.bitPattern)
    case .string(let text):
      begin(.string, UInt64(text.utf8.count))
      bytes += text.utf8
    case .data(let data):
      begin(.data, UInt64(data.count))
      bytes += data
    case .array(let elements):
      begin(.array, UInt64(elements.count))
      for element in elements { try append(element, to: &bytes) }
    case .dictionary(let members):
      begin(.dictionary, UInt64(members.count))
      for (name, member) in members {
        append(UInt64(name.utf8.count), to: &bytes)
        bytes += name.utf8
        try append(member, to: &bytes)
      }
    case .url, .uuid, .json, .secret: throw FormatProblem("a value cannot be represented")
    }
  }

  private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
  }

  // MARK: - Reading

  private var rest: ArraySlice<UInt8>
  private static let damaged = FormatProblem("the answer of the reader is malformed")

  /// - Throws: ``FormatProblem`` if the bytes are not a valid tree.
  package static func tree(_ bytes: ArraySlice<UInt8>) throws -> FileTree {
    var reader = TreeBytes(rest: bytes)
    let tree = try reader.tree(depth: 0)
    guard reader.rest.isEmpty else { throw damaged }
    return tree
  }

  private mutating func tree(depth: Int) throws -> FileTree {
    guard depth < FileTree.outerLevels, rest.first == Kind.members.rawValue else {
      return .value(try value(depth: depth))
    }
    rest.removeFirst()
    var members = FileTree.Builder()
    for _ in 0..<(try count()) {
      guard members.append(try text(), try tree(depth: depth + 1)) else { throw Self.damaged }
    }
    return members.tree
  }

  private mutating func value(depth: Int) throws -> Value {
    guard depth <= JSONReader.depthLimit + 1, let byte = rest.popFirst(), let kind = Kind(rawValue: byte) else {
      throw Self.damaged
    }
    switch kind {
    case .null: return .null
    case .no: return .bool(false)
    case .yes: return .bool(true)
    case .int: return .int(Int64(bitPattern: try number()))
    case .uint64: return .uint64(try number())
    case .double: return .double(Double(bitPattern: try number()))
    case .date: return .date(Date(timeIntervalSinceReferenceDate: Double(bitPattern: try number())))
    case .string: return .string(try text())
    case .data: return .data(Data(try counted()))
    case .array:
      var elements: [Value] = []
      for _ in 0..<(try count()) { elements.append(try value(depth: depth + 1)) }
      return .array(elements)
    case .dictionary:
      var members: [String: Value] = [:]
      for _ in 0..<(try count()) {
        let name = try text()
        guard members.updateValue(try value(depth: depth + 1), forKey: name) == nil else { throw Self.damaged }
      }
      return .dictionary(members)
    case .members: throw Self.damaged
    }
  }

  private mutating func number() throws -> UInt64 { try take(8).reduce(0) { $0 << 8 | UInt64($1) } }

  /// The number of elements, each of which takes at least one byte.
  private mutating func count() throws -> Int {
    guard let count = Int(exactly: try number()), count <= rest.count else { throw Self.damaged }
    return count
  }

  private mutating func take(_ count: Int) throws -> ArraySlice<UInt8> {
    guard count <= rest.count else { throw Self.damaged }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  private mutating func counted() throws -> ArraySlice<UInt8> { try take(try count()) }

  private mutating func text() throws -> String {
    guard let text = String(validating: try counted(), as: UTF8.self) else { throw Self.damaged }
    return text
  }
}
