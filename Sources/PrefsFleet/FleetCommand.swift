import ArgumentParser
import PrefsCommands

/// `prefs fleet` itself.
package struct FleetCommand: AsyncParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "prefs fleet",
    abstract: "Share collections between the stores of several hosts.",
    discussion: """
      Each host has a complete store of its own, which programs read and write as usual, also offline. Shared settings \
      travel through a carrier, which sees sizes and times but never a name or a value: an etcd, as \
      etcd://host1,host2/prefix or with TLS as etcds://user@host/prefix?ca=FILE, S3-compatible storage, as \
      s3://bucket/prefix?endpoint=https://host:9000&region=NAME, or a folder that the hosts share, as file:///srv/fleet.

      Examples:
        prefs fleet create team --at etcd://127.0.0.1:2379/coffer -c web -c flags
        prefs fleet invite web-17 --role reader > web-17.invitation
        prefs fleet invite contractor --role writer -c web > contractor.invitation
        prefs fleet join - < web-17.invitation
        prefs fleet run
        prefs fleet status

      The password of an etcd user comes from --password-file, or from the file that PREFS_FLEET_PASSWORD_FILE names, or \
      from the systemd credential prefs-fleet-password. Certificates are named in the address, with the options ca, cert \
      and key. The access key of S3-compatible storage comes from such a file in the format of ~/.aws/credentials, or from where \
      AWS's tools find it: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials. Further options of its address are ca \
      and poll, the seconds between two looks for changes. The vault, if a shared collection is sealed, opens with the key that \
      `prefs unlock` keeps, or with --vault-key-file, --vault-key-fd or PREFS_VAULT_KEY_FILE.

      The exit codes are those of prefs: `prefs --exit-codes`.
      """,
    version: "prefs-fleet \(PrefsTool.version)",
    groupedSubcommands: [
      CommandGroup(
        name: "Membership", subcommands: [CreateCommand.self, JoinCommand.self, LeaveCommand.self]),
      CommandGroup(
        name: "Synchronization",
        subcommands: [
          RunCommand.self, SyncCommand.self, StatusCommand.self, ConflictsCommand.self, LogCommand.self,
          AcceptCommand.self, AcceptRollbackCommand.self, RuleCommand.self,
        ]),
      CommandGroup(
        name: "For admins",
        subcommands: [
          InviteCommand.self, MembersCommand.self, RemoveCommand.self, RenewKeyCommand.self, ShareCommand.self,
          CollectionsCommand.self, SealCollectionsCommand.self, UnsealCollectionsCommand.self, GreatestAgeCommand.self,
        ]),
    ])

  package init() {}
}
