import ArgumentParser
import Coffer
import PrefsCommands

/// The command `prefs ui`, a separate program.
struct UICommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prefs ui",
    abstract: "Show and change settings in a browser.",
    discussion: """
      Opens a page that lists every setting with its declaration, and can change settings. Changes by other programs \
      appear immediately. The page is served on 127.0.0.1, only to the browser that was opened: its address holds a token \
      that works once, within a minute. Press Enter to print and open another address. Secrets show only their length \
      until you reveal them.

      It ends with Ctrl-C, a minute after its last tab is closed, or when it has not been used for --ttl.

      Examples:
        prefs ui
        prefs ui editor/theme
        prefs ui --read-only -c editor
        prefs ui --env staging
        prefs ui --app org.example.editor
        prefs ui --no-open --port 8421
        prefs ui --listen unix:/run/user/1000/settings.sock
      """)

  @Argument(
    help: "Open the page at this setting: KEY or COLLECTION/KEY; with -c a key.", completion: Completions.keys)
  var key: String?

  @Flag(help: "Change nothing, and reveal no secret.")
  var readOnly = false

  @Flag(help: "With read-only: reveal secrets when asked.")
  var reveal = false

  @Option(help: ArgumentHelp("Listen on this port of 127.0.0.1; a free one by default.", valueName: "n"))
  var port: UInt16?

  @Flag(help: "Do not open a browser; the address is printed either way.")
  var noOpen = false

  @Option(
    help: ArgumentHelp(
      "End when the page has not been used for this long, as in 90s, 15m, 2h. A vault that was unlocked for the page is locked after the same time.",
      valueName: "time"))
  var ttl = TimeToLive(seconds: 15 * 60)

  @Option(
    help: ArgumentHelp(
      "Listen at a Unix socket, unix:PATH, for a reverse proxy, which must serve it by https and keep the Host header.",
      valueName: "socket"))
  var listen: String?

  @OptionGroup var names: UndeclaredOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  private static let socketPrefix = "unix:"

  mutating func validate() throws {
    if reveal, !readOnly { throw ValidationError("--reveal goes with --read-only.") }
    if let listen {
      guard listen.hasPrefix(Self.socketPrefix), listen != Self.socketPrefix else {
        throw ValidationError("--listen takes unix:PATH. To serve the page to other hosts, use a reverse proxy.")
      }
      if port != nil { throw ValidationError("Use --port or --listen, not both.") }
    }
  }

  private var place: PageServer.Place {
    if let listen { return .socket(path: String(listen.dropFirst(Self.socketPrefix.count))) }
    return .loopback(port: port ?? 0)
  }

  mutating func run() throws {
    // With --env, the environments of that name are those to show.
    var options = try common.ofSession(showing: common.env == nil ? common.collection : [], key)
    options.allowsUndeclared = names.undeclared
    let session = try CommandSession(options)
    let database = try session.openForReading(isReadOnly: readOnly)
    defer { try? database.close() }
    let key = try session.options.vaultKey()
    if let key { try unlock(database, key, session) }
    let lifetime = PageLifetime(idleLimit: .seconds(ttl.seconds))
    let events = EventStream(lifetime)
    let vault = PageVault(
      database, session, keyFile: common.vaultKeyFd == nil && database.vault.isUnlocked ? key : nil,
      time: lifetime.idleLimit
    ) { events.send("vault", #"{"unlocked":\#($0)}"#) }
    let store = try PageStore(
      database, session: session, scope: try scope(database), isReadOnly: readOnly,
      mayReveal: reveal || !readOnly, vault: vault,
      opening: try opened(database), undoChanged: { events.send("undoing", $0) })
    let opens = !noOpen && listen == nil && BrowserOpener.hasScreen
    try PageProcess(
      store: store, place: place, lifetime: lifetime, events: events, opensBrowser: opens, talking: session.options
    ).run()
  }
}

extension UICommand {
  /// The collections of the page: the named ones, or all; with `--env` their environments of that name.
  private func scope(_ database: Database) throws -> CollectionScope {
    let named = try common.application().map { application in
      try database.makeConnection().read { try [application] + DeclaredKeys($0).collections(of: application, $0) }
    }
    let collections = named ?? common.namedCollections
    guard let name = common.env else { return CollectionScope(named: collections) }
    let environments = try database.makeConnection().read { try $0.environments() }.filter { environment in
      environment.name == name
        && (collections.isEmpty || collections.contains { environment.parent.utf8.elementsEqual($0.utf8) })
    }
    guard !environments.isEmpty else {
      throw Failure(.notFound, "there is no environment \"\(name)\" there. `prefs env list` shows those that exist.")
    }
    return CollectionScope(named: environments.map(\.collection))
  }

  /// The setting that is named.
  private func opened(_ database: Database) throws -> (collection: String, key: String)? {
    guard let reference = try key.map(common.reference) else { return nil }
    let found = try database.makeConnection().read { try reference.resolved($0) }
    return (found.collection, found.key)
  }

  /// Unlocks the vault with the named key.
  private func unlock(_ database: Database, _ key: KeySource, _ session: CommandSession) throws {
    guard try database.vault.exists() else { return }
    do {
      try database.vault.unlock(key)
    } catch CofferError.wrongKey {
      // The variable may name the key of another store's vault.
      guard common.vaultKeyFile == nil, common.vaultKeyFd == nil else {
        throw Failure(.wrongKey, "the given key does not open the vault of \(session.path).")
      }
      session.options.note(
        "PREFS_VAULT_KEY_FILE does not open the vault of this store; the page asks for its passphrase.")
    }
  }
}

/// The program `prefs-ui`.
package enum PageTool {
  package static func main() -> Never { PrefsTool.main(UICommand.self) }
}
