import ArgumentParser

/// The root command `prefs`.
struct PrefsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prefs",
    abstract: "Settings in an encrypted store.",
    discussion: """
      A key is written KEY, in the default collection, or COLLECTION/KEY.

      Examples:
        prefs set editor/theme dark
        prefs get editor/theme
        prefs set --int editor/font-size 14
        prefs list -l editor

      The store is --store, or that of --app, or PREFS_STORE, or prefs/settings.coffer in the user's data folder \
      ($XDG_DATA_HOME, ~/.local/share). It is opened with --key-file, --key-fd, --passphrase-fd or --recovery-key-fd, or with PREFS_KEY_FILE, \
      PREFS_KEY_COMMAND, the systemd credential prefs-key, the key file prefs/key in the user's configuration folder, this \
      machine's TPM (`prefs key add --tpm`), or a passphrase or recovery key that is asked for. A sealed collection needs the vault: --vault-key-file, --vault-key-fd, \
      PREFS_VAULT_KEY_FILE, or a previous `prefs unlock`. With --must-exist, or PREFS_MUST_EXIST set to anything but 0, a \
      missing store is not created.

      `prefs help COMMAND` describes a command, `prefs help options` the options that all have in common. If there is no command NAME, `prefs NAME` starts the program prefs-NAME \
      from libexec/coffer beside the folder of prefs, if that is called bin, else from the folder itself.
      """,
    version: "prefs \(PrefsTool.version)",
    subcommands: [AgentCommand.self],
    groupedSubcommands: groups)

  @OptionGroup(title: "Common options") var common: CommonOptions

  @Flag(help: "Print the exit codes and what they mean.")
  var exitCodes = false

  mutating func run() throws {
    guard exitCodes else { throw CleanExit.helpRequest(self) }
    try StandardOutput.write(ExitStatus.table)
  }

  // MARK: - Subcommands

  static let groups = [
    CommandGroup(
      name: "First day",
      subcommands: [
        SetCommand.self, GetCommand.self, ListCommand.self, UnsetCommand.self, ExecCommand.self, BackupCommand.self,
      ]),
    CommandGroup(
      name: "Values",
      subcommands: [
        CollectionsCommand.self, FindCommand.self, TypeCommand.self, EditCommand.self, AppendCommand.self,
        IncrementCommand.self, RenameCommand.self,
      ]),
    CommandGroup(
      name: "Changes",
      subcommands: [
        LogCommand.self, WatchCommand.self, HistoryCommand.self, RevertCommand.self, DiffCommand.self,
      ]),
    CommandGroup(
      name: "Declarations and environments",
      subcommands: [DescribeCommand.self, ValidateCommand.self, SchemaCommand.self, EnvCommand.self]),
    CommandGroup(
      name: "Files and programs",
      subcommands: [ExportCommand.self, ImportCommand.self, CopyCommand.self, InjectCommand.self]),
    CommandGroup(
      name: "Secrets and keys",
      subcommands: [
        KeyCommand.self, RotateCommand.self, SealCommand.self, UnsealCommand.self, UnlockCommand.self,
        LockCommand.self,
      ]),
    CommandGroup(
      name: "Care of the store",
      subcommands: [
        InitCommand.self, StatusCommand.self, DoctorCommand.self, CompactCommand.self, RestoreStoreCommand.self,
        SalvageCommand.self, DestroyCommand.self, CompletionCommand.self,
      ]),
  ]

  /// The names of all commands, aliases included.
  static let commandNames = names(of: configuration.subcommands)
  /// The commands with the option `-0`.
  static let listingCommandNames = names(of: [
    ListCommand.self, CollectionsCommand.self, FindCommand.self, HistoryCommand.self, LogCommand.self, EnvCommand.self,
  ])

  /// Whether `word` names a command, which takes precedence over a program of that name.
  static func isBuiltIn(_ word: String) -> Bool {
    word == "help"
      || configuration.subcommands.contains {
        $0.configuration.commandName == word || $0.configuration.aliases.contains(word)
      }
  }

  /// The names of `commands` and their aliases, without those that only the tool itself uses.
  static func names(of commands: [any ParsableCommand.Type]) -> Set<String> {
    Set(
      commands.filter { $0.configuration.shouldDisplay }.flatMap {
        [$0.configuration.commandName ?? ""] + $0.configuration.aliases
      })
  }
}
