import ArgumentParser
import Coffer
import PrefsCommands

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The command `prefs serve`, a separate program.
struct ServeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prefs serve",
    abstract: "Serve settings to a program in another language.",
    discussion: """
      A program starts it as a child, writes requests to its standard input, and reads answers and notices of changes \
      from its standard output, as lines of JSON. The checks are those of prefs set. Documentation/Serve.md specifies the \
      lines. It ends with its standard input, and with the process that started it.

      Secrets are sent only in answer to requests that ask for them, sealed values only while the vault is unlocked: with \
      --vault-key-file, --vault-key-fd or PREFS_VAULT_KEY_FILE, or from `prefs unlock` to `prefs lock`. A missing store is \
      created, unless --must-exist is given.

      Examples:
        prefs serve
        prefs serve --app org.example.shop --actor shop
        prefs serve --socket "$XDG_RUNTIME_DIR/settings.sock"
        echo '{"id":1,"do":"get","key":"theme"}' | prefs serve
      """)

  @Option(
    help: ArgumentHelp(
      "Serve several programs of this user at a Unix socket, until SIGTERM or SIGINT; its folder must be closed to others.",
      valueName: "path"), completion: .file())
  var socket: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if socket == "" { throw ValidationError("--socket needs a path.") }
    if !common.collection.isEmpty || common.env != nil {
      throw ValidationError("Requests name their collections and environments; omit -c and --env.")
    }
  }

  mutating func run() throws {
    let session = try CommandSession(ofCommandWith: common)
    let database = try session.exists() ? session.openForReading() : session.openOrCreate()
    defer { try? database.close() }
    let vault = KeptVault(database, session)
    try vault.unlockIfAtHand()
    let store = ServedStore(database: database, session: session, vault: vault, collection: common.app ?? "")
    // A client that closes its end must not end the process.
    signal(SIGPIPE, SIG_IGN)
    try withExtendedLifetime(VaultFollower(vault)) {
      if let socket { return try ServerSocket(socket).serve(store) }
      let client = try ServedClient(store, input: 0, output: 1)
      ParentProcess.endTogether()
      try client.serve()
    }
  }
}

/// The program `prefs-serve`.
package enum ServeTool {
  package static func main() -> Never { PrefsTool.main(ServeCommand.self) }
}
