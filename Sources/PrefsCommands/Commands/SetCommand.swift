import ArgumentParser
import Coffer

/// The command `prefs set`.
struct SetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Write one value.",
    discussion: """
      The value is a string unless it begins with one of { [ ( < " and parses as JSON or a property list. Numbers, truth \
      values and other types need --type, or one of its short forms.

      Examples:
        prefs set editor/theme dark
        prefs set editor/font-size --int 14
        prefs set editor/recent '["a.txt", "b.txt"]'
        prefs set tls/certificate --data --value-file certificate.der
        prefs set mail/password --secret
        prefs set counter --int 2 --if-version 7
        prefs set note -- --this-begins-with-dashes
      """,
    aliases: ["write"])

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var key: String

  @Argument(help: "The value; - reads it from standard input, to the end.")
  var value: String?

  @Option(
    name: [.customShort("t"), .long],
    help: "How to read the value.")
  var type: ValueType?

  @Flag(help: "Short for --type.")
  var shortType: ShortType?

  @Flag(help: "The value is data, written as base64; also from - and --value-file.")
  var base64 = false

  @Flag(help: "The value is data, written as hexadecimal digits; also from - and --value-file.")
  var hex = false

  @Option(help: ArgumentHelp("Read the value from this file.", valueName: "file"), completion: .file())
  var valueFile: String?

  @Flag(help: "Drop one newline at the end of what - or --value-file gives.")
  var stripNewline = false

  @Flag(
    help: """
      The value is a secret, text or bytes, which no list shows: never an argument, but from -, --value-file, or asked for \
      twice without echo.
      """)
  var secret = false

  @Option(help: ArgumentHelp("Write only over this version of the value; 0 stands for none.", valueName: "n"))
  var ifVersion: Int64?

  @Flag(help: "Write only when there is no such key yet.")
  var ifAbsent = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  /// The short forms of `--type`.
  enum ShortType: String, EnumerableFlag {
    case string, int, double, bool, date, data, url, uuid, array, dict

    var type: ValueType { ValueType(rawValue: rawValue) ?? .auto }
  }

  // MARK: - Checks

  mutating func validate() throws {
    if type != nil, shortType != nil { throw ValidationError("Name one type.") }
    if base64, hex { throw ValidationError("Use --base64 or --hex, not both.") }
    if base64 || hex, readType != .data { throw ValidationError("--base64 and --hex are for data.") }
    if ifAbsent, ifVersion != nil { throw ValidationError("Use --if-version or --if-absent, not both.") }
    if let ifVersion, ifVersion < 0 { throw ValidationError("--if-version needs a version, or 0.") }
    if value != nil, valueFile != nil { throw ValidationError("Give VALUE or --value-file, not both.") }
    if secret, value != nil, value != "-" {
      throw ValidationError(Self.argumentWarning.prefix(1).uppercased() + Self.argumentWarning.dropFirst())
    }
    if secret, ![nil, .string, .data].contains(type ?? shortType?.type) {
      throw ValidationError("A secret is text or bytes and has no other type.")
    }
    if value == nil, valueFile == nil, !secret {
      // Without what follows the sign: it may be a secret.
      let name = key.contains("=") ? key.prefix { $0 != "=" } : ""
      throw ValidationError(
        name.isEmpty
          ? "The value is missing. Give VALUE, - or --value-file."
          : "The value is missing. It is an argument of its own: prefs set \(name) VALUE.")
    }
    if stripNewline, valueFile == nil, value != "-" {
      throw ValidationError("--strip-newline goes with - or --value-file.")
    }
  }

  private var readType: ValueType {
    type ?? shortType?.type ?? (base64 || hex ? .data : .auto)
  }

  // MARK: - Running

  mutating func run() throws {
    let reference = KeyReference(key, collection: common.namedCollection)
    try reference.requireUnlocked()
    let session = try Session(common)
    let newValue = try readValue(reference)
    if let ifVersion, ifVersion > 0, try !session.exists() {
      // Not worth making a store for.
      throw conflict(reference, found: nil)
    }
    if readType == .auto, case .string(let text) = newValue, text.hasPrefix("{") || text.hasPrefix("[") {
      common.note("stored as text, for it does not parse as JSON. --dict and --array say why.")
    }
    try session.writeCreating { transaction in
      if isArgument, try transaction.isSealed(collection: reference.collection) { throw argumentRefused(reference) }
      if !secret, !namesType, try isSecret(reference, transaction) { throw plainValueRefused(reference) }
      if ifAbsent || ifVersion != nil {
        let found = try transaction.item(forKey: reference.key, inCollection: reference.collection)?.version
        if found != (ifVersion == 0 ? nil : ifVersion) { throw conflict(reference, found: found) }
      }
      try transaction.setObject(newValue, forKey: reference.key, inCollection: reference.collection)
    }
  }

  private var isArgument: Bool { value != nil && value != "-" }

  private func argumentRefused(_ reference: KeyReference) -> Failure {
    Failure(
      .usage, "\(KeyReference.describe(reference.collection)) is sealed, and \(Self.argumentWarning)")
  }

  /// Whether the value's type is named, and not to be guessed.
  private var namesType: Bool { type != nil || shortType != nil || base64 || hex }

  /// Whether a secret stands there now; of a sealed value only its opening tells.
  private func isSecret(_ reference: KeyReference, _ transaction: borrowing ReadWriteTransaction) throws -> Bool {
    let kind = try transaction.info(forKey: reference.key, inCollection: reference.collection)?.kind
    guard kind == .sealed else { return kind == .secret }
    return try transaction.item(forKey: reference.key, inCollection: reference.collection)?.value.kind == .secret
  }

  private func plainValueRefused(_ reference: KeyReference) -> Failure {
    Failure(
      .usage,
      "key \"\(reference.key)\" in \(KeyReference.describe(reference.collection)) is a secret; nothing was changed. Set it "
        + "with --secret, or name another type with --type.")
  }

  private static let argumentWarning =
    "a secret must not be an argument: other users and the shell's history see it. Pipe it in with -, name a file with "
    + "--value-file, or leave it out to be asked, with --secret."

  private func conflict(_ reference: KeyReference, found: Int64?) -> Failure {
    let name = "key \"\(reference.key)\" in \(KeyReference.describe(reference.collection))"
    let state = found.map { "has version \($0)" } ?? "does not exist"
    return Failure(.conflict, "\(name) \(state); nothing was changed.")
  }

  // MARK: - The value

  private func readValue(_ reference: KeyReference) throws -> Value {
    do {
      // As it is, unless it has to be decoded: then it was in other memory before.
      if secret, !base64, !hex { return .secret(Secret(try secretBytes(reference))) }
      if secret, case .data(let data) = try ValueReader(type: .data, encoding: encoding).value(try bytes(reference)) {
        return .secret(data.withUnsafeBytes(Secret.init(copying:)))
      }
      return try ValueReader(type: readType, encoding: encoding).value(try bytes(reference))
    } catch let failure as Failure where failure.status == .format {
      throw Failure(.format, "the value for key \"\(reference.key)\": \(failure.message)")
    }
  }

  /// Data is text on the command line and bytes in files, unless an option says otherwise.
  private var encoding: DataEncoding {
    if hex { return .hex }
    if base64 { return .base64 }
    return value != nil && value != "-" ? .base64 : .raw
  }

  private func bytes(_ reference: KeyReference) throws -> [UInt8] {
    var bytes: [UInt8]
    if let valueFile {
      bytes = try FileDescriptor.readFile(valueFile)
    } else if value == "-" {
      bytes = try FileDescriptor.readAll(0, named: "standard input")
    } else if let value {
      return Array(CommandArguments.value(value).utf8)
    } else {
      return try secretFromTerminal(reference).withUnsafeBytes { Array($0) }
    }
    if stripNewline, bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    return bytes
  }

  /// The value, straight into protected memory.
  private func secretBytes(_ reference: KeyReference) throws -> SecretBytes {
    if let valueFile { return try FileDescriptor.readSecretFile(valueFile, droppingNewline: stripNewline) }
    guard value == "-" else { return try secretFromTerminal(reference) }
    return try FileDescriptor.readSecret(
      0, named: "standard input", limit: FileDescriptor.secretValueLimit, droppingNewline: stripNewline)
  }

  private func secretFromTerminal(_ reference: KeyReference) throws -> SecretBytes {
    if common.noInput {
      throw Failure(.keyUnavailable, "--no-input forbids asking for the value. Pipe it in with -, or use --value-file.")
    }
    let name = DisplayText.escapingControls(reference.key)
    return try Terminal.newSecret("Value for \(name): ", again: "The same again: ")
  }
}
