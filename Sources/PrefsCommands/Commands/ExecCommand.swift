import ArgumentParser
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The command `prefs exec`.
struct ExecCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "exec",
    abstract: "Run a program with settings as its environment variables.",
    discussion: """
      The keys of the collections, or of the default one, become environment variables: upper case, with _ for every character other \
      than ASCII letters and digits, and before a leading digit. Two keys that become the same name are an error. They \
      replace existing variables of the same name. Data is passed as base64, other values as `prefs get` prints them, \
      including secrets, which reach only the variables of CMD. Defaults of declared settings, and values that an \
      administrator has set or locked, are passed as `prefs get` prints them.

      Names that load code are refused, unless --allow lists them: PATH, IFS, ENV, LD_*, DYLD_*, BASH_ENV, BASH_FUNC_*, \
      PYTHONPATH, PERL5LIB, RUBYOPT, NODE_OPTIONS, JAVA_TOOL_OPTIONS, GIT_CONFIG*, NPM_CONFIG_*, PREFS_*, HOME, EDITOR, PAGER and others \
      of their kind. --prefix and --only avoid them. CommandLineTool in the documentation has the whole list.

      CMD replaces prefs: signals, input, output and the exit code are its own. The exit code is 125 if prefs fails, whatever \
      the reason, 126 if CMD cannot be executed, 127 if it is not found.

      With --watch, prefs keeps running and restarts CMD when its settings change, in any process: shortly after the last \
      commit CMD gets SIGTERM, and SIGKILL 10 seconds later. With --signal, CMD gets that signal instead and keeps \
      running. While the settings cannot be read, CMD keeps those it has, and prefs says why: the environment was removed, the \
      key opens the store no longer, or another store is in its place that it does not open.

      With --watch, CMD runs in a process group of its own, which gets all its signals. What CMD leaves running in this group \
      when it ends gets SIGTERM, and SIGKILL 10 seconds later. If prefs itself is killed, the kernel kills CMD (on Linux). As \
      the first process of a container, prefs waits for orphans.

      With --mask, prefs keeps running, too, and CMD prints into pipes: secrets and sealed values passed to it appear as \
      <secret>, whole or line by line, including earlier ones after a change. Values that CMD encodes or splits are not \
      found, nor are values shorter than 4 bytes.

      While prefs keeps running, it passes on to CMD every signal that a process can catch, except those for its own faults and \
      children, and ends as CMD does: with its exit code, or by its signal.

      Examples:
        prefs exec -c web -- ./server --port 8080
        prefs exec --watch -c web -- ./server
        prefs exec --mask -c deploy -- ./deploy.sh
        prefs exec -c common -c web --prefix APP_ -- env
        prefs exec -c aws --only key-id,access-key --pristine -- /usr/bin/env
      """)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("A prefix for all names, converted to upper case.", valueName: "text"))
  var prefix = ""

  @Option(
    parsing: .unconditionalSingleValue,
    help: ArgumentHelp("Only these keys, separated by commas; each must exist.", valueName: "keys"))
  var only: [String] = []

  @Option(
    parsing: .unconditionalSingleValue,
    help: ArgumentHelp(
      """
      Variables, separated by commas, that settings may set although they load code.
      """, valueName: "names"))
  var allow: [String] = []

  @Flag(help: "Do not pass on the variables of prefs.")
  var pristine = false

  @Flag(help: "Restart the program when its settings change.")
  var watch = false

  @Option(
    help: ArgumentHelp("With --watch, send this signal instead: HUP, INT, TERM, USR1 or USR2.", valueName: "name"))
  var signal: String?

  @Flag(help: "Mask secrets in the output of the program.")
  var mask = false

  @Argument(parsing: .postTerminator, help: ArgumentHelp("The program and its arguments.", valueName: "cmd"))
  var command: [String]

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if command.first ?? "" == "" { throw ValidationError("Name the program after --.") }
    guard let signal else { return }
    if !watch { throw ValidationError("--signal goes with --watch.") }
    if Self.signals[CommandArguments.value(signal)] == nil {
      throw ValidationError("--signal takes HUP, INT, TERM, USR1 or USR2.")
    }
  }

  private static let signals = ["HUP": SIGHUP, "INT": SIGINT, "TERM": SIGTERM, "USR1": SIGUSR1, "USR2": SIGUSR2]

  mutating func run() throws {
    let collections = try (common.namedCollections.isEmpty ? [""] : common.namedCollections).map(common.inEnvironment)
    let session = try CommandSession(common, in: collections, takesCollections: true)
    if watch { throw try runWatched(session, collections).takeOver() }
    var said: Set<String> = []
    let variables = try variables(try session.readInForce(in: collections) { try items(collections, $0) }, &said)
    closeKeyDescriptors()
    if mask { throw try supervise { variables }.takeOver() }
    throw ProgramStart(words: command, environment: variables.block(addingInherited: !pristine)).replaceProcess()
  }

  private func runWatched(_ session: CommandSession, _ collections: [NamedCollection]) throws -> SupervisedProgram.End {
    try session.using(try session.openForReading()) { database in
      closeKeyDescriptors()
      let connection = try database.makeConnection()
      let collections = try connection.read { transaction in try collections.map { try $0.inForce(transaction) } }
      var said: Set<String> = []
      return try supervise(
        observing: { changed in
          let registration = try database.onCommit(
            { commit in
              // What else a commit did may be a new default.
              let isOfInterest =
                !commit.actions.isEmpty
                || collections.contains { $0.shown.contains { commit.concerns(collection: $0) } }
              if isOfInterest { changed() }
              // The next read says why.
            }, onTrouble: { _ in changed() })
          let applications = try connection.read { transaction in
            try collections.flatMap { try transaction.effectiveSettings(in: $0).applications }
          }
          let managed = try applications.map { try ManagedSource(ofApplication: $0) }
          // What cannot be read is reported by the next read.
          for source in managed { source.start(didChange: changed, report: { _ in changed() }) }
          return Observation(registration: registration, managed: managed)
        },
        read: {
          session.files.forget()
          do {
            let read = try session.unlocking(database) { try connection.read { try items(collections, $0) } }
            return try variables(read, &said)
          } catch let error as CofferError {
            throw error.whileFollowing
          }
        })
    }
  }

  /// The sources of changes that concern the program: commits, and administrators' files.
  private struct Observation {
    let registration: CommitRegistration
    let managed: [ManagedSource]
  }

  /// Runs the program and supervises it.
  ///
  /// - Parameters:
  ///   - observing: Starts observing what concerns the program.
  ///   - read: Reads the variables for the program.
  private func supervise(
    observing: (@escaping @Sendable () -> Void) throws -> Observation? = { _ in nil },
    read: @escaping () throws -> EnvironmentVariables
  ) throws -> SupervisedProgram.End {
    try HeldSignals.during(and: SupervisedProgram.passedOn) { signals in
      // Before the first read, so that no change is missed.
      let observation = try observing { HeldSignals.awaken() }
      defer { withExtendedLifetime(observation) { observation?.registration.cancel() } }
      let description = SupervisedProgram.Description(
        words: command, addsInherited: !pristine, signal: signal.flatMap { Self.signals[CommandArguments.value($0)] },
        output: mask ? try MaskedOutput() : nil, endsGroup: watch)
      return try SupervisedProgram(description, common, read: read).run(signals)
    }
  }

  /// - Parameter said: What was said of bad values: each is said once.
  private func variables(_ items: [GivenItem], _ said: inout Set<String>) throws -> EnvironmentVariables {
    var variables = EnvironmentVariables(prefix: prefix)
    for item in items {
      try variables.add(item.key, in: item.collection, item.value, isSecret: item.isSecret)
      for note in item.notes where said.insert(note).inserted { common.note(note) }
    }
    try checkLoading(variables.namesThatChangeLoading)
    return variables
  }

  private func closeKeyDescriptors() {
    // The program must not inherit the descriptors that keys were read from.
    for descriptor in [common.keyFd, common.passphraseFd, common.recoveryKeyFd, common.vaultKeyFd] {
      if let descriptor, descriptor > 2 { FileDescriptor.closeOnExecution(descriptor) }
    }
  }

  /// Anyone who can write a setting of such a name decides what runs here.
  private func checkLoading(_ names: [String]) throws {
    let allowed = allow.flatMap { CommandArguments.value($0).split(separator: ",").map(String.init) }
    let refused = names.filter { !allowed.contains($0) }
    guard !refused.isEmpty else { return }
    let (verb, pronoun) = refused.count == 1 ? ("changes", "it") : ("change", "them")
    throw Failure(
      .refused,
      "\(refused.joined(separator: ", ")) from the settings \(verb) how programs are found and loaded. Omit \(pronoun) with "
        + "--only, rename \(pronoun) with --prefix, or permit \(pronoun) with --allow \(names.joined(separator: ",")).")
  }

  private struct GivenItem {
    let collection: String
    let key: String
    let value: Value
    let isSecret: Bool
    /// What is to be said of bad values.
    let notes: [String]
  }

  private func items(
    _ collections: [NamedCollection], _ transaction: borrowing ReadTransaction
  ) throws -> [GivenItem] {
    var items: [GivenItem] = []
    let declared = try DeclaredKeys(transaction)
    for named in collections {
      let collection = try named.inForce(transaction)
      // One that is gone, while it is watched, too, must not run the program with the values of its parent.
      if collection.parent != nil, let environment = collection.environment,
        try !transaction.hasEnvironment(environment)
      {
        throw try environment.notFound(in: transaction)
      }
      let effective = try transaction.effectiveSettings(in: collection)
      let keys = try effective.keys(declared, transaction)
      if keys.isEmpty { try KeyReference.requireItems(in: collection.name, transaction) }
      for key in declared.forVariables(keys.filter(isWanted), in: collection.name) {
        let search = try effective.item(key, transaction)
        guard let found = search.found else { continue }
        var isSecret = found.value.kind == .secret || declared.isSecret(key, in: collection.name)
        if case .stored(let item) = found, !isSecret {
          isSecret = try transaction.info(forKey: key, inCollection: item.collection)?.kind == .sealed
        }
        items.append(
          GivenItem(
            collection: collection.name, key: key, value: found.value, isSecret: isSecret, notes: search.notes))
      }
    }
    for key in wanted where !items.contains(where: { $0.key.utf8.elementsEqual(key.utf8) }) {
      // Another name of the setting is this variable.
      if !declared.forVariables(wanted, in: collections[0].name).contains(key) { continue }
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
