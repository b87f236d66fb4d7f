import ArgumentParser

/// The command `prefs list`.
struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the keys of a collection.",
    discussion: """
      One key a line, sorted by UTF-8 bytes. Control characters in names are shown as escapes; -0 and --json give names as \
      they are. With --all, settings that are declared and not set stand there with their defaults. -l, --values and --all mark those, \
      what shows from the collection behind an environment, and what an administrator of this host has locked or gives as a \
      default. Secrets, and values of sealed collections, are shown by their size alone, unless --reveal.

      With -l, what expires or should be renewed says when. --due lists that alone, with exit code 16 where there is any.

      Examples:
        prefs list editor
        prefs list editor -l --values
        prefs list editor --all
        prefs list web --env staging --values
        prefs list editor --json
        prefs list tokens --values --reveal
        prefs list --due 30d
        prefs list editor -0 | xargs -0 -n 1 echo
      """)

  @Argument(help: "The collection; the default collection when left out.", completion: Completions.collections)
  var name: String?

  @Flag(name: .customShort("l"), help: "Add type, size, version and time of the last change.")
  var long = false

  @Flag(help: "Add the values.")
  var values = false

  @Flag(help: "Add the settings that are declared and not set, with their defaults.")
  var all = false

  @Option(
    help: ArgumentHelp(
      "Only what should be renewed by then, a date or a time from now; of all collections, unless one is named.",
      valueName: "date"))
  var due: DueDate?

  @Flag(help: "With values: show secrets, too.")
  var reveal = false

  @OptionGroup var form: ListForm

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if due != nil, long || values || all { throw ValidationError("--due takes none of -l, --values and --all.") }
    if reveal, !values { throw ValidationError("--reveal goes with --values.") }
    if let name, let collection = common.collection.last, name != collection {
      throw ValidationError("Name one collection.")
    }
  }

  mutating func run() throws {
    try common.checkCollectionCount()
    guard let due else { return try request().run() }
    let place = try (name.map(CommandArguments.value) ?? common.namedCollection).map(common.inEnvironment)
    try DueRequest(
      date: due.date, collection: place?.name, form: form.choice, pager: form.pager,
      options: common.ofSession(in: place.map { [$0] } ?? [])
    ).run()
  }

  func request() throws -> ListRequest {
    let collection = try common.inEnvironment(name.map(CommandArguments.value) ?? common.namedCollection ?? "")
    return ListRequest(
      place: collection, long: long, values: values, all: all, reveal: reveal, form: form.choice, pager: form.pager,
      color: common.color, options: common.ofSession(in: [collection]))
  }
}

/// The output forms of a list of names.
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

  /// A pager for a list that is longer than the terminal.
  var pager: Pager? { choice == .text && !noPager ? Pager() : nil }

  mutating func validate() throws {
    if json, plain || nul { throw ValidationError("Use one of --json, --plain and -0.") }
  }
}
