/// The white space of ASCII.
package enum AsciiSpace {
  package static func contains(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }

  /// `text` without leading and trailing white space.
  package static func trimming(_ text: String) -> String {
    var bytes = Substring(text).utf8
    while let first = bytes.first, contains(first) { bytes.removeFirst() }
    while let last = bytes.last, contains(last) { bytes.removeLast() }
    return String(Substring(bytes))
  }
}

extension AsciiSpace {
  /// `bytes` without leading and trailing white space if they are text; a binary property list is left as it is.
  package static func trimmingText(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
    guard !bytes.starts(with: "bplist".utf8) else { return bytes[...] }
    var rest = bytes[...]
    while let first = rest.first, contains(first) { rest.removeFirst() }
    while let last = rest.last, contains(last) { rest.removeLast() }
    return rest
  }
}
