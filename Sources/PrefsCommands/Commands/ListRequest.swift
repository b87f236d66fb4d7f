import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What `prefs list` does, once it is known what is asked for.
struct ListRequest: Request {
  let collection: String
  var long = false
  var values = false
  /// Whether settings that are declared and not set are listed, too.
  var all = false
  var reveal = false
  var form = ListForm.Choice.text
  var pager: Pager?
  var color = ColorChoice.auto
  var options = SessionOptions()

  private struct Entry {
    let key: String
    /// nil for a setting that is declared and not set.
    let info: ItemInfo?
    /// What it is; `sealed` when that was not looked at.
    let kind: String
    let value: Value?
  }

  func run() throws {
    let entries = try Session(options).read { transaction in
      let infos = try transaction.itemInfos(inCollection: collection)
      let unset = all ? try unset(infos, transaction) : []
      if infos.isEmpty, unset.isEmpty { try explainEmpty(transaction) }
      let entries = try infos.map { try entry($0, transaction) } + unset
      return all ? entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) } : entries
    }
    var output = StandardOutput(pager: pager)
    switch form {
    case .json:
      output.write(JSONText.array(entries.map(json)) + "\n")
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

  /// The settings that are declared for the collection and not set in it.
  private func unset(_ infos: [ItemInfo], _ transaction: borrowing ReadTransaction) throws -> [Entry] {
    let present = Set(infos.map { ByteString($0.key) })
    var seen: Set<ByteString> = []
    return try DeclaredKeys(transaction).settings(in: collection).map(\.declaration)
      .filter { !present.contains(ByteString($0.name)) && seen.insert(ByteString($0.name)).inserted }
      .map { Entry(key: $0.name, info: nil, kind: $0.type.description, value: $0.defaultValue) }
  }

  private func json(_ entry: Entry) -> String {
    ItemJSON.text(
      entry.key, collection, entry.info, kind: entry.kind, value: entry.info == nil || values ? entry.value : nil,
      origin: all ? (entry.info == nil ? "default" : "store") : nil)
  }

  private func entry(_ info: ItemInfo, _ transaction: borrowing ReadTransaction) throws -> Entry {
    guard values else { return Entry(key: info.key, info: info, kind: info.kind.name, value: nil) }
    if info.kind == .sealed, !reveal {
      // It is not to be shown, and so need not be opened.
      return Entry(
        key: info.key, info: info, kind: Value.Kind.sealed.name, value: Redaction.sealed(byteCount: info.byteCount))
    }
    let value = try transaction.item(forKey: info.key, inCollection: info.collection)?.value
    return Entry(
      key: info.key, info: info, kind: (value?.kind ?? info.kind).name,
      value: reveal ? value.map(ValueText.revealed) : value)
  }

  // MARK: - Nothing there

  private func explainEmpty(_ transaction: borrowing ReadTransaction) throws {
    let others = try transaction.allCollections().filter { !$0.isEmpty }
    guard collection.isEmpty else {
      let hint = NearName.best(for: collection, among: others).map { "; did you mean \"\($0)\"?" } ?? "."
      throw Failure(.notFound, "there is no collection \"\(collection)\"\(hint)")
    }
    if !others.isEmpty {
      let shown = others.prefix(5).map { "\"\($0)\"" }.joined(separator: ", ")
      options.note("the default collection is empty; there are others: \(shown)\(others.count > 5 ? ", …" : "").")
    }
  }

  // MARK: - Forms

  private func plainFields(_ entry: Entry) -> [String] {
    var fields = [entry.key]
    if long { fields += longFields(entry) }
    if all { fields.append(entry.info == nil ? "default" : "") }
    if let value = entry.value { fields.append(ValueText.text(value)) }
    return fields
  }

  private func textLines(_ entries: [Entry]) -> [String] {
    guard long || values || all else { return entries.map { DisplayText.escapingControls($0.key) + "\n" } }
    var table = Table()
    for entry in entries {
      var row = [DisplayText.escapingControls(entry.key)]
      if long { row += longFields(entry) }
      if all, entry.info == nil || entry.value != nil { row.append(entry.info == nil ? "(default)" : "") }
      if let value = entry.value { row.append(Self.shown(value)) }
      let notes = RemainingTime.notes(expires: entry.info?.expires, due: entry.info?.due)
      if long, !notes.isEmpty { row.append("(\(notes))") }
      table.add(row)
    }
    guard long else { return table.lines() }
    let style = Style(isOn: color.applies(to: 1))
    return table.lines(rightAligned: [2, 3]) { column, cell in
      switch column {
      case 1: style.kind(cell, isHidden: cell == Value.Kind.secret.name || cell == Value.Kind.sealed.name)
      case 2...4: style.faint(cell)
      default: cell
      }
    }
  }

  private func longFields(_ entry: Entry) -> [String] {
    guard let info = entry.info else { return [entry.kind, "-", "-", "-"] }
    return [entry.kind, "\(info.byteCount)", "\(info.version)", Timestamp.text(info.modified)]
  }

  /// A value in a table: on one line, and bytes by their number.
  private static func shown(_ value: Value) -> String {
    if case .data(let data) = value { return "<data: \(DisplayText.byteCount(data.count))>" }
    return DisplayText.escapingControls(ValueText.text(value))
  }
}

extension ListRequest {
  /// `list` as it is usually written; nil where the parser has to read it.
  init?(plainArguments arguments: ArraySlice<String>) {
    guard let line = PlainArguments(arguments, flags: ["-l", "--values", "--json"]),
      line.words.count + (line.collection == nil ? 0 : 1) <= 1
    else { return nil }
    let json = line.flags.contains("--json")
    self.init(
      collection: line.words.first ?? line.collection ?? "", long: line.flags.contains("-l"),
      values: line.flags.contains("--values"), form: json ? .json : .text, pager: json ? nil : Pager(),
      options: line.options)
  }
}
