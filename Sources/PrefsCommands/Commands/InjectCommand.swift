import ArgumentParser
import Coffer

/// The command `prefs inject`.
struct InjectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inject",
    abstract: "Fill settings into a template.",
    discussion: """
      Replaces each {{prefs:COLLECTION/KEY}} or {{prefs:KEY}} by the value, as `prefs get` prints it, including secrets; \
      everything else is copied byte for byte. Spaces inside the braces are ignored. {{prefs:KEY|TEXT}} gives TEXT if the \
      key does not exist. A reference with several slashes is read as by every command: it names the one collection that has the key, and is refused \
      where several have. All values \
      are from one snapshot. If a key is missing, nothing is written and the exit code is 3; a malformed placeholder is \
      exit code 8.

      Examples:
        prefs inject server.conf.in -o server.conf
        echo 'port={{prefs:web/port|8080}}' | prefs inject -
        echo 'token={{prefs:api/token}}' | prefs inject - | ssh host 'cat > .tokenrc'
      """)

  @Argument(help: "The template; - reads it from standard input.", completion: .file())
  var template: String

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Write to this file, readable only by you, instead of standard output.", valueName: "file"),
    completion: .file())
  var output: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if template.isEmpty { throw ValidationError("The template needs a path, or - for standard input.") }
    if output == "" { throw ValidationError("--output needs a path.") }
  }

  mutating func run() throws {
    let session = try CommandSession(common)
    if let output { try session.requireReplaceable(output) }
    let name = template == "-" ? "standard input" : template
    let template = try Template(
      template == "-" ? FileDescriptor.readAll(0, named: name) : FileDescriptor.readFile(template), named: name)
    let places = try template.pieces.flatMap { piece in
      guard case .reference(let text, _, _) = piece else { return [NamedCollection]() }
      return [try reference(text).place]
    }
    let (filled, notes) = try session.readInForce(in: places) { try fill(template, $0) }
    for note in notes { common.note(note) }
    if let output, output != "-" {
      try OutputFile.place(filled, at: output)
    } else {
      var answer = StandardOutput()
      answer.write(filled)
      try answer.finish()
    }
  }

  private func reference(_ text: String) throws -> KeyReference {
    try KeyReference(text, collection: common.namedCollection).inEnvironments(common.inEnvironment)
  }

  /// - Returns: The filled template, and what is to be said of bad values.
  private func fill(
    _ template: Template, _ transaction: borrowing ReadTransaction
  ) throws -> (filled: [UInt8], notes: [String]) {
    var filled: [UInt8] = []
    var notes: [String] = []
    var missing: [Failure] = []
    for piece in template.pieces {
      switch piece {
      case .text(let bytes): filled += bytes
      case .reference(let text, let fallback, let offset):
        do {
          let reference = try reference(text).resolved(transaction)
          let search = try transaction.itemInForce(reference)
          var said = search.notes
          if search.found == nil, let note = try reference.absenceNote(transaction) { said.append(note) }
          notes += said.filter { !notes.contains($0) }
          guard let value = search.found.map({ ArraySlice(ValueText.bytes($0.value)) }) ?? fallback else {
            throw reference.notFound(in: transaction)
          }
          filled += value
        } catch let failure as Failure {
          missing.append(Failure(failure.status, "\(template.place(offset)): \(failure.message)"))
        }
      }
    }
    guard let last = missing.last else { return (filled, notes) }
    for failure in missing.dropLast() { Message.error(failure.message) }
    throw last
  }
}
