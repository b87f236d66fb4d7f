import Foundation

@testable import Coffer
@testable import PrefsCommands
@testable import PrefsFormats

extension FuzzTarget {
  /// What the tool reads: files of other formats, and arguments.
  static let tool =
    SettingsFormat.allCases.map { format in
      FuzzTarget("file-\(format.rawValue)") { try file($0, format) }
    } + [
      FuzzTarget("argument-value", argumentValue), FuzzTarget("argument-text", argumentText),
      FuzzTarget("template", template),
    ]

  /// A file of one collection, which must round-trip through writing and reading.
  private static func file(_ bytes: [UInt8], _ format: SettingsFormat) throws {
    _ = try? ImportedSettings(bytes, format: format, named: "file", collection: nil, reading: FormatsTool.tree)
    let file = try ImportedSettings(bytes, format: format, named: "file", collection: "c", reading: FormatsTool.tree)
    for setting in file.settings {
      guard let value = setting.value, let stored = try? value.stored,
        let tree = try? PortableValue.tree(value, native: format.native)
      else { continue }
      // Variables are all text, and XML cannot hold every character.
      guard format != .env else { continue }
      if format == .plist {
        guard (try? PropertyListFile.check(tree)) != nil, (try? PropertyListFile.check(.string(setting.key))) != nil
        else { continue }
      }
      guard format.native.nul || !setting.key.contains("\0") else { continue }
      let written = try format.bytes(.members([FileTree.Member(setting.key, .value(tree))]))
      let again = try ImportedSettings(
        written, format: format, named: "written", collection: "c", reading: FormatsTool.tree
      ).settings
      let isSame = try again.count == 1 && again[0].value?.stored == stored
      try promise(isSame, "a file of \(format) is written as it was read")
    }
  }

  /// The text of a value, the first byte being its type, the second how data is encoded.
  private static func argumentValue(_ bytes: [UInt8]) throws {
    guard bytes.count >= 2 else { return }
    let types = ValueType.allCases
    let encodings = [DataEncoding.raw, .base64, .hex]
    let reader = ValueReader(
      type: types[Int(bytes[0]) % types.count], encoding: encodings[Int(bytes[1]) % encodings.count])
    let value = try reader.value(Array(bytes.dropFirst(2)))
    _ = ValueText.text(value)
    _ = try value.stored
  }

  /// Arguments other than values, separated by NUL: a pattern, a text, and others.
  private static func argumentText(_ bytes: [UInt8]) throws {
    let arguments = bytes.split(separator: 0, omittingEmptySubsequences: false)
      .compactMap { String(validating: $0, as: UTF8.self) }
    guard let pattern = arguments.first else { return }
    let text = arguments.dropFirst().first ?? ""
    _ = Glob(pattern).matches(text)
    _ = TextSearch(pattern).matches(text)
    _ = NearName.best(for: pattern, among: arguments.dropFirst())
    _ = CommandArguments.unknownCommand(in: CommandArguments.marked(arguments), of: PrefsCommand.self)
    _ = VariableName.of(text, prefix: pattern)
    for argument in arguments {
      _ = DurationText.seconds(argument)
      _ = HistoryAge(argument: argument)
      _ = SettingsFormat(fileName: argument)
      let shown = DisplayText.escapingControls(argument)
      try promise(!shown.unicodeScalars.contains { $0.value < 32 }, "nothing shown controls a terminal")
      let reference = KeyReference(argument, collection: nil)
      let again = KeyReference(KeyText.of(reference.key, in: reference.collection), collection: nil)
      try promise(again.isSame(as: reference), "a key's name leads to it")
    }
  }

  /// A template; written again in the shortest form, it is read as the same.
  private static func template(_ bytes: [UInt8]) throws {
    let written = written(try Template(bytes, named: "template"))
    try promise(written == Self.written(try Template(written, named: "template")), "a template's pieces are all of it")
  }

  private static func written(_ template: Template) -> [UInt8] {
    template.pieces.flatMap { piece -> [UInt8] in
      switch piece {
      case .text(let text): return Array(text)
      case .reference(let name, let fallback, let offset):
        _ = template.place(offset)
        // The blank, because the name or the fallback may end with a brace.
        return Array("{{prefs:\(name)".utf8) + (fallback.map { Array("|".utf8) + $0 } ?? []) + Array(" }}".utf8)
      }
    }
  }
}
