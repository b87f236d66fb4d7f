import ArgumentParser
import Coffer
import PrefsCommands

/// The command `prefs keyring`, a separate program.
struct KeyringCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prefs keyring",
    abstract: "Keep the secrets of git, docker and other programs.",
    discussion: """
      Each secret is a setting in a collection, \(Keyring.collection) unless -c names another one, which is sealed before its first \
      secret if the store has a vault. While the vault is locked, `prefs unlock` unlocks it for a while.

      Alone it is the Secret Service of the user's bus, see `prefs keyring service --help`.

      Examples:
        git config --global credential.helper prefs
        echo '{"credsStore":"prefs"}' > ~/.docker/config.json
        prefs list keyring
      """,
    subcommands: [KeyringServiceCommand.self, KeyringGitCommand.self, KeyringDockerCommand.self],
    defaultSubcommand: KeyringServiceCommand.self)

  /// - Throws: `ValidationError` for options that no keyring has.
  static func check(_ common: CommonOptions) throws {
    if common.env != nil { throw ValidationError("A keyring has no environments; omit --env.") }
    if common.collection.count > 1 { throw ValidationError("-c was given several times; a keyring is one collection.") }
  }

  /// The name of the keyring's collection.
  static func collection(_ common: CommonOptions) -> String {
    common.collection.isEmpty ? Keyring.collection : common.namedCollections[0]
  }
}

/// The options of a credential helper.
struct HelperOptions: ParsableArguments {
  @Argument(help: "The operation.")
  var operation: String

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws { try KeyringCommand.check(common) }

  var collection: String { KeyringCommand.collection(common) }
}

/// The command `prefs keyring git`, which is also `git-credential-prefs`.
struct KeyringGitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "git",
    abstract: "Answer git as a credential helper.",
    discussion: """
      git starts it as git-credential-prefs, with the operation get, store or erase, as gitcredentials(7) describes. Options \
      may stand in git's configuration. Items are those of git's helper for libsecret.

      Examples:
        git config --global credential.helper prefs
        git config --global credential.helper 'prefs -c work --store /srv/work.coffer'
      """)

  @OptionGroup var options: HelperOptions

  mutating func run() throws {
    let session = try CommandSession(ofCommandWith: options.common)
    try GitHelper(session: session, collection: options.collection).run(options.operation)
  }
}

/// The command `prefs keyring docker`, which is also `docker-credential-prefs`.
struct KeyringDockerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "docker",
    abstract: "Answer docker as a credential helper.",
    discussion: """
      docker, podman and their relatives start it as docker-credential-prefs, with the operation get, store, erase or list. Items are \
      those of docker's helper for the Secret Service.

      Examples:
        echo '{"credsStore":"prefs"}' > ~/.docker/config.json
        docker-credential-prefs list
      """)

  @OptionGroup var options: HelperOptions

  mutating func run() throws {
    do {
      let session = try CommandSession(ofCommandWith: options.common)
      for part in try DockerHelper(session: session, collection: options.collection).answer(options.operation) {
        try part.withUnsafeBytes { try FileDescriptor.writeAll($0, to: 1, named: "standard output") }
      }
    } catch let problem as DockerHelper.Problem {
      try StandardOutput.write(problem.rawValue + "\n")
      throw ExitCode(ExitStatus.other.rawValue)
    } catch {
      // docker shows its user what is on standard output.
      if let text = (error as? Failure)?.description ?? (error as? CofferError)?.description {
        try? StandardOutput.write(text + "\n")
      }
      throw error
    }
  }
}

/// The program `prefs-keyring`, also under the names by which git and docker look for helpers.
package enum KeyringTool {
  private static let commands = ["git-credential-prefs": "git", "docker-credential-prefs": "docker"]

  package static func main() -> Never {
    let name = CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? ""
    PrefsTool.main(KeyringCommand.self, under: commands[name])
  }
}
