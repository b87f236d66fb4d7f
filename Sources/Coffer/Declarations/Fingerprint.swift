/// The bytes from which the fingerprint of declarations is made.
///
/// They are made from the parts of a key, not from its declaration in JSON, which needs to know what the type conforms to:
/// the first such check in a process searches everything that is linked, and costs as much as a thousand comparisons of types.
enum Fingerprint {
  /// What distinguishes a type, a default and limits; nil unless the type is one of the most common ones.
  static func bytes<Object>(of object: Object.Type, default value: Value?, limits: [SettingLimit]) -> [UInt8]? {
    let id = ObjectIdentifier(object)
    guard let type = types.firstIndex(of: id) else { return nil }
    var bytes = [UInt8(type)]
    bytes.reserveCapacity(128)
    if let value { append(value, to: &bytes) }
    for limit in limits { append(limit, to: &bytes) }
    bytes.append(0xff)
    return bytes
  }

  private static let types = [
    ObjectIdentifier(Int.self), ObjectIdentifier(Bool.self), ObjectIdentifier(Double.self),
    ObjectIdentifier(String.self), ObjectIdentifier(Int?.self), ObjectIdentifier(Bool?.self),
    ObjectIdentifier(Double?.self), ObjectIdentifier(String?.self), ObjectIdentifier(Secret?.self),
  ]

  private static func append(_ limit: SettingLimit, to bytes: inout [UInt8]) {
    switch limit {
    case .range(let minimum, let maximum):
      bytes.append(UInt8(ascii: "r"))
      append(minimum ?? .null, to: &bytes)
      append(maximum ?? .null, to: &bytes)
    case .choices(let choices):
      bytes.append(UInt8(ascii: "c"))
      for choice in choices { append(choice, to: &bytes) }
      bytes.append(0xff)
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

  private static func append(_ value: Value, to bytes: inout [UInt8]) {
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
    let value: Value? = PlainType.match(
      Object.self, int: .int(Int64(PlainType.same(object, as: Int.self))), bool: .bool(PlainType.same(object)),
      double: .double(PlainType.same(object)), string: .string(PlainType.same(object)), otherwise: nil)
    guard let value else { return nil }
    self = value
  }
}
