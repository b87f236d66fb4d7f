import ArgumentParser
import Coffer

/// The word after `--type`: how the text of a value is to be understood.
package enum ValueType: String, CaseIterable, ExpressibleByArgument {
  case string, int, double, bool, date, data, url, uuid, array, dict, json, plist, auto
}

extension ValueType {
  /// How a value of a declared type is read.
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

  /// How a value is read that takes the place of one of this kind.
  package init(_ kind: Value.Kind) {
    self = ValueType(rawValue: kind.name) ?? .auto
  }
}

/// How the text of data is encoded.
package enum DataEncoding {
  case raw, base64, hex
}
