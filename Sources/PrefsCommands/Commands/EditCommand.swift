import ArgumentParser
import Coffer

/// The command `prefs edit`.
struct EditCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit",
    abstract: "Change a collection in an editor.",
    discussion: """
      Opens the collection as a file in $VISUAL, $EDITOR or vi, and applies your changes in one transaction: a new line \
      sets a key, a deleted one removes it. Other keys stay as they are, and a changed key keeps its metadata, expiry and \
      due date. If another program has meanwhile changed a key that you changed, nothing is set (exit code 9).

      The file is in a folder that only you can enter, in $XDG_RUNTIME_DIR or beside the store, and is overwritten and \
      removed afterwards. Secrets are shown as placeholders and kept, unless --reveal is given; a sealed collection needs \
      it. The formats are those of `prefs export`.

      A file that does not parse can be edited again; otherwise it is discarded with exit code 8. Files left by a killed \
      edit are wiped by the next one. Without a terminal, or with --no-input, nothing is opened: scripts use `prefs \
      export` and `prefs import`.

      Examples:
        prefs edit editor
        EDITOR='code --wait' prefs edit editor --format json
      """)

  @Argument(help: "The collection; the default collection if omitted.", completion: Completions.collections)
  var name: String?

  @Option(help: "The format of the file.")
  var format: Format = .yaml

  @Flag(help: "Show secrets and the values of a sealed collection to the editor.")
  var reveal = false

  @OptionGroup var declared: DeclaredOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  /// The formats that keep every type.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case yaml, json, plist, toml

    var text: SettingsFormat {
      switch self {
      case .yaml: .yaml
      case .json: .json
      case .plist: .plist
      case .toml: .toml
      }
    }
  }

  mutating func validate() throws {
    if name != nil, !common.collection.isEmpty { throw ValidationError("Name the collection once.") }
  }

  mutating func run() throws {
    let named = try common.inEnvironment(name.map(CommandArguments.value) ?? common.namedCollection ?? "")
    let collection = named.name
    guard !common.noInput, Terminal.isTerminal(0), Terminal.isThere else {
      let reason = common.noInput ? "--no-input forbids starting an editor" : "an editor needs a terminal"
      throw Failure(.usage, "\(reason). Use prefs export and prefs import, or prefs set.")
    }
    if format == .yaml || format == .toml { _ = try FormatsProgram.find(for: format.text) }
    let session = try CommandSession(
      common, in: [named], force: declared.force, undeclared: declared.undeclared)
    for folder in PrivateFolder.wipeLeftovers(besides: session.path) {
      if folder.isGone {
        common.note("wiped \(folder.path), left by a killed prefs edit.")
      } else {
        Message.error(
          "\(folder.path), left by a killed prefs edit, could not be removed completely; remove it by hand.")
      }
    }
    try session.using(try session.open()) { database in
      let edit = try session.unlocking(database) { try database.makeConnection().read { try begin(collection, $0) } }
      for lock in edit.locks { common.note(lock) }
      let changes = try changes(edit, session, database)
      let notes = try session.unlocking(database) {
        try database.makeConnection().readWrite { try edit.apply(changes, $0) }
      }
      for note in notes { common.note(note) }
      let count = DisplayText.count(changes.count, "key", "keys")
      common.note(changes.isEmpty ? "nothing was changed." : "\(count) changed.")
    }
  }

  private func begin(_ collection: String, _ transaction: borrowing ReadTransaction) throws -> CollectionEdit {
    try KeyReference.requireItems(in: collection, transaction)
    if try !reveal && transaction.isSealed(collection: collection) {
      throw Failure(
        .refused, "\(DisplayText.collection(collection)) is sealed. Give --reveal to show its values to the editor.")
    }
    return try CollectionEdit(collection, format.text, reveals: reveal, transaction)
  }

  // MARK: - The editor

  /// The changes made in the editor, once it has exited.
  private func changes(
    _ edit: CollectionEdit, _ session: CommandSession, _ database: Database
  ) throws -> [CollectionEdit.Change] {
    try HeldSignals.during { signals in
      let name = "settings.\(format.rawValue)"
      let file = try EditedFile(edit.bytes, name: name, besides: session.path)
      defer { file.wipe() }
      while true {
        try EditorProcess.run(on: file.path, signals)
        let contents = try file.contents()
        do {
          if ImportedFile.isBlank(contents), !ImportedFile.isBlank(edit.bytes) {
            throw Failure(.format, "the file is empty, which would remove every key. Nothing was changed.")
          }
          let edited = try ImportedSettings(contents, format: format.text, named: name, collection: edit.collection)
          // An administrator may have locked something meanwhile.
          session.files.forget()
          return try session.unlocking(database) {
            try database.makeConnection().read { transaction in
              let changes = try edit.changes(to: edited, named: name, force: declared.force, transaction)
              try edit.check(changes, transaction)
              return changes
            }
          }
        } catch let failure as Failure {
          Message.error(lines: [failure.message] + failure.details)
          guard try Terminal.confirm("Edit again?", signals) == true else { throw failure }
        }
      }
    }
  }
}
