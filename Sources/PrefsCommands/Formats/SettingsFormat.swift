import Coffer

/// The formats of text in which settings are written and read.
package enum SettingsFormat: String, CaseIterable {
  case plist, json, yaml, toml, env

  /// What stands in the file as itself; see ``PortableValue``.
  package var native: NativeKinds {
    switch self {
    case .plist: NativeKinds(bigIntegers: true, nonFinite: true, data: true, dates: .exact, urlArchives: true)
    case .json: NativeKinds(null: true, bigIntegers: true)
    case .yaml: NativeKinds(null: true, bigIntegers: true, nonFinite: true, data: true, dates: .milliseconds)
    case .toml: NativeKinds(nonFinite: true, dates: .milliseconds, nul: false)
    // Its values are text, see EnvironmentFile.
    case .env: NativeKinds(nul: false)
    }
  }

  // MARK: - Guessing

  /// The format that a file's name ends with.
  init?(fileName: String) {
    let name = fileName.lowercased().split(separator: "/").last ?? ""
    // .env.local, .env.production
    if name.hasPrefix(".env.") {
      self = .env
      return
    }
    guard let dot = name.lastIndex(of: ".") else { return nil }
    switch name[name.index(after: dot)...] {
    case "plist": self = .plist
    case "json": self = .json
    case "yaml", "yml": self = .yaml
    case "toml": self = .toml
    case "env": self = .env
    default: return nil
    }
  }

  /// The format that contents begin like, where no other begins so.
  init?(contents: [UInt8]) {
    if contents.starts(with: "bplist".utf8) {
      self = .plist
      return
    }
    switch contents.first(where: { !AsciiSpace.contains($0) }) {
    case UInt8(ascii: "<"): self = .plist
    case UInt8(ascii: "{"): self = .json
    default: return nil
    }
  }

  // MARK: - Trees

  /// The file for a tree of what the format knows.
  ///
  /// - Parameter isBinary: Whether a property list is to be a binary one.
  func bytes(_ tree: [String: Value], isBinary: Bool = false) throws -> [UInt8] {
    switch self {
    case .plist: try PropertyListFile.bytes(tree, isBinary: isBinary)
    case .json: Array(JSONFile.text(.dictionary(tree)).utf8)
    case .yaml: Array(YAMLWriter.text(.dictionary(tree)).utf8)
    case .toml: Array(TOMLWriter.text(tree).utf8)
    case .env: Array(EnvironmentFile.text(tree).utf8)
    }
  }

  /// The tree that a file holds.
  ///
  /// - Parameter reading: Reads YAML and TOML.
  /// - Throws: ``FormatProblem``, which quotes no value; ``Failure`` where the program is missing that reads the format.
  func tree(
    _ bytes: [UInt8], reading: (String, SettingsFormat) throws -> Value = FormatsProgram.tree
  ) throws -> Value {
    if self == .plist { return try PropertyListFile.tree(bytes) }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw FormatProblem("it is not valid UTF-8")
    }
    // What editors of another system put at the beginning.
    let content = text.hasPrefix("\u{feff}") ? String(text.unicodeScalars.dropFirst()) : text
    return switch self {
    case .json: try JSONFile.tree(content)
    case .yaml, .toml: try reading(content, self)
    case .env, .plist: try EnvironmentFile.tree(content)
    }
  }
}

/// What a format holds as itself.
package struct NativeKinds {
  var null = false
  /// Integers above `Int64.max`.
  var bigIntegers = false
  var nonFinite = false
  var data = false
  var dates = Dates.none
  /// Whether a URL stands there in the way of UserDefaults.
  var urlArchives = false
  /// Whether text may hold the character U+0000.
  var nul = true

  enum Dates {
    case none, milliseconds, exact
  }
}

/// Why a file does not hold settings, or a value has no place in one; never with a value in it.
package struct FormatProblem: Error {
  package let reason: String

  package init(_ reason: String) {
    self.reason = reason
  }
}
