import ArgumentParser

/// The command `prefs get`.
struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print one value.",
    discussion: """
      Prints the value and a newline, including the value of a secret. Data is written byte for byte to a file or a pipe; \
      on a terminal it needs --base64 or --hex. A value that an administrator has locked in /etc/coffer/APPLICATION.d \
      overrides the stored one; the application is that of --app, or else named as the collection, or declares settings there. If none is stored, an administrator's default is used, else the declared default, else --default. \
      A value that does not match its declaration is skipped for the next, as programs do, and printed only where there is no \
      other; a note says where it is.

      Examples:
        prefs get editor/theme
        prefs get editor/theme --default light
        prefs get editor/theme --default light --show-origin
        prefs get tls/certificate -o certificate.der
      """,
    aliases: ["read"])

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var key: String

  @Option(
    name: .customLong("default"), parsing: .unconditional,
    help: ArgumentHelp("The value to print if the key has none.", valueName: "value"))
  var fallback: String?

  @Flag(help: "Print a JSON object with key, type, value, version and time.")
  var json = false

  @Flag(name: [.customShort("n"), .long], help: "Omit the newline at the end.")
  var noNewline = false

  @Flag(help: "Print the bytes of the value as base64.")
  var base64 = false

  @Flag(help: "Print the bytes of the value as hexadecimal digits.")
  var hex = false

  @Flag(
    help: "First print the origin: store, default, parent:COLLECTION, or an administrator's FILE:LINE.")
  var showOrigin = false

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Write to this file, readable only by you, instead of standard output.", valueName: "file"),
    completion: .file())
  var output: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if [json, base64, hex].filter({ $0 }).count > 1 { throw ValidationError("Use one of --json, --base64 and --hex.") }
    if json, showOrigin { throw ValidationError("--json already includes the origin.") }
    if output == "" { throw ValidationError("--output needs a path.") }
  }

  mutating func run() throws {
    try common.checkCollectionCount()
    try request().run()
  }

  func request() throws -> ValueRequest {
    let reference = try common.reference(key)
    return ValueRequest(
      reference: reference, fallback: fallback.map(CommandArguments.value),
      json: json, noNewline: noNewline, base64: base64, hex: hex, showOrigin: showOrigin,
      output: output.map(CommandArguments.value),
      options: common.ofSession(in: reference.certainPlaces))
  }
}
