import ArgumentParser

/// The command `prefs get`.
struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print one value.",
    discussion: """
      Prints the value and a newline, also that of a secret. Data goes to a file or a pipe as it is, byte for byte; a \
      terminal needs --base64 or --hex. What an administrator has locked for the application that the collection is named for, in \
      /etc/coffer/COLLECTION.d, goes before the stored value; what is a default there shows where none is stored.

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
    help: ArgumentHelp("What to print when there is no such key.", valueName: "value"))
  var fallback: String?

  @Flag(help: "Print a JSON object with key, type, value, version and time.")
  var json = false

  @Flag(name: [.customShort("n"), .long], help: "Leave out the newline at the end.")
  var noNewline = false

  @Flag(help: "Print the bytes of the value as base64.")
  var base64 = false

  @Flag(help: "Print the bytes of the value as hexadecimal digits.")
  var hex = false

  @Flag(
    help: "Print first where it comes from: store, default, parent:COLLECTION, or an administrator's FILE:LINE.")
  var showOrigin = false

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Write to this file, which nobody else can read then, instead of standard output.", valueName: "file"),
    completion: .file())
  var output: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if [json, base64, hex].filter({ $0 }).count > 1 { throw ValidationError("Use one of --json, --base64 and --hex.") }
    if json, showOrigin { throw ValidationError("--json has the origin already.") }
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
      json: json, noNewline: noNewline, base64: base64, hex: hex, showOrigin: showOrigin, output: output,
      options: common.ofSession(in: [reference.place]))
  }
}
