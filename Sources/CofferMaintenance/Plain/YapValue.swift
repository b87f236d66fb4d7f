import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a serializer of YapDatabase wrote, as a value.
struct YapValue {
  let value: Value
  /// Whether nobody knows what wrote the bytes, which then are data.
  let isOpaque: Bool

  init(_ bytes: [UInt8]) {
    let known = Self.known(bytes)
    // What nests too deep, or is null as a whole, is no value of its own.
    if let known, (try? known.stored) != nil {
      (value, isOpaque) = (known, false)
    } else {
      (value, isOpaque) = (.data(Data(bytes)), true)
    }
  }

  private static func known(_ bytes: [UInt8]) -> Value? {
    if bytes.starts(with: BinaryPropertyListReader.header) || isXML(bytes) {
      return (try? PropertyListReader.value(Data(bytes))).flatMap(value(ofPropertyList:))
    }
    guard let first = bytes.first(where: { !AsciiSpace.contains($0) }), "{[\"".utf8.contains(first),
      let text = String(validating: bytes, as: UTF8.self)
    else { return nil }
    return try? JSONReader.value(text)
  }

  /// A property list may be of any kind, and the archive of something else.
  private static func value(ofPropertyList list: Value) -> Value? {
    KeyedArchive.isArchive(list) ? KeyedArchive.value(list) : list
  }

  private static func isXML(_ bytes: [UInt8]) -> Bool {
    ["<?xml", "<!DOCTYPE plist", "<plist"].contains { bytes.starts(with: $0.utf8) }
  }
}
