import ArgumentParser
import Coffer

/// The argument of `--type`: how to parse the text of a value.
package enum ValueType: String, CaseIterable, ExpressibleByArgument {
  case string, int, double, bool, date, data, url, uuid, array, dict, json, plist, auto
}

extension ValueType {
  /// The type for parsing a value of a declared type.
  package init(_ type: SettingType) {
    switch type {
    case .any, .secret: self = .auto
    case .bool: self = .bool
    case .int: self = .int
    case .double: self = .double
    case .string: self = .string
    case .data: self = .data
    case .date: self = .date
    case .url: self = .url
    case .uuid: self = .uuid
    case .array: self = .array
    case .dictionary: self = .dict
    case .json: self = .json
    }
  }

  /// The type for parsing a value that replaces one of this kind.
  package init(_ kind: Value.Kind) {
    self = ValueType(rawValue: kind.name) ?? .auto
  }
}

/// How the text of data is encoded.
package enum DataEncoding {
  case raw, base64, hex
}
