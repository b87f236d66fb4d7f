import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The implementation of `prefs list`, after parsing.
struct ListRequest: Request {
  private(set) var place: NamedCollection
  var long = false
  var values = false
  /// Whether to list declared settings that are not set.
  var all = false
  /// The application whose settings are listed in all of its collections.
  var application: String?
  /// Whether it is an error if there is nothing.
  var explainsEmpty = true
  var reveal = false
  var form = ListForm.Choice.text
  var pager: Pager?
  var color = ColorChoice.auto
  var options = SessionOptions()

  private var collection: String { place.name }

  private struct Entry {
    let key: String
    let place: NamedCollection
    /// What is known of the stored item; nil for an entry whose value is not stored.
    let info: ItemInfo?
    /// nil for a setting that is declared, and has no value.
    let found: EffectiveSettings.Found<ItemInfo>?
    /// Its kind; `sealed` if it was not opened.
    let kind: String
    let value: Value?
    /// What is wrong with bad values that stand before this one.
    var problem: String?
  }

  func run() throws {
    var request = self
    let (entries, notes) = try CommandSession(options).readInForce(in: [place]) { transaction in
      // What is listed without being set is in force.
      if all { request.place = try place.inForce(transaction) }
      return try request.application.map { try request.entries(of: $0, transaction) } ?? request.entries(transaction)
    }
    try request.write(entries, notes)
  }

  /// The entries of all collections in which an application declares settings, its own first.
  private func entries(
    of application: String, _ transaction: borrowing ReadTransaction
  ) throws -> ([Entry], [String]) {
    let declared = try DeclaredKeys(transaction)
    let others = declared.settings.filter { $0.isDeclared(by: application) }.map(\.declaration.collection)
    let names = Set(others.map { ByteString($0) }).subtracting([ByteString(application)]).sorted().map(\.string)
    var (entries, notes): ([Entry], [String]) = ([], [])
    for place in try [place] + names.map({ try Self.place($0, besides: place, transaction) }) {
      var request = self
      (request.application, request.explainsEmpty, request.place) = (nil, false, place)
      let (found, said) = try request.entries(transaction)
      entries += found
      notes += said
    }
    if entries.isEmpty { try explainEmpty(transaction) }
    return (entries, notes)
  }

  /// Another collection of the same application, in the same environment if there is one.
  private static func place(
    _ name: String, besides own: NamedCollection, _ transaction: borrowing ReadTransaction
  ) throws -> NamedCollection {
    guard own.parent != nil, let environment = own.environment,
      try transaction.hasEnvironment(CollectionEnvironment(environment.name, of: name))
    else { return NamedCollection(name) }
    return try NamedCollection(name, environment: environment.name, isVariable: false)
  }

  /// - Returns: The entries, and what is to be said of bad values.
  private func entries(_ transaction: borrowing ReadTransaction) throws -> ([Entry], [String]) {
    let effective = try transaction.effectiveSettings(in: place)
    let stored = try ShownInfos(place, transaction)
    let declared =
      effective.hasDeclarations ? try DeclaredKeys(transaction).settings(in: collection).map(\.declaration) : []
    var keys = stored.keys
    var seen = Set(keys.map { ByteString($0) })
    let others = effective.managedKeys + (all ? declared.map(\.name) : [])
    keys += others.filter { seen.insert(ByteString($0)).inserted }
    let isSorted = place.parent == nil && keys.count == stored.keys.count
    if !isSorted { keys.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) } }
    let declarations = Dictionary(declared.map { (ByteString($0.name), $0) }) { first, _ in first }
    var notes: [String] = []
    let entries = try keys.compactMap { key in
      let declaration = declarations[ByteString(key)]
      let search = try effective.info(key, by: declaration, transaction) { stored[key, $0] }
      notes += search.notes(isAll: place.parent != nil || place.environment == nil)
      var entry = try entry(key, search.found, declaration, transaction)
      entry?.problem = search.problem
      return entry
    }
    if entries.isEmpty, explainsEmpty { try explainEmpty(transaction) }
    return (entries, notes)
  }

  private func write(_ entries: [Entry], _ notes: [String]) throws {
    for note in notes { options.note(note) }
    var output = StandardOutput(pager: pager)
    switch form {
    case .json:
      output.write(JSONText.array(entries.map(json)) + "\n")
    case .plain, .nul: try output.write(records: entries.lazy.map(plainFields), endsWithNul: form == .nul)
    case .text:
      for line in textLines(entries) {
        output.write(line)
        try output.breathe()
      }
    }
    try output.finish()
  }

  /// - Returns: nil for a key that has no value and is not declared.
  private func entry(
    _ key: String, _ found: EffectiveSettings.Found<ItemInfo>?, _ declaration: Declaration?,
    _ transaction: borrowing ReadTransaction
  ) throws -> Entry? {
    let isSecret = try transaction.isDeclaredSecret(key, inCollection: collection)
    func shown(_ value: Value) -> Value { Redaction(reveals: reveal).shown(value, isSealed: false, isSecret: isSecret) }
    switch found {
    case .stored(let info)?:
      guard values else {
        return Entry(key: key, place: place, info: info, found: found, kind: info.kind.name, value: nil)
      }
      if info.kind == .sealed, !reveal {
        // The value is not shown, so it need not be opened.
        return Entry(
          key: key, place: place, info: info, found: found, kind: Value.Kind.sealed.name,
          value: Redaction.sealed(byteCount: info.byteCount))
      }
      let value = try transaction.item(forKey: key, inCollection: info.collection)?.value
      return Entry(
        key: key, place: place, info: info, found: found, kind: (value?.kind ?? info.kind).name,
        value: value.map(shown))
    case .locked(let value, _)?, .managed(let value, _)?:
      return Entry(
        key: key, place: place, info: nil, found: found, kind: value.kind.name,
        value: values || all ? shown(value) : nil)
    case .declared?, nil:
      return declaration.map {
        Entry(
          key: key, place: place, info: nil, found: found, kind: $0.type.description,
          value: values || all ? $0.defaultValue : nil)
      }
    }
  }

  private func json(_ entry: Entry) -> String {
    let parent = entry.place.parent
    let origin = entry.found?.origin(in: parent, \.collection) ?? "default"
    return ItemJSON.text(
      entry.key, entry.info?.collection ?? entry.place.name, entry.info, kind: entry.kind,
      value: entry.info == nil || values ? entry.value : nil,
      origin: all || parent != nil || entry.info == nil ? origin : nil, problem: entry.problem)
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

  /// The key, in another collection than the one that is named with that.
  private func fullName(_ entry: Entry) -> String {
    entry.place.name.utf8.elementsEqual(collection.utf8) ? entry.key : KeyText.of(entry.key, in: entry.place.name)
  }

  /// The name for people; the empty one would be an empty line.
  private func name(_ entry: Entry) -> String {
    entry.key.isEmpty ? "\"\"" : DisplayText.escapingControls(fullName(entry))
  }

  private func plainFields(_ entry: Entry) -> [String] {
    var fields = [fullName(entry)]
    if long { fields += longFields(entry) }
    if all || place.parent != nil { fields.append(field(entry)) }
    if let value = entry.value { fields.append(ValueText.text(value)) }
    return fields
  }

  private func textLines(_ entries: [Entry]) -> [String] {
    guard long || values || all else { return entries.map { name($0) + "\n" } }
    guard !entries.isEmpty else { return [] }
    var table = Table()
    let marks = entries.contains { !mark($0).isEmpty }
    // What the columns of -l are is not plain from their contents.
    if long {
      let values = entries.contains { $0.value != nil }
      table.add(
        ["KEY", "TYPE", "BYTES", "VERSION", "CHANGED"] + (marks ? ["ORIGIN"] : []) + (values ? ["VALUE"] : []))
    }
    for entry in entries {
      var row = [name(entry)]
      if long { row += longFields(entry) }
      let mark = mark(entry)
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
  private func mark(_ entry: Entry) -> String {
    switch entry.found {
    case .stored(let info)? where isParent(info.collection, of: entry):
      info.collection.isEmpty ? "(from \"\")" : "(from \(DisplayText.escapingControls(info.collection)))"
    case .stored?: ""
    case .locked?: "(locked)"
    case .managed?: "(managed)"
    case .declared?, nil: "(default)"
    }
  }

  /// The same for programs.
  private func field(_ entry: Entry) -> String {
    switch entry.found {
    case .stored(let info)?: isParent(info.collection, of: entry) ? "parent:\(info.collection)" : ""
    case .locked(_, let place)?: "locked:\(place)"
    case .managed(_, let place)?: "managed:\(place)"
    case .declared?, nil: "default"
    }
  }

  private func isParent(_ collection: String, of entry: Entry) -> Bool {
    entry.place.parent.map { $0.utf8.elementsEqual(collection.utf8) } ?? false
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
  /// The request of a plain command line; nil if the argument parser has to parse it.
  init?(_ line: PlainArguments) throws {
    guard line.words.count + line.collection.count <= 1, let form = line.listForm,
      !line.has("--reveal") || line.has("--values")
    else { return nil }
    let place = try line.inEnvironment(line.words.first ?? line.namedCollection ?? "")
    self.init(
      place: place, long: line.has("-l"), values: line.has("--values"), all: line.has("--all"),
      application: line.has("--all") ? line.application(line.words.first) : nil,
      reveal: line.has("--reveal"), form: form, pager: form.pager(isOff: line.has("--no-pager")),
      options: line.ofSession(in: [place]))
  }
}
