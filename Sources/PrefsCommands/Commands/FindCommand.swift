import ArgumentParser
import Coffer

extension EffectiveSettings.Found<ItemInfo> {
  fileprivate var holdsText: Bool {
    switch self {
    case .stored(let info): info.kind.holdsText
    case .locked(let value, _), .managed(let value, _), .declared(let value): value.kind.holdsText
    }
  }
}

/// The command `prefs find`.
struct FindCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "find",
    abstract: "Find keys and text values.",
    discussion: """
      Lists the entries whose key or text contains TEXT, with the matching values. Matching ignores case unless TEXT has \
      an upper-case letter. Text inside arrays and dictionaries is searched, too; secrets and sealed values are not. \
      Without -c, all collections are searched. The exit code is 3 if nothing is found.

      Examples:
        prefs find theme
        prefs find --values example.org
        prefs find -c editor --keys -0 font
      """)

  @Argument(help: "The text to look for.")
  var text: String

  @Flag(help: "Search keys only.")
  var keys = false

  @Flag(help: "Search values only.")
  var values = false

  @OptionGroup var form: ListForm

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if keys, values { throw ValidationError("Use --keys or --values; by default both are searched.") }
    if text.isEmpty { throw ValidationError("Name the text to look for.") }
  }

  private struct Match {
    let collection: String
    let key: String
    /// The value, if it matches.
    let value: Value?
  }

  mutating func run() throws {
    let search = TextSearch(CommandArguments.value(text))
    let named = try common.collection(nil)
    let places = named.map { [$0] } ?? []
    let (matches, sealed, notes) = try CommandSession(common, in: places).readInForce(in: places) { transaction in
      let sealed = try transaction.sealedCollections()
      let declared = try DeclaredKeys(transaction)
      var matches: [Match] = []
      var skipped: [String] = []
      var notes: [String] = []
      for place in try named.map({ [$0] }) ?? declared.collections(transaction).map(NamedCollection.init) {
        let hidden = place.shown.filter { name in sealed.contains { $0.utf8.elementsEqual(name.utf8) } }
        if !keys { skipped += hidden }
        try matches += self.matches(
          search, place, declared, looksAtValues: !keys && hidden.isEmpty, &notes, transaction)
      }
      return (matches, skipped, notes)
    }
    for note in notes { common.note(note) }
    for collection in sealed {
      common.note("the values in \(DisplayText.collection(collection)) are sealed and were not searched.")
    }
    guard !matches.isEmpty else { throw Failure(.notFound, "nothing contains \"\(CommandArguments.value(text))\".") }
    try write(matches)
  }

  // MARK: - Searching

  private func matches(
    _ search: TextSearch, _ place: NamedCollection, _ declared: DeclaredKeys, looksAtValues: Bool,
    _ notes: inout [String], _ transaction: borrowing ReadTransaction
  ) throws -> [Match] {
    let effective = try transaction.effectiveSettings(in: place)
    let stored = try ShownInfos(place, transaction)
    let names = Set((stored.keys + effective.managedKeys).map { ByteString($0) })
    var matches: [Match] = []
    for key in names.sorted().map(\.string) {
      let declaration = effective.hasDeclarations ? declared.setting(key, in: place.name)?.declaration : nil
      let inForce = try effective.info(key, by: declaration, transaction) { stored[key, $0] }
      guard let found = inForce.found else { continue }
      var value: Value?
      let isSearched = looksAtValues && found.holdsText && !declared.isSecret(key, in: place.name)
      if isSearched, let text = try transaction.value(of: found, forKey: key) {
        value = search.matches(text) ? text : nil
      }
      guard value != nil || !values && search.matches(key) else { continue }
      notes += inForce.notes
      var collection = place.name
      if case .stored(let info) = found { collection = info.collection }
      matches.append(Match(collection: collection, key: key, value: value))
    }
    return matches
  }

  // MARK: - Output

  private func write(_ matches: [Match]) throws {
    var output = StandardOutput(pager: form.pager)
    switch form.choice {
    case .json: output.write(JSONText.array(matches.map(json)) + "\n")
    case .plain:
      try output.write(records: matches.lazy.map { [$0.collection, $0.key, $0.value.map(ValueText.text) ?? ""] })
    case .nul:
      try output.write(records: matches.lazy.map { [KeyText.of($0.key, in: $0.collection)] }, endsWithNul: true)
    case .text:
      var table = Table()
      for match in matches {
        let name = DisplayText.escapingControls(KeyText.of(match.key, in: match.collection))
        table.add([name] + (match.value.map { [DisplayText.escapingControls(ValueText.text($0))] } ?? []))
      }
      for line in table.lines() {
        output.write(line)
        try output.breathe()
      }
    }
    try output.finish()
  }

  private func json(_ match: Match) -> String {
    JSONText.object(
      [
        ("collection", JSONText.quoted(match.collection)), ("key", JSONText.quoted(match.key)),
        ("matched", JSONText.quoted(match.value == nil ? "key" : "value")),
      ] + (match.value.map(ItemJSON.value) ?? []))
  }
}
