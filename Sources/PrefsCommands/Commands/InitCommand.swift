import ArgumentParser
import Coffer

/// The command `prefs init`.
struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Create a store.",
    discussion: """
      By default the store opens with a random key, kept in a file that only you can read. The first `prefs set` does the \
      same automatically.

      Examples:
        prefs init
        prefs init --passphrase
        prefs init --passphrase --calibrate 1
        prefs init --store ./app.coffer --key-file ./app.key
        prefs init -d /srv/app/settings.coffer --key-file /srv/app/key --group app
      """)

  @Flag(help: "Open the store with a passphrase, asked for twice or read from --passphrase-fd.")
  var passphrase = false

  @Option(
    help: ArgumentHelp(
      "Share the store, and a new key file, with the members of this group.", valueName: "name"))
  var group: String?

  @OptionGroup var stretching: StretchingOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if group == "" { throw ValidationError("--group needs a name.") }
    if passphrase, common.keyFile != nil || common.keyFd != nil {
      throw ValidationError("Use --passphrase or a key, not both.")
    }
    if stretching.areGiven, !passphrase, common.passphraseFd == nil {
      throw ValidationError("Only a passphrase can be stretched. Add --passphrase.")
    }
  }

  mutating func run() throws {
    let session = try CommandSession(common)
    do {
      try session.create(withPassphrase: passphrase, stretching: stretching, group: group).close()
    } catch CofferError.unsupported(let reason) where group != nil {
      throw Failure(.usage, "the store cannot be shared: \(reason).")
    }
    common.note("created the store \(session.path).")
  }
}
