import Coffer

/// The text formats for settings.
package enum SettingsFormat: String, CaseIterable {
  case plist, json, yaml, toml, env

  /// The types that the format supports directly; see ``PortableValue``.
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

  /// The format for a file name's extension.
  package init?(fileName: String) {
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

  /// The format that the contents begin like, if only one does.
  package init?(contents: [UInt8]) {
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

  /// How a file says that a collection is empty.
  func emptyDictionary(_ name: String) -> String { self == .toml ? "[\(name)]" : self == .json ? "{}" : "\(name): {}" }

  // MARK: - Trees

  /// Writes a tree as a file.
  ///
  /// - Parameter isBinary: Whether to write a property list in binary form.
  /// - Throws: ``FormatProblem``.
  package func bytes(_ tree: FileTree, isBinary: Bool = false) throws -> [UInt8] {
    switch self {
    case .plist: try PropertyListFile.bytes(tree, isBinary: isBinary)
    case .json: Array(JSONFile.text(tree).utf8)
    case .yaml: Array(YAMLWriter.text(tree).utf8)
    case .toml: Array(TOMLWriter.text(tree).utf8)
    case .env: Array(try EnvironmentFile.text(tree).utf8)
    }
  }

  /// Parses a file into a tree.
  ///
  /// - Parameter reading: Parses YAML and TOML.
  /// - Throws: ``FormatProblem``, which quotes no value; ``Failure`` if the parser's program is missing.
  package func tree(
    _ bytes: [UInt8], reading: (String, SettingsFormat) throws -> FileTree = FormatsProgram.tree
  ) throws -> FileTree {
    if self == .plist { return try PropertyListFile.tree(bytes) }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw FormatProblem("it is not valid UTF-8")
    }
    // A byte order mark, as written by some editors.
    let isMarked = text.unicodeScalars.first == "\u{feff}"
    if isMarked, self == .env {
      throw FormatProblem("a byte order mark, which Node takes for a part of the first name; remove it, line 1")
    }
    let content = isMarked ? String(text.unicodeScalars.dropFirst()) : text
    return switch self {
    case .json: try JSONFile.tree(content)
    case .yaml, .toml: try reading(content, self)
    case .env, .plist: try EnvironmentFile.tree(content)
    }
  }
}

/// The types that a format supports directly.
package struct NativeKinds {
  var null = false
  /// Integers above `Int64.max`.
  var bigIntegers = false
  var nonFinite = false
  var data = false
  var dates = Dates.none
  /// Whether URLs are archived as by UserDefaults.
  var urlArchives = false
  /// Whether text may hold the character U+0000.
  var nul = true

  enum Dates {
    case none, milliseconds, exact
  }
}
