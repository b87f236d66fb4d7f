/// Names and values prepared for display.
package enum DisplayText {
  /// `text` with its control characters as escapes such as `\n` and `\u{1b}`.
  ///
  /// A name from a store must neither break a line nor send commands to the terminal.
  package static func escapingControls(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      if isControl(scalar) {
        result += escape(scalar)
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// A line of fields between tabs.
  package static func record(_ fields: [String]) -> String {
    fields.map(plainField).joined(separator: "\t") + "\n"
  }

  /// `text` as a field of a tab-separated line: control characters and backslashes are escaped reversibly.
  package static func plainField(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      if scalar == "\\" {
        result += "\\\\"
      } else if isControl(scalar) {
        result += escape(scalar)
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// A size in bytes for display: `812 bytes`, `4.0 KiB`, `1.5 MiB`.
  static func byteCount(_ count: Int) -> String {
    guard count >= 1024 else { return count == 1 ? "1 byte" : "\(count) bytes" }
    var tenths = count / 1024 * 10 + count % 1024 * 10 / 1024
    var units = ["KiB", "MiB", "GiB", "TiB"][...]
    while tenths >= 10240, units.count > 1 {
      tenths /= 1024
      units.removeFirst()
    }
    return "\(tenths / 10).\(tenths % 10) \(units.first ?? "TiB")"
  }

  /// `1 key`, `2 keys`.
  package static func count(_ number: Int, _ singular: String, _ plural: String) -> String {
    "\(number) \(number == 1 ? singular : plural)"
  }

  /// The collection in a sentence.
  package static func collection(_ collection: String) -> String {
    collection.isEmpty ? "the default collection" : "collection \"\(collection)\""
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    // C0 with DEL, C1, and the line and paragraph separators; then the characters that reorder surrounding text.
    switch scalar.value {
    case 0..<0x20, 0x7f..<0xa0, 0x2028...0x2029, 0x202a...0x202e, 0x2066...0x2069: true
    default: false
    }
  }

  private static func escape(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": "\\n"
    case "\r": "\\r"
    case "\t": "\\t"
    default: "\\u{" + String(scalar.value, radix: 16) + "}"
    }
  }
}
