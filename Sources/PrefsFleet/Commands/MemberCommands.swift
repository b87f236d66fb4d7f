import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet members`.
struct MembersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "members",
    abstract: "List who is a member, as far as this store knows.",
    discussion: """
      Examples:
        prefs fleet members
        prefs fleet members --json
      """)

  @Flag(help: "Print a JSON array.")
  var json = false

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet(isReading: true) { fleet in
      let members = await fleet.members
      try StandardOutput.write(json ? JSONText.array(members.map(Self.json)) + "\n" : Self.text(members))
    }
  }

  private static func text(_ members: [FleetMember]) -> String {
    var table = Table()
    for member in members {
      table.add(
        [DisplayText.escapingControls(member.name), "\(member.role)", "since \(Timestamp.text(member.invited))"]
          + (member.isThisStore ? ["this store"] : []))
    }
    return table.lines().joined()
  }

  private static func json(_ member: FleetMember) -> String {
    JSONText.object([
      ("name", JSONText.quoted(member.name)), ("role", JSONText.quoted("\(member.role)")),
      ("invited", JSONText.quoted(Timestamp.text(member.invited))), ("isThisStore", "\(member.isThisStore)"),
    ])
  }
}

/// The command `prefs fleet remove`.
struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Take a member out, and renew the fleet's key.",
    discussion: """
      Nothing that is written afterwards opens with the keys that the member has. What it could read before, it may have kept: change \
      the secrets among that.

      Examples:
        prefs fleet remove web-17
      """)

  @Argument(help: "What the member is called.")
  var name: String

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { try await $0.remove(name) }
    one.common.note("removed \(name). The fleet has a new key; change the secrets that \(name) could read.")
  }
}

/// The command `prefs fleet renew-key`.
struct RenewKeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "renew-key",
    abstract: "Make a new fleet key, and seal all records under it.",
    discussion: """
      For when it is in doubt who has seen the key that there is. `prefs fleet remove` does it, too.

      Examples:
        prefs fleet renew-key
      """)

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { try await $0.renewKey() }
    one.common.note("the fleet has a new key.")
  }
}

/// The command `prefs fleet share`.
struct ShareCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "share",
    abstract: "Say which collections are shared, from now on and by all hosts.",
    discussion: """
      Name all of them. What is in a new one on any host is merged; what is in one that is left out stays where it is.

      Examples:
        prefs fleet share -c web -c flags -c limits
      """)

  @OptionGroup var one: OneFleetOptions

  mutating func validate() throws {
    if one.common.namedCollections.isEmpty { throw ValidationError("Name the collections to be shared with -c.") }
  }

  mutating func run() async throws {
    try await one.withFleet { try await $0.share(collections: one.common.namedCollections) }
  }
}

/// The command `prefs fleet rule`.
struct RuleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rule",
    abstract: "Say which change wins on this host where a setting was changed on two at once.",
    discussion: """
      later: the later change, which is so unless said otherwise. theirs: what was set elsewhere, which is so on a reader's host. \
      ours: what was set here. The one that loses stays in the history of its key, and is listed by `prefs fleet conflicts`.

      Examples:
        prefs fleet rule limits ours
      """)

  enum Winner: String, CaseIterable, ExpressibleByArgument {
    case later, theirs, ours
  }

  @Argument(help: "The collection.")
  var collection: String

  @Argument(help: "later, theirs or ours.")
  var winner: Winner

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    let rule: FleetRule =
      switch winner {
      case .later: .laterWins
      case .theirs: .theirsWins
      case .ours: .oursWins
      }
    try await one.withFleet { try await $0.setRule(rule, forCollection: collection) }
  }
}
