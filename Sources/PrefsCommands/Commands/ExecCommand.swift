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
    let request = try request()
    guard watch || mask else { return try request.run() }
    let session = try CommandSession(request.options)
    if watch { throw try runWatched(session, request).takeOver() }
    let variables = try request.variables(session)
    throw try supervise { variables }.takeOver()
  }

  func request() throws -> ExecRequest {
    let collections = try (common.namedCollections.isEmpty ? [""] : common.namedCollections).map(common.inEnvironment)
    return ExecRequest(
      collections: collections, command: command, prefix: CommandArguments.value(prefix),
      only: only.map(CommandArguments.value),
      allow: allow.map(CommandArguments.value), pristine: pristine, options: common.ofSession(in: collections))
  }

  private func runWatched(_ session: CommandSession, _ request: ExecRequest) throws -> SupervisedProgram.End {
    try session.using(try session.openForReading()) { database in
      request.closeKeyDescriptors()
      let connection = try database.makeConnection()
      let collections = try connection.read { transaction in try request.collections.map { try $0.inForce(transaction) }
      }
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
            let read = try session.unlocking(database) {
              try connection.read { try request.items($0, in: collections) }
            }
            return try request.variables(read, &said)
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
}
