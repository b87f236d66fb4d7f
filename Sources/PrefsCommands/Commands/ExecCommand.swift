import ArgumentParser
import Coffer

/// The command `prefs exec`.
struct ExecCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "exec",
    abstract: "Run a program with settings in its environment.",
    discussion: """
      The keys of the collections, or of the default one, become variables: in capitals, with _ for every character but \
      letters of ASCII and digits, and before a digit at the beginning. Two keys that become the same name are an error. \
      They come before variables of the same name that are there already. Data is written as base64, the rest as \
      `prefs get` prints it, secrets too; they reach nothing but the environment of CMD. Names that change how programs \
      are found and loaded (PATH, LD_PRELOAD, BASH_ENV and their like) are warned of; with --allow those that it does not \
      name are refused (11).

      CMD takes the place of prefs: signals, input, output and its exit code are its own. The exit code is 125 when prefs \
      fails, 126 when CMD cannot be executed, 127 when it is not found.

      Examples:
        prefs exec -c web -- ./server --port 8080
        prefs exec -c common -c web --prefix APP_ -- env
        prefs exec -c aws --only access-key-id,secret-access-key --pristine -- /usr/bin/env
      """)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("What all names begin with, as it is but in capitals.", valueName: "text"))
  var prefix = ""

  @Option(
    parsing: .unconditionalSingleValue,
    help: ArgumentHelp("Only these keys, separated by commas; each has to be there.", valueName: "keys"))
  var only: [String] = []

  @Option(
    parsing: .unconditionalSingleValue,
    help: ArgumentHelp(
      """
      Variables, separated by commas, that settings may set although they change how programs load; all others of that \
      kind are refused.
      """, valueName: "names"))
  var allow: [String] = []

  @Flag(help: "Leave out the variables that prefs was started with.")
  var pristine = false

  @Argument(parsing: .postTerminator, help: ArgumentHelp("The program and its arguments.", valueName: "cmd"))
  var command: [String]

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if command.first ?? "" == "" { throw ValidationError("Name the program after --.") }
  }

  mutating func run() throws {
    let collections = try (common.namedCollections.isEmpty ? [""] : common.namedCollections).map(common.inEnvironment)
    let session = try Session(common, in: collections, takesCollections: true)
    var variables = EnvironmentVariables(prefix: prefix)
    for item in try session.read({ try items(collections, $0) }) {
      try variables.add(item.key, in: item.collection, item.value)
    }
    try checkLoading(variables.namesThatChangeLoading)
    // What the key came through is not for the program.
    for descriptor in [common.keyFd, common.passphraseFd, common.recoveryKeyFd] {
      if let descriptor, descriptor > 2 { FileDescriptor.closeOnExecution(descriptor) }
    }
    throw ProgramStart(words: command, environment: variables.block(addingInherited: !pristine)).replaceProcess()
  }

  /// Whoever writes a setting of such a name decides what runs here.
  private func checkLoading(_ names: [String]) throws {
    let allowed = allow.flatMap { CommandArguments.value($0).split(separator: ",").map(String.init) }
    let refused = names.filter { !allowed.contains($0) }
    guard !refused.isEmpty else { return }
    let list = refused.joined(separator: ", ")
    let reason = "\(refused.count == 1 ? "changes" : "change") how programs are found and loaded"
    guard allow.isEmpty else { throw Failure(.refused, "\(list) \(reason), and --allow does not name \(refused[0]).") }
    common.note(
      "warning: settings set \(list), which \(reason). --allow \(refused.joined(separator: ",")) says that they may.")
  }

  private func items(
    _ collections: [NamedCollection], _ transaction: borrowing ReadTransaction
  ) throws -> [(collection: String, key: String, value: Value)] {
    var items: [(collection: String, key: String, value: Value)] = []
    for collection in collections {
      let managed = try ManagedSettings(ofApplication: collection.name)
      let all = try collection.shown.flatMap { try transaction.allKeys(inCollection: $0) } + managed.allKeys
      var seen: Set<ByteString> = []
      let keys = all.filter { seen.insert(ByteString($0)).inserted }
      if keys.isEmpty { try KeyReference.requireItems(in: collection.name, transaction) }
      for key in keys where isWanted(key) {
        let value =
          try managed.locked(forKey: key)?.value
          ?? KeyReference(key, in: collection).shownItem(transaction)?.value ?? managed.defaultValue(forKey: key)?.value
        if let value { items.append((collection.name, key, value)) }
      }
    }
    for key in wanted where !items.contains(where: { $0.key.utf8.elementsEqual(key.utf8) }) {
      throw KeyReference(key, in: collections[0]).notFound(in: transaction)
    }
    return items
  }

  private var wanted: [String] {
    only.flatMap { CommandArguments.value($0).split(separator: ",", omittingEmptySubsequences: true).map(String.init) }
  }

  private func isWanted(_ key: String) -> Bool {
    only.isEmpty || wanted.contains { $0.utf8.elementsEqual(key.utf8) }
  }
}
