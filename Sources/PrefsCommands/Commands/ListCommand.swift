import ArgumentParser
import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The command `prefs list`.
struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the keys of a collection.",
    discussion: """
      One key a line, sorted by UTF-8 bytes. Control characters in names are shown as escapes; -0 and --json give names as \
      they are. Secrets, and values of sealed collections, are shown by their size alone, unless --reveal.

      Examples:
        prefs list editor
        prefs list editor -l --values
        prefs list editor --json
        prefs list tokens --values --reveal
        prefs list editor -0 | xargs -0 -n 1 echo
      """)

  @Argument(help: "The collection; the default collection when left out.", completion: Completions.collections)
  var name: String?

  @Flag(name: .customShort("l"), help: "Add type, size, version and time of the last change.")
  var long = false

  @Flag(help: "Add the values.")
  var values = false

  @Flag(help: "Show secrets in clear, too, among the values.")
  var reveal = false

  @OptionGroup var form: ListForm

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if reveal, !values { throw ValidationError("--reveal goes with --values.") }
    if let name, let collection = common.namedCollection, name != collection {
      throw ValidationError("Name one collection.")
    }
  }

  private struct Entry {
    let info: ItemInfo
    /// What it is; `sealed` when that was not looked at.
    let kind: Value.Kind
    let value: Value?
  }

  mutating func run() throws {
    let collection = name.map(CommandArguments.value) ?? common.namedCollection ?? ""
    let entries = try Session(common).read { transaction in
      let infos = try transaction.itemInfos(inCollection: collection)
      if infos.isEmpty { try explainEmpty(collection, transaction) }
      return try infos.map { try entry($0, transaction) }
    }
    var output = StandardOutput(pager: form.pager)
    switch form.choice {
    case .json:
      output.write(JSONText.array(entries.map { ItemJSON.text($0.info, kind: $0.kind, value: $0.value) }) + "\n")
    case .plain:
      for entry in entries {
        output.write(plainFields(entry).map(DisplayText.plainField).joined(separator: "\t") + "\n")
        try output.breathe()
      }
    case .nul:
      for entry in entries {
        output.write(plainFields(entry).joined(separator: "\t") + "\0")
        try output.breathe()
      }
    case .text:
      for line in textLines(entries) {
        output.write(line)
        try output.breathe()
      }
    }
    try output.finish()
  }

  private func entry(_ info: ItemInfo, _ transaction: borrowing ReadTransaction) throws -> Entry {
    guard values else { return Entry(info: info, kind: info.kind, value: nil) }
    if info.kind == .sealed, !reveal {
      // It is not to be shown, and so need not be opened.
      return Entry(info: info, kind: .sealed, value: Redaction.sealed(byteCount: info.byteCount))
    }
    let value = try transaction.item(forKey: info.key, inCollection: info.collection)?.value
    return Entry(info: info, kind: value?.kind ?? info.kind, value: reveal ? value.map(ValueText.revealed) : value)
  }

  // MARK: - Nothing there

  private func explainEmpty(_ collection: String, _ transaction: borrowing ReadTransaction) throws {
    let others = try transaction.allCollections().filter { !$0.isEmpty }
    guard collection.isEmpty else {
      let hint = NearName.best(for: collection, among: others).map { "; did you mean \"\($0)\"?" } ?? "."
      throw Failure(.notFound, "there is no collection \"\(collection)\"\(hint)")
    }
    if !others.isEmpty {
      let shown = others.prefix(5).map { "\"\($0)\"" }.joined(separator: ", ")
      common.note("the default collection is empty; there are others: \(shown)\(others.count > 5 ? ", …" : "").")
    }
  }

  // MARK: - Forms

  private func plainFields(_ entry: Entry) -> [String] {
    var fields = [entry.info.key]
    if long { fields += longFields(entry) }
    if let value = entry.value { fields.append(ValueText.text(value)) }
    return fields
  }

  private func textLines(_ entries: [Entry]) -> [String] {
    guard long || values else { return entries.map { DisplayText.escapingControls($0.info.key) + "\n" } }
    var table = Table()
    for entry in entries {
      var row = [DisplayText.escapingControls(entry.info.key)]
      if long { row += longFields(entry) }
      if let value = entry.value { row.append(Self.shown(value)) }
      table.add(row)
    }
    guard long else { return table.lines() }
    let style = common.style
    return table.lines(rightAligned: [2, 3]) { column, cell in
      switch column {
      case 1: style.kind(cell, isHidden: cell == Value.Kind.secret.name || cell == Value.Kind.sealed.name)
      case 2...4: style.faint(cell)
      default: cell
      }
    }
  }

  private func longFields(_ entry: Entry) -> [String] {
    let info = entry.info
    return [entry.kind.name, "\(info.byteCount)", "\(info.version)", Timestamp.text(info.modified)]
  }

  /// A value in a table: on one line, and bytes by their number.
  private static func shown(_ value: Value) -> String {
    if case .data(let data) = value { return "<data: \(DisplayText.byteCount(data.count))>" }
    return DisplayText.escapingControls(ValueText.text(value))
  }
}

/// The forms in which names are listed.
struct ListForm: ParsableArguments {
  @Flag(help: "Print one JSON array.")
  var json = false

  @Flag(help: "Print one record a line: fields separated by tabs, escapes with backslashes, nothing aligned.")
  var plain = false

  @Flag(name: .customShort("0"), help: "End each record with a NUL instead of a newline; nothing is escaped.")
  var nul = false

  @Flag(help: "Write a long list straight to the terminal, and not through PAGER.")
  var noPager = false

  enum Choice {
    case text, json, plain, nul
  }

  var choice: Choice {
    if json { return .json }
    if nul { return .nul }
    return plain ? .plain : .text
  }

  /// Shows a list that is longer than the terminal.
  var pager: Pager? { choice == .text && !noPager ? Pager() : nil }

  mutating func validate() throws {
    if json, plain || nul { throw ValidationError("Use one of --json, --plain and -0.") }
  }
}
