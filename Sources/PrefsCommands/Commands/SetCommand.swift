import ArgumentParser
import Coffer

/// The command `prefs set`.
struct SetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Write one value.",
    discussion: """
      The value is read as the declared type of its setting, or else as the type of the existing value. Otherwise it is a \
      string, unless it begins with one of { [ ( < " and parses as JSON or a property list: numbers, booleans and other \
      types then need --type, or one of its short forms. A value that does not match the declaration, or the existing \
      type, is refused with exit code 8, as is a key that is not declared, in a collection with declared settings, unless it is \
      there already, or --undeclared is given.

      The key must not be empty: COLLECTION/ is what an empty variable of a shell leaves.

      With --expires-in or --expires-at, the key is gone from that time on, for every program at once. Setting a key again \
      without them, or without --due, clears its expiry or due date; append, increment, edit and import keep them.

      Examples:
        prefs set editor/theme dark
        prefs set editor/font-size --int 14
        prefs set editor/recent '["a.txt", "b.txt"]'
        prefs set tls/certificate --data --value-file certificate.der
        prefs set mail/password --secret
        prefs set counter --int 2 --if-version 7
        prefs set shop/maintenance --bool true --expires-in 2h
        prefs set mail/password --secret --due 90d
        prefs set shop/http.port 99999 --force
        prefs set note -- --this-begins-with-dashes
      """,
    aliases: ["write"])

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var key: String

  @Argument(
    help: "The value; - reads it from standard input.", completion: Completions.choices)
  var value: String?

  @Option(
    name: [.customShort("t"), .long],
    help: "How to read the value.")
  var type: ValueType?

  @Flag(help: "Short for --type.")
  var shortType: ShortValueType?

  @Flag(help: "The value is data, written as base64; also from - and --value-file.")
  var base64 = false

  @Flag(help: "The value is data, written as hexadecimal digits; also from - and --value-file.")
  var hex = false

  @Option(help: ArgumentHelp("Read the value from this file.", valueName: "file"), completion: .file())
  var valueFile: String?

  @Flag(help: "Drop one newline at the end of the input from - or --value-file.")
  var stripNewline = false

  @Flag(
    help: """
      The value is a secret (text or bytes), which no list shows. It is read from -, from --value-file, or from a prompt, \
      never from an argument.
      """)
  var secret = false

  @Option(help: ArgumentHelp("Write only if the value has this version; 0 means that there is none.", valueName: "n"))
  var ifVersion: Int64?

  @Flag(help: "Write only if the key does not exist.")
  var ifAbsent = false

  @OptionGroup var lifetime: LifetimeOptions

  @OptionGroup var declared: DeclaredOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  // MARK: - Checks

  mutating func validate() throws {
    if type != nil, shortType != nil { throw ValidationError("Name one type.") }
    if base64, hex { throw ValidationError("Use --base64 or --hex, not both.") }
    if base64 || hex, ![nil, .data].contains(type ?? shortType?.type) {
      throw ValidationError("--base64 and --hex need --type data.")
    }
    if ifAbsent, ifVersion != nil { throw ValidationError("Use --if-version or --if-absent, not both.") }
    if let ifVersion, ifVersion < 0 { throw ValidationError("--if-version must be 0 or more.") }
    if value != nil, valueFile != nil { throw ValidationError("Give VALUE or --value-file, not both.") }
    if secret, value != nil, value != "-" {
      let warning = SetRequest.argumentWarning
      throw ValidationError(warning.prefix(1).uppercased() + warning.dropFirst())
    }
    if secret, ![nil, .string, .data].contains(type ?? shortType?.type) {
      throw ValidationError("A secret is text or bytes and has no other type.")
    }
    if value == nil, valueFile == nil, !secret {
      // Without the part after the sign, which may be a secret.
      let name = key.contains("=") ? key.prefix { $0 != "=" } : ""
      throw ValidationError(
        name.isEmpty
          ? "The value is missing. Give VALUE, - or --value-file; a VALUE that looks like an option comes after --."
          : "The value is missing. It must be a separate argument: prefs set \(ShellWord.quoted(String(name))) VALUE.")
    }
    if stripNewline, valueFile == nil, value != "-" {
      throw ValidationError("--strip-newline goes with - or --value-file.")
    }
  }

  // MARK: - Running

  mutating func run() throws {
    try common.checkCollectionCount()
    try request().run()
  }

  func request() throws -> SetRequest {
    let reference = try common.referenceToSet(key)
    return SetRequest(
      reference: reference, value: value.map(CommandArguments.value),
      type: type ?? shortType?.type, base64: base64, hex: hex, valueFile: valueFile.map(CommandArguments.value),
      stripNewline: stripNewline,
      secret: secret, ifVersion: ifVersion, ifAbsent: ifAbsent, expires: lifetime.expires, due: lifetime.due?.date,
      options: common.ofSession(
        in: reference.certainPlaces, force: declared.force, undeclared: declared.undeclared))
  }
}
