import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The implementation of `prefs list`, after parsing.
struct ListRequest: Request {
  let place: NamedCollection
  var long = false
  var values = false
  /// Whether to list declared settings that are not set.
  var all = false
  var reveal = false
  var form = ListForm.Choice.text
  var pager: Pager?
  var color = ColorChoice.auto
  var options = SessionOptions()

  private var collection: String { place.name }

  /// The origin of an entry.
  private enum EntryOrigin {
    case store
    case parent(String)
    case locked(ManagedSettings.Place)
    case managed(ManagedSettings.Place)
    case declared
  }

  private struct Entry {
    let key: String
    /// nil for an entry that is not stored.
    let info: ItemInfo?
    let origin: EntryOrigin
    /// Its kind; `sealed` if it was not opened.
    let kind: String
    let value: Value?
  }

  func run() throws {
    let managed = try ManagedSettings(ofApplication: collection)
    let entries = try CommandSession(options).read { transaction in
      var seen: Set<ByteString> = []
      var entries = managed.allKeys.compactMap { key in managed.locked(forKey: key).map { locked(key, $0) } }
      seen.formUnion(entries.map { ByteString($0.key) })
      for name in place.shown {
        for info in try transaction.itemInfos(inCollection: name) where seen.insert(ByteString(info.key)).inserted {
          entries.append(try entry(info, transaction))
        }
      }
      for key in managed.allKeys where seen.insert(ByteString(key)).inserted {
        if let value = managed.defaultValue(forKey: key) { entries.append(given(key, value)) }
      }
      let stored = entries.count
      if all { entries += try unset(besides: &seen, transaction) }
      if entries.isEmpty { try explainEmpty(transaction) }
      let isSorted = managed.isEmpty && place.parent == nil && entries.count == stored
      return isSorted ? entries : entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
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

  private func locked(_ key: String, _ found: (value: Value, place: ManagedSettings.Place)) -> Entry {
    Entry(
      key: key, info: nil, origin: .locked(found.place), kind: found.value.kind.name, value: shown(found.value))
  }

  private func given(_ key: String, _ found: (value: Value, place: ManagedSettings.Place)) -> Entry {
    Entry(
      key: key, info: nil, origin: .managed(found.place), kind: found.value.kind.name, value: shown(found.value))
  }

  private func shown(_ value: Value) -> Value? { values || all ? value : nil }

  /// The settings declared for the collection but not set in it.
  private func unset(
    besides seen: inout Set<ByteString>, _ transaction: borrowing ReadTransaction
  ) throws -> [Entry] {
    var entries: [Entry] = []
    for declaration in try DeclaredKeys(transaction).settings(in: collection).map(\.declaration)
    where seen.insert(ByteString(declaration.name)).inserted {
      entries.append(
        Entry(
          key: declaration.name, info: nil, origin: .declared, kind: declaration.type.description,
          value: declaration.defaultValue))
    }
    return entries
  }

  private func json(_ entry: Entry) -> String {
    let collection = if case .parent(let parent) = entry.origin { parent } else { collection }
    return ItemJSON.text(
      entry.key, collection, entry.info, kind: entry.kind, value: entry.info == nil || values ? entry.value : nil,
      origin: all || place.parent != nil || entry.info == nil ? jsonOrigin(entry.origin) : nil)
  }

  private func jsonOrigin(_ origin: EntryOrigin) -> String {
    switch origin {
    case .store: "store"
    case .locked(let place), .managed(let place): place.description
    default: Self.field(origin)
    }
  }

  private func entry(_ info: ItemInfo, _ transaction: borrowing ReadTransaction) throws -> Entry {
    let origin =
      place.parent.map { ByteString(info.collection) == ByteString($0) ? EntryOrigin.parent($0) : .store } ?? .store
    guard values else { return Entry(key: info.key, info: info, origin: origin, kind: info.kind.name, value: nil) }
    if info.kind == .sealed, !reveal {
      // The value is not shown, so it need not be opened.
      return Entry(
        key: info.key, info: info, origin: origin, kind: Value.Kind.sealed.name,
        value: Redaction.sealed(byteCount: info.byteCount))
    }
    let value = try transaction.item(forKey: info.key, inCollection: info.collection)?.value
    return Entry(
      key: info.key, info: info, origin: origin, kind: (value?.kind ?? info.kind).name,
      value: reveal ? value.map(ValueText.revealed) : value)
  }

  // MARK: - Nothing there

  private func explainEmpty(_ transaction: borrowing ReadTransaction) throws {
    try KeyReference.requireItems(in: collection, transaction)
    let others = try transaction.allCollections().filter { !$0.isEmpty }
    if collection.isEmpty, !others.isEmpty {
      let shown = others.prefix(5).map { "\"\($0)\"" }.joined(separator: ", ")
      options.note("the default collection is empty; the others are: \(shown)\(others.count > 5 ? ", …" : "").")
    }
  }

  // MARK: - Forms

  private func plainFields(_ entry: Entry) -> [String] {
    var fields = [entry.key]
    if long { fields += longFields(entry) }
    if all || place.parent != nil { fields.append(Self.field(entry.origin)) }
    if let value = entry.value { fields.append(ValueText.text(value)) }
    return fields
  }

  private func textLines(_ entries: [Entry]) -> [String] {
    guard long || values || all else { return entries.map { DisplayText.escapingControls($0.key) + "\n" } }
    guard !entries.isEmpty else { return [] }
    var table = Table()
    let marks = entries.contains { !Self.mark($0.origin).isEmpty }
    // What the columns of -l are is not plain from their contents.
    if long {
      let values = entries.contains { $0.value != nil }
      table.add(
        ["KEY", "TYPE", "BYTES", "VERSION", "CHANGED"] + (marks ? ["ORIGIN"] : []) + (values ? ["VALUE"] : []))
    }
    for entry in entries {
      var row = [DisplayText.escapingControls(entry.key)]
      if long { row += longFields(entry) }
      let mark = Self.mark(entry.origin)
      if marks, !mark.isEmpty || entry.value != nil { row.append(mark) }
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

  /// The origin of an entry, for display.
  private static func mark(_ origin: EntryOrigin) -> String {
    switch origin {
    case .store: ""
    case .parent(let parent): parent.isEmpty ? "(from \"\")" : "(from \(DisplayText.escapingControls(parent)))"
    case .locked: "(locked)"
    case .managed: "(managed)"
    case .declared: "(default)"
    }
  }

  /// The same for programs.
  private static func field(_ origin: EntryOrigin) -> String {
    switch origin {
    case .store: ""
    case .parent(let parent): "parent:\(parent)"
    case .locked(let place): "locked:\(place)"
    case .managed(let place): "managed:\(place)"
    case .declared: "default"
    }
  }

  private func longFields(_ entry: Entry) -> [String] {
    guard let info = entry.info else { return [entry.kind, "-", "-", "-"] }
    return [entry.kind, "\(info.byteCount)", "\(info.version)", Timestamp.text(info.modified)]
  }

  /// A value in a table: on one line; data as its length.
  private static func shown(_ value: Value) -> String {
    if case .data(let data) = value { return "<data: \(DisplayText.byteCount(data.count))>" }
    return DisplayText.escapingControls(ValueText.text(value))
  }
}

extension ListRequest {
  /// Parses the usual forms of `list`; nil for others, which the argument parser handles.
  init?(plainArguments arguments: ArraySlice<String>) {
    guard let line = PlainArguments(arguments, flags: ["-l", "--values", "--json"]),
      line.words.count + (line.collection == nil ? 0 : 1) <= 1
    else { return nil }
    let json = line.flags.contains("--json")
    self.init(
      place: NamedCollection(line.words.first ?? line.collection ?? ""), long: line.flags.contains("-l"),
      values: line.flags.contains("--values"), form: json ? .json : .text, pager: json ? nil : Pager(),
      options: line.options)
  }
}
