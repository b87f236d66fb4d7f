import ArgumentParser

/// The command `prefs list`.
struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the keys of a collection.",
    discussion: """
      Prints one key per line, sorted by UTF-8 bytes. Control characters in names are escaped; -0 and --json print names \
      unchanged. --all adds settings that are declared but not set, with their defaults; with --app, in all collections \
      in which the application declares settings. -l, --values and --all mark \
      these, values inherited from the collection of an environment, and values that an administrator of this host has \
      locked or set as a default. A value that does not match its declaration is skipped, as by `prefs get`; with --json it is \
      the `problem`. Secrets and sealed values are shown only by their size, unless --reveal is given.

      With -l, a line above names the columns, except with --plain and -0, and expiries and due dates are shown. --due lists only the items due for renewal; the exit code is 16 if there \
      are any.

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

  @Argument(help: "The collection; the default collection if omitted.", completion: Completions.collections)
  var name: String?

  @Flag(name: .customShort("l"), help: "Add type, size, version and time of the last change.")
  var long = false

  @Flag(help: "Add the values.")
  var values = false

  @Flag(help: "Add settings that are declared but not set, with their defaults.")
  var all = false

  @Option(
    help: ArgumentHelp(
      "Only items due for renewal by then, a date or a time from now; in all collections by default.",
      valueName: "date"))
  var due: DueDate?

  @Flag(help: "With values: also show secrets.")
  var reveal = false

  @OptionGroup var form: ListForm

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if due != nil, long || values || all {
      throw ValidationError("--due cannot be combined with -l, --values or --all.")
    }
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
      place: collection, long: long, values: values, all: all, application: all ? common.application(name) : nil,
      reveal: reveal, form: form.choice, pager: form.pager,
      color: common.color, options: common.ofSession(in: [collection]))
  }
}

/// The output forms of a list of names.
struct ListForm: ParsableArguments {
  @Flag(help: "Print one JSON array.")
  var json = false

  @Flag(help: "Print one record per line: fields separated by tabs, escapes with backslashes, no alignment.")
  var plain = false

  @Flag(name: .customShort("0"), help: "End each record with NUL instead of a newline, without escapes.")
  var nul = false

  @Flag(help: "Do not pipe a long list through PAGER.")
  var noPager = false

  enum Choice {
    case text, json, plain, nul

    init(json: Bool, plain: Bool, nul: Bool) {
      self = json ? .json : nul ? .nul : plain ? .plain : .text
    }

    /// A pager for a list that is longer than the terminal.
    func pager(isOff: Bool) -> Pager? { self == .text && !isOff ? Pager() : nil }
  }

  var choice: Choice { Choice(json: json, plain: plain, nul: nul) }

  var pager: Pager? { choice.pager(isOff: noPager) }

  mutating func validate() throws {
    if json, plain || nul { throw ValidationError("Use one of --json, --plain and -0.") }
  }
}

extension PlainArguments {
  /// The form of a list; nil if several exclude each other.
  var listForm: ListForm.Choice? {
    has("--json") && has("--plain", "-0") ? nil : .init(json: has("--json"), plain: has("--plain"), nul: has("-0"))
  }
}
