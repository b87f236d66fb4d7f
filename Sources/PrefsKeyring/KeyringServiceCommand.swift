import ArgumentParser
import Coffer
import PrefsCommands

/// The command `prefs keyring service`, which `prefs keyring` alone is, too.
struct KeyringServiceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "service",
    abstract: "Serve this user's programs as their keyring.",
    discussion: """
      It takes the name org.freedesktop.secrets on the user's bus, where libsecret and its relatives look for secrets, until \
      SIGTERM or SIGINT. Any program of the user can ask for any secret while the keyring is unlocked. A machine without a desktop \
      has no bus at first; dbus-run-session starts one.

      The vault is unlocked with --vault-key-file, --vault-key-fd or PREFS_VAULT_KEY_FILE, when a program asks for that, or \
      from `prefs unlock` to `prefs lock`. Without either, pinentry asks for its passphrase, unless --no-input is given; \
      PREFS_PINENTRY names another program for that, and GPG_TTY the terminal of one that needs it. A program that locks the keyring locks the vault, as `prefs lock` does.

      Examples:
        prefs keyring
        prefs keyring --lock-after 15m
        prefs keyring service --replace
      """)

  @Flag(help: "Take the name from another service that permits it.")
  var replace = false

  @Option(
    help: ArgumentHelp(
      "Lock the vault, as `prefs lock` does, when no secret of it was read or set for this long, as in 90s, 15m, 2h. Without it, it stays unlocked.",
      valueName: "time"))
  var lockAfter: TimeToLive?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws { try KeyringCommand.check(common) }

  mutating func run() throws {
    #if COFFER_BUS
      let session = try CommandSession(ofCommandWith: common)
      try ServiceProcess.run(
        session, collection: KeyringCommand.collection(common), replaces: replace,
        lockingAfter: lockAfter.map { .seconds($0.seconds) })
    #else
      throw Failure(
        .other,
        "this build of prefs has no Secret Service, because it is without libsystemd; use one with the system's libraries, such as the "
          + "Debian package. The credential helpers of git and docker work.")
    #endif
  }
}
