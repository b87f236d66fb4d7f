import Coffer
import CofferCrypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The JSON of etcd's gateway: bytes are base64, and 64-bit numbers are strings.
///
/// Defaults are omitted: a missing member is an empty string, 0 or false.
enum EtcdJSON {
  /// A member of a request with bytes, such as `"key":"aGVhZA=="`.
  static func bytes(_ name: String, _ bytes: some Sequence<UInt8>) -> String {
    "\"\(name)\":\"\(Data(bytes).base64EncodedString())\""
  }

  /// The keys of a folder, as `"key":…,"range_end":…`; the end is the next string of the same length.
  static func range(from start: [UInt8], toEndOf prefix: [UInt8]) -> String {
    "\(bytes("key", start)),\(bytes("range_end", prefix.dropLast() + [prefix[prefix.count - 1] + 1]))"
  }

  static func value(_ text: [UInt8]) -> Value? { try? JSONReader.value(String(decoding: text, as: UTF8.self)) }

  /// The body of a request for a token.
  ///
  /// - Parameter password: UTF-8.
  static func credentials(user: String, password: SecretBytes) -> SecretBytes {
    let start = Array("{\"name\":\"\(escaped(user))\",\"password\":\"".utf8)
    let end = Array("\"}".utf8)
    return password.withUnsafeBytes { password in
      let byteCount = password.reduce(start.count + end.count) { $0 + escapedCount($1) }
      return SecretBytes(count: byteCount) { buffer in
        var position = 0
        func append(_ byte: UInt8) {
          buffer[position] = byte
          position += 1
        }
        start.forEach(append)
        for byte in password {
          if escapedCount(byte) == 1 { append(byte) } else { escape(byte, append) }
        }
        end.forEach(append)
      }
    }
  }

  private static func escaped(_ text: String) -> String {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if escapedCount(byte) == 1 { bytes.append(byte) } else { escape(byte) { bytes.append($0) } }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func escapedCount(_ byte: UInt8) -> Int {
    byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") ? 6 : 1
  }

  /// As `\u0022`.
  private static func escape(_ byte: UInt8, _ append: (UInt8) -> Void) {
    "\\u00".utf8.forEach(append)
    for digit in [byte >> 4, byte & 15] { append(Array("0123456789abcdef".utf8)[Int(digit)]) }
  }
}

extension Value {
  /// A member of an object; nil if it is omitted.
  subscript(name: String) -> Value? {
    if case .dictionary(let members) = self { members[name] } else { nil }
  }
}

extension Value? {
  subscript(name: String) -> Value? { self?[name] }

  var etcdText: String {
    if case .string(let text)? = self { text } else { "" }
  }

  var etcdNumber: Int64 {
    switch self {
    case .string(let text)?: Int64(text) ?? 0
    case .int(let number)?: number
    default: 0
    }
  }

  var etcdFlag: Bool { self == .bool(true) }

  var etcdList: [Value] {
    if case .array(let elements)? = self { elements } else { [] }
  }

  /// Nil if it is not base64.
  var etcdBytes: [UInt8]? { Data(base64Encoded: etcdText).map(Array.init) }
}
