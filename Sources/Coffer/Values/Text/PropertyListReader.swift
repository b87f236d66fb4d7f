#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads property lists: XML, binary, and the old text form `{ name = (a, b); }`.
///
/// Foundation's `PropertyListDecoder` does not distinguish `<real>1</real>` from `<integer>1</integer>`, nor the text
/// `$null` from nil, and takes exponential time for nested lists of unknown type. A settings store must keep exactly what it
/// imports.
package enum PropertyListReader {
  /// Why the data is not a property list.
  package struct Problem: Error {
    package let reason: String
  }

  typealias ValueAndLines = (value: Value, lines: [[String]: Int])

  /// Parses `data` as a property list.
  package static func value(_ data: Data) throws(Problem) -> Value { try valueAndLines(data).value }

  /// Parses `data` as a file of settings.
  package static func fileTree(_ data: Data) throws(Problem) -> FileTree {
    if data.starts(with: BinaryPropertyListReader.header) { return try BinaryPropertyListReader.fileTree(Array(data)) }
    let bytes = try text(data)
    guard bytes.first(where: { !AsciiSpace.contains($0) }) == UInt8(ascii: "<") else { return .value(try value(data)) }
    do {
      return try XMLPropertyListReader.fileTree(bytes)
    } catch {
      guard let list = try? TextPropertyListReader.valueAndLines(bytes).value else { throw error }
      return .value(list)
    }
  }

  /// The value, and the lines of keys if the list is text.
  static func valueAndLines(_ data: Data) throws(Problem) -> ValueAndLines {
    if data.starts(with: BinaryPropertyListReader.header) {
      return (try BinaryPropertyListReader.value(Array(data)), [:])
    }
    let bytes = try text(data)
    guard let first = bytes.first(where: { !AsciiSpace.contains($0) }) else { throw Problem(reason: "it is empty") }
    guard first == UInt8(ascii: "<") else {
      return try TextPropertyListReader.valueAndLines(bytes)
    }
    do {
      return try XMLPropertyListReader.valueAndLines(bytes)
    } catch {
      // The old text form writes data as `<0a 1b>`.
      guard let found = try? TextPropertyListReader.valueAndLines(bytes) else { throw error }
      return found
    }
  }

  /// The bytes of a text in UTF-8, converted from its encoding.
  private static func text(_ data: Data) throws(Problem) -> [UInt8] {
    let bytes = Array(data)
    let decoded: String? =
      switch (bytes.first, bytes.dropFirst().first) {
      case (0xfe, 0xff): String(validating: units(bytes.dropFirst(2), 8, 0), as: UTF16.self)
      case (0xff, 0xfe): String(validating: units(bytes.dropFirst(2), 0, 8), as: UTF16.self)
      case (0xef, 0xbb) where bytes.count > 2 && bytes[2] == 0xbf: String(validating: bytes.dropFirst(3), as: UTF8.self)
      default: String(validating: bytes, as: UTF8.self)
      }
    guard let decoded else { throw Problem(reason: "it is neither a binary property list nor text") }
    return Array(decoded.utf8)
  }

  private static func units(_ bytes: ArraySlice<UInt8>, _ firstShift: Int, _ secondShift: Int) -> [UInt16] {
    stride(from: bytes.startIndex, to: bytes.endIndex, by: 2).map { index in
      // A single byte at the end is half a unit, which is not valid text.
      guard index + 1 < bytes.endIndex else { return 0xd800 }
      return UInt16(bytes[index]) << firstShift | UInt16(bytes[index + 1]) << secondShift
    }
  }
}
