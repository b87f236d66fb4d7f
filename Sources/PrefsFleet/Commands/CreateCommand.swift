import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The command `prefs fleet create`.
struct CreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Create a fleet, with this store as its first admin.",
    discussion: """
      The contents of the collections are pushed immediately. An existing fleet at the address is never replaced.

      Examples:
        prefs fleet create team --at etcd://127.0.0.1:2379/coffer -c web -c flags
        prefs fleet create team --at file:///srv/team --collection web --as office
        prefs fleet create team --at 's3://bucket/team?region=eu-central-1' -c web
        prefs fleet create team --at etcds://ada@etcd-1/team -c web --password-file pw
      """)

  @Argument(help: "The name of the fleet.")
  var name: String

  @Option(help: ArgumentHelp("The carrier: etcd://…, etcds://…, s3://… or file:///…", valueName: "address"))
  var at: String

  @Option(help: ArgumentHelp("The name of this host in the fleet; by default its host name.", valueName: "name"))
  var `as`: String?

  @Option(
    help: ArgumentHelp(
      "How long removals are remembered: a host that was away longer adopts the state of the fleet.",
      valueName: "days"))
  var retention = 90

  @Option(
    help: ArgumentHelp(
      "How old the last commit may be before hosts report that they are stale, as in 1h; by default any age.",
      valueName: "time"))
  var greatestAge: Lifetime?

  @OptionGroup var options: FleetOptions

  mutating func validate() throws {
    if options.common.namedCollections.isEmpty { throw ValidationError("Name the collections to share with -c.") }
    guard (1...36_500).contains(retention) else {
      throw ValidationError("--retention needs a number of days from 1 to 36500.")
    }
  }

  mutating func run() async throws {
    let carrier = try options.carrier(at: at)
    let host = self.as ?? hostName()
    // Before creating a store for it.
    try await Fleet.checkCreation(name, at: carrier, as: host)
    try await options.withStore { database in
      let fleet = try await Fleet.create(
        name, in: database, at: carrier, collections: options.common.namedCollections, as: host,
        retentionDays: retention, greatestAge: greatestAge.map { .seconds($0.seconds) })
      let report = try await fleet.sync()
      for note in try emptyNotes(database) { options.common.note(note) }
      let settings = DisplayText.count(report.pushedCount, "setting", "settings")
      options.common.note("created the fleet \"\(name)\", with \(settings).")
      try await fleet.noteWaits(options.common)
      try report.checkProblems()
    }
  }

  /// Names the collections that hold nothing: one that was misspelt would be shared without a value.
  private func emptyNotes(_ database: Database) throws -> [String] {
    let names = options.common.namedCollections
    return try database.makeConnection().read { transaction in
      try names.compactMap { try KeyReference.emptyNote($0, transaction) }
    }
  }

  private func hostName() -> String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard gethostname(&buffer, buffer.count - 1) == 0 else { return "admin" }
    return buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "admin" }
  }
}
