// A fingerprint of declarations. Every opening of declared settings computes it, often as the first thing that a program
// does. At that point, the first check whether a type conforms to a protocol searches everything that is linked, which costs
// as much as a thousand comparisons of types.

/// The bytes from which the fingerprint of declarations is made.
enum Fingerprint {
  /// A number for each of the most common types of settings; nil for others, which their declaration distinguishes.
  static func type<Object>(of object: Object.Type) -> UInt8? {
    let id = ObjectIdentifier(object)
    return types.firstIndex(of: id).map(UInt8.init)
  }

  private static let types = [
    ObjectIdentifier(Int.self), ObjectIdentifier(Bool.self), ObjectIdentifier(Double.self),
    ObjectIdentifier(String.self), ObjectIdentifier(Int?.self), ObjectIdentifier(Bool?.self),
    ObjectIdentifier(Double?.self), ObjectIdentifier(String?.self), ObjectIdentifier(Secret?.self),
  ]

  static func append(_ limit: SettingLimit, to bytes: inout [UInt8]) {
    switch limit {
    case .range(let minimum, let maximum):
      bytes.append(UInt8(ascii: "r"))
      append(minimum ?? .null, to: &bytes)
      append(maximum ?? .null, to: &bytes)
    case .choices(let choices):
      bytes.append(UInt8(ascii: "c"))
      for choice in choices { append(choice, to: &bytes) }
    case .count(let minimum, let maximum):
      bytes.append(UInt8(ascii: "n"))
      append(.int(Int64(minimum)), to: &bytes)
      append(maximum.map { .int(Int64($0)) } ?? .null, to: &bytes)
    case .pattern(let pattern):
      bytes.append(UInt8(ascii: "p"))
      bytes.append(counted: pattern)
    case .described(let words):
      bytes.append(UInt8(ascii: "d"))
      bytes.append(counted: words)
    }
  }

  static func append(_ value: Value, to bytes: inout [UInt8]) {
    bytes.append(value.kind.rawValue)
    switch value {
    case .null: break
    case .bool(let bool): bytes.append(bool ? 1 : 0)
    case .int(let number): bytes.append(bigEndian: UInt64(bitPattern: number))
    case .double(let number): bytes.append(bigEndian: number.bitPattern)
    case .string(let text): bytes.append(counted: text)
    default: bytes.append(counted: JSONText.text(value, bigIntegers: .numbers))
    }
  }
}

extension Value {
  /// The value of an object of one of the most common types of settings; nil for others.
  init?<Object>(plain object: Object) {
    if Object.self == Int.self, let number = object as? Int {
      self = .int(Int64(number))
    } else if Object.self == Bool.self, let bool = object as? Bool {
      self = .bool(bool)
    } else if Object.self == Double.self, let number = object as? Double {
      self = .double(number)
    } else if Object.self == String.self, let text = object as? String {
      self = .string(text)
    } else {
      return nil
    }
  }
}
