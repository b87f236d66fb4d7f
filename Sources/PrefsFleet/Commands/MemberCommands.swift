import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The command `prefs fleet members`.
struct MembersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "members",
    abstract: "List the members, as far as this store knows.",
    discussion: """
      COLLECTIONS are those that a member has the keys of, as far as this store has them, too.

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
    table.add(["NAME", "ROLE", "COLLECTIONS", "INVITED"])
    for member in members {
      table.add(
        [
          DisplayText.escapingControls(member.name), "\(member.role)", collections(member),
          Timestamp.text(member.invited),
        ] + (note(member).map { [$0] } ?? []))
    }
    return table.lines().joined()
  }

  /// Of another member's only those that this store has are known by name.
  private static func collections(_ member: FleetMember) -> String {
    if member.hasAllCollections { return "all" }
    return member.collections.isEmpty ? "-" : DisplayText.escapingControls(member.collections.joined(separator: ", "))
  }

  private static func note(_ member: FleetMember) -> String? {
    switch member.standing {
    case .invited: member.isThisStore ? "this store, waits for an admin's host" : "has not joined"
    case .admitted: member.isThisStore ? "this store" : nil
    case .many: member.isThisStore ? "many hosts, this store among them" : "many hosts"
    }
  }

  private static func json(_ member: FleetMember) -> String {
    JSONText.object([
      ("name", JSONText.quoted(member.name)), ("role", JSONText.quoted("\(member.role)")),
      ("standing", JSONText.quoted("\(member.standing)")), ("invited", JSONText.quoted(Timestamp.text(member.invited))),
      ("isThisStore", "\(member.isThisStore)"), ("allCollections", "\(member.hasAllCollections)"),
      ("collections", JSONText.array(member.collections.map(JSONText.quoted))),
    ])
  }
}

/// The command `prefs fleet remove`.
struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove a member, and renew the keys that it has.",
    discussion: """
      Nothing written afterwards can be read with the keys that the member has. It may have kept what it could read \
      before: change any secrets among it.

      Examples:
        prefs fleet remove web-17
      """)

  @Argument(help: "The name of the member.")
  var name: String

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { try await $0.remove(name) }
    one.common.note("removed \(name). What it could read has new keys; change the secrets that \(name) could read.")
  }
}

/// The command `prefs fleet renew-key`.
struct RenewKeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "renew-key",
    abstract: "Create new keys of the fleet and of all collections, and re-encrypt all records with them.",
    discussion: """
      Use it if the current keys may be known to others. `prefs fleet remove` and `prefs fleet collections` renew those that a member loses.

      Examples:
        prefs fleet renew-key
      """)

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { try await $0.renewKey() }
    one.common.note("the fleet has new keys.")
  }
}

/// The command `prefs fleet collections`.
struct CollectionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "collections",
    abstract: "Choose which collections a member has.",
    discussion: """
      Name all of them, or give --all: these, and those that are shared later. One that the member gets waits on its host for \
      `prefs fleet accept`. One that it loses gets a new key, and nothing written afterwards can be read with the keys that the member has. \
      It keeps what it could read before: change any secrets among it. `prefs fleet members` shows who has which.

      Examples:
        prefs fleet collections contractor -c web -c flags
        prefs fleet collections web-17 --all
      """)

  @Argument(help: "The name of the member.")
  var name: String

  @Flag(help: "All collections, and those that are shared later.")
  var all = false

  @OptionGroup var one: OneFleetOptions

  mutating func validate() throws {
    if all == !one.common.namedCollections.isEmpty {
      throw ValidationError("Name the collections that the member has with -c, or give --all.")
    }
  }

  mutating func run() async throws {
    try await one.withFleet { try await $0.setCollections(all ? nil : one.common.namedCollections, of: name) }
  }
}

/// The command `prefs fleet share`.
struct ShareCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "share",
    abstract: "Choose which collections the fleet shares from now on.",
    discussion: """
      Name all of them. Members with all collections get a new one, others by `prefs fleet collections`; its contents are merged from the hosts that \
      accept it with `prefs fleet accept`. Those of an omitted one stay on the hosts, and leave the carrier.

      Examples:
        prefs fleet share -c web -c flags -c limits
      """)

  @OptionGroup var one: OneFleetOptions

  mutating func validate() throws {
    if one.common.namedCollections.isEmpty { throw ValidationError("Name the collections to share with -c.") }
  }

  mutating func run() async throws {
    try await one.withFleet { try await $0.share(collections: one.common.namedCollections) }
  }
}

/// The command `prefs fleet seal`.
struct SealCollectionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "seal",
    abstract: "Let every host keep shared collections sealed, each with a vault of its own.",
    discussion: """
      A host on which such a collection is not sealed neither takes nor gives its values, until it is sealed there with `prefs seal`; what it has \
      stays as it is. A collection that is sealed on the host where it is shared is sealed in the fleet from the start.

      Examples:
        prefs seal tokens
        prefs fleet seal tokens
      """)

  @Argument(help: "The collections.", completion: Completions.collections)
  var collections: [String]

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { fleet in
      let report = try await fleet.seal(collections: collections)
      one.common.note(report.text)
      try await fleet.noteWaits(one.common)
      try report.checkProblems()
    }
  }
}

/// The command `prefs fleet unseal`.
struct UnsealCollectionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unseal",
    abstract: "Let hosts keep shared collections unsealed.",
    discussion: """
      They stay sealed where they are, until `prefs unseal` there. Hosts that waited take their values unsealed.

      Examples:
        prefs fleet unseal tokens
      """)

  @Argument(help: "The collections.", completion: Completions.collections)
  var collections: [String]

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { fleet in
      let report = try await fleet.unseal(collections: collections)
      one.common.note(report.text)
      try await fleet.noteWaits(one.common)
      try report.checkProblems()
    }
  }
}

/// The command `prefs fleet greatest-age`.
struct GreatestAgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "greatest-age",
    abstract: "Choose how old the last commit may be before hosts report that they are stale.",
    discussion: """
      A carrier may withhold commits for so long unnoticed. Hosts that write commit at least four times in it, and have to run, or to \
      sync, so often. `prefs fleet status` shows the present one.

      Examples:
        prefs fleet greatest-age 1h
        prefs fleet greatest-age any
      """)

  struct Age: ExpressibleByArgument {
    let duration: Duration?

    init?(argument: String) {
      if argument == "any" {
        duration = nil
      } else {
        guard let lifetime = Lifetime(argument: argument), lifetime.seconds > 0 else { return nil }
        duration = .seconds(lifetime.seconds)
      }
    }
  }

  @Argument(help: ArgumentHelp("A time, as in 1h, or any.", valueName: "time"))
  var age: Age

  @OptionGroup var one: OneFleetOptions

  mutating func run() async throws {
    try await one.withFleet { try await $0.setGreatestAge(age.duration) }
  }
}

/// The command `prefs fleet rule`.
struct RuleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rule",
    abstract: "Choose which change wins on this host after concurrent changes of a setting.",
    discussion: """
      later: the later change, the default. theirs: the change from elsewhere, the rule on a reader's host. ours: the \
      change made here. The losing value stays in the history of its key, and `prefs fleet conflicts` lists it.

      Examples:
        prefs fleet rule limits ours
      """)

  enum Winner: String, CaseIterable, ExpressibleByArgument {
    case later, theirs, ours
  }

  @Argument(help: "The collection.", completion: Completions.collections)
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
