#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A Swift type with a kind of its own in the store.
///
/// All other types are stored through `Codable` and JSON.
protocol ValueConvertible {
  var value: Value { get }
  /// nil if the value is of another kind, or cannot be converted without loss.
  init?(_ value: Value)
  /// How a setting of this type is declared.
  static var settingType: (type: SettingType, limits: [SettingLimit]) { get }
}

extension Value: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.any, []) }
  var value: Value { self }
  init?(_ value: Value) { self = value }
}

extension Bool: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.bool, []) }
  var value: Value { .bool(self) }
  init?(_ value: Value) {
    guard case .bool(let bool) = value else { return nil }
    self = bool
  }
}

extension String: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.string, []) }
  var value: Value { .string(self) }
  init?(_ value: Value) {
    guard case .string(let string) = value else { return nil }
    self = string
  }
}

extension Data: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.data, []) }
  var value: Value { .data(self) }
  init?(_ value: Value) {
    guard case .data(let data) = value else { return nil }
    self = data
  }
}

extension Date: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.date, []) }
  var value: Value { .date(self) }
  init?(_ value: Value) {
    guard case .date(let date) = value else { return nil }
    self = date
  }
}

extension URL: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.url, []) }
  var value: Value { .url(self) }
  init?(_ value: Value) {
    switch value {
    case .url(let url): self = url
    // The URL of a file as UserDefaults stores it, from which it was imported.
    case .string(let path) where path.isFilePath: self.init(filePath: path)
    default: return nil
    }
  }
}

extension UUID: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.uuid, []) }
  var value: Value { .uuid(self) }
  init?(_ value: Value) {
    guard case .uuid(let uuid) = value else { return nil }
    self = uuid
  }
}

extension Secret: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.secret, []) }

  var value: Value { .secret(self) }

  init?(_ value: Value) {
    guard case .secret(let secret) = value else { return nil }
    self = secret
  }
}

// MARK: - Numbers

extension FixedWidthInteger {
  /// An integer, limited to the range of the type if the store's integers exceed it.
  static var settingType: (type: SettingType, limits: [SettingLimit]) {
    let minimum = Int64(exactly: Self.min).flatMap { $0 == .min ? nil : Value.int($0) }
    let maximum = Int64(exactly: Self.max).flatMap { $0 == .max ? nil : Value.int($0) }
    return (.int, minimum == nil && maximum == nil ? [] : [.range(minimum: minimum, maximum: maximum)])
  }

  fileprivate var integerValue: Value {
    Int64(exactly: self).map(Value.int) ?? .uint64(UInt64(truncatingIfNeeded: self))
  }

  fileprivate init?(integer value: Value) {
    switch value {
    case .int(let number): self.init(exactly: number)
    case .uint64(let number): self.init(exactly: number)
    default: return nil
    }
  }
}

extension Int: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}
extension Int8: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}
extension Int16: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}
extension Int32: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}
extension Int64: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}
extension UInt: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}
extension UInt8: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}
extension UInt16: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}
extension UInt32: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}
extension UInt64: ValueConvertible {
  var value: Value { integerValue }
  init?(_ value: Value) { self.init(integer: value) }
}

extension Double: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.double, []) }
  var value: Value { .double(self) }
  init?(_ value: Value) {
    switch value {
    case .double(let number): self = number
    case .int(let number): self.init(exactly: number)
    case .uint64(let number): self.init(exactly: number)
    default: return nil
    }
  }
}

extension Float: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.double, []) }
  var value: Value { .double(Double(self)) }
  init?(_ value: Value) {
    guard let number = Double(value) else { return nil }
    if number.isNaN { self = .nan } else { self.init(exactly: number) }
  }
}

// MARK: - Collections

extension Optional: ValueConvertible where Wrapped: ValueConvertible {
  // Inside a list or a dictionary, where values can be null.
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.any, []) }
  var value: Value { self?.value ?? .null }
  init?(_ value: Value) {
    if case .null = value {
      self = .none
    } else if let wrapped = Wrapped(value) {
      self = .some(wrapped)
    } else {
      return nil
    }
  }
}

extension Array: ValueConvertible where Element: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.array(Element.settingType.type), []) }
  var value: Value { .array(map(\.value)) }
  init?(_ value: Value) {
    guard case .array(let values) = value else { return nil }
    let elements = values.compactMap(Element.init)
    guard elements.count == values.count else { return nil }
    self = elements
  }
}

extension Dictionary: ValueConvertible where Key == String, Value: ValueConvertible {
  static var settingType: (type: SettingType, limits: [SettingLimit]) { (.dictionary(Value.settingType.type), []) }
  var value: Coffer.Value { .dictionary(mapValues(\.value)) }
  init?(_ value: Coffer.Value) {
    guard case .dictionary(let values) = value else { return nil }
    let elements = values.compactMapValues(Value.init)
    guard elements.count == values.count else { return nil }
    self = elements
  }
}

extension String {
  /// Whether it is the path of a file from the root or a home folder.
  var isFilePath: Bool { utf8.starts(with: "/".utf8) || utf8.starts(with: "~".utf8) }
}
