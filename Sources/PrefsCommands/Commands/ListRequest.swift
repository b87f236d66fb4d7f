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
  var reveal = false
  var form = ListForm.Choice.text
  var pager: Pager?
  var color = ColorChoice.auto
  var options = SessionOptions()

  private struct Entry {
    let info: ItemInfo
    /// What it is; `sealed` when that was not looked at.
    let kind: Value.Kind
    let value: Value?
  }

  func run() throws {
    let entries = try Session(options).read { transaction in
      let infos = try transaction.itemInfos(inCollection: collection)
      if infos.isEmpty { try explainEmpty(transaction) }
      return try infos.map { try entry($0, transaction) }
    }
    var output = StandardOutput(pager: pager)
    switch form {
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
    let info = entry.info
    return [entry.kind.name, "\(info.byteCount)", "\(info.version)", Timestamp.text(info.modified)]
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
