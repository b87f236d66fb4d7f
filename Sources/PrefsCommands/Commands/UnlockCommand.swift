import ArgumentParser
import Coffer

/// The command `prefs unlock`.
struct UnlockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock",
    abstract: "Unlock the vault for a while.",
    discussion: """
      Until the time is over, or `prefs lock`, commands of this user read and write sealed collections without asking. The \
      key of the vault is kept in the kernel's keyring, or by an agent of this user if there is no keyring; it is never \
      written to disk. The passphrase is asked for, unless this machine's TPM opens it (`prefs key add --vault --tpm`).

      Examples:
        prefs unlock
        prefs unlock --ttl 2h
        prefs unlock --ttl 90s --vault-passphrase-fd 3 3< passphrase
      """)

  @Option(help: ArgumentHelp("How long: seconds, minutes, hours or days, as in 90s, 15m, 2h, 1d.", valueName: "time"))
  var ttl = TimeToLive(seconds: 15 * 60)

  @OptionGroup var vaultKey: VaultKeyOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    try session.using(try session.openForReading()) { database in
      try VaultAccess(vault: database.vault, session: session)
        .unlockAndKeep(with: vaultKey.source(session.options), for: ttl)
      common.note("unlocked the vault for \(ttl.defaultValueDescription).")
    }
  }
}
