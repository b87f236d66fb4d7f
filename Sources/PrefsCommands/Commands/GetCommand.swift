import ArgumentParser
import Coffer

/// The command `prefs get`.
struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print one value.",
    discussion: """
      Prints the value and a newline, also that of a secret. Data goes to a file or a pipe as it is, byte for byte; a \
      terminal needs --base64 or --hex.

      Examples:
        prefs get editor/theme
        prefs get editor/theme --default light
        prefs get editor/theme --default light --show-origin
        prefs get tls/certificate -o certificate.der
      """,
    aliases: ["read"])

  @Argument(help: "KEY or COLLECTION/KEY.")
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

  @Flag(help: "Print where the value comes from, store or default, and a tab before it.")
  var showOrigin = false

  @Option(
    name: [.short, .long],
    help: ArgumentHelp("Write to this file instead of standard output.", valueName: "file"), completion: .file())
  var output: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if [json, base64, hex].filter({ $0 }).count > 1 { throw ValidationError("Use one of --json, --base64 and --hex.") }
    if json, showOrigin { throw ValidationError("--json has the origin already.") }
    if output == "" { throw ValidationError("--output needs a path.") }
  }

  mutating func run() throws {
    let reference = KeyReference(key, collection: common.namedCollection)
    let session = try Session(common)
    if let output, OutputFile.isPart(output, ofStore: session.path) {
      throw Failure(.usage, "\(output) is the store itself; nothing was written.")
    }
    let item = try item(reference, session)
    if let item {
      try emit(
        json ? Array(ItemJSON.text(item).utf8) : originField("store") + encoded(item.value),
        endsLine: endsLine(item.value))
    } else {
      let text = CommandArguments.value(fallback ?? "")
      let bytes =
        json ? Array(ItemJSON.text(reference, fallback: text).utf8) : originField("default") + encoded(.string(text))
      try emit(bytes, endsLine: true)
    }
  }

  /// The entry; nil when it is missing and there is a default.
  private func item(_ reference: KeyReference, _ session: Session) throws -> Item? {
    do {
      return try session.read { transaction in
        let item = try transaction.item(forKey: reference.key, inCollection: reference.collection)
        guard item != nil || fallback != nil else { throw reference.notFound(in: transaction) }
        return item
      }
    } catch CofferError.storeNotFound where fallback != nil {
      // Before the first `set` there is no store, and every key has its default.
      return nil
    }
  }

  // MARK: - Output

  private func encoded(_ value: Value) -> [UInt8] {
    let bytes = ValueText.bytes(value)
    if base64 { return Array(ValueText.base64(bytes).utf8) }
    if hex { return Array(HexText.text(bytes).utf8) }
    return bytes
  }

  private func originField(_ origin: String) -> [UInt8] { showOrigin ? Array((origin + "\t").utf8) : [] }

  private func endsLine(_ value: Value) -> Bool {
    if case .data = ValueText.revealed(value) { return json || base64 || hex }
    return true
  }

  private func emit(_ bytes: [UInt8], endsLine: Bool) throws {
    let line = endsLine && !noNewline ? bytes + [UInt8(ascii: "\n")] : bytes
    if let output {
      try FileDescriptor.writeFile(line, to: output)
      return
    }
    if !endsLine, Terminal.isTerminal(1) {
      throw Failure(
        .usage, "the value is data, which a terminal cannot show. Use --base64, --hex, -o FILE, or a pipe.")
    }
    var answer = StandardOutput()
    answer.write(line)
    try answer.finish()
  }
}
