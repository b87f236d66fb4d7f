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

/// The program `prefs-fleet`, which `prefs fleet` starts.
package enum FleetTool {
  /// Runs the program with the arguments of this process, and ends the process with its exit code.
  package static func main() async -> Never {
    PrefsTool.prepare()
    // With the first, libcurl would write the keys of its connections to a file, and with them the password of an etcd could be
    // read; with the others, OpenSSL would load other code. TLS uses the system's configuration.
    for name in ["SSLKEYLOGFILE", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES"] { unsetenv(name) }
    exit(await run())
  }

  private static func run() async -> Int32 {
    do {
      let arguments = try CommandArguments.ofThisProcess()
      if try PrefsTool.printCompletionScript(arguments, of: FleetCommand.self) { return ExitStatus.success.rawValue }
      if let text = PrefsTool.versionText(of: "prefs-fleet", for: arguments, others: [HTTPLibrary.version]) {
        try StandardOutput.write(text)
        return ExitStatus.success.rawValue
      }
      var command = try FleetCommand.parseAsRoot(
        CommandArguments.movingOptions(arguments, behindCommandOf: FleetCommand.self))
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      return ExitStatus.success.rawValue
    } catch {
      return PrefsTool.report(
        failure(error) ?? error, of: Array(CommandLine.arguments.dropFirst()), root: FleetCommand.self)
    }
  }

  /// The exit code and message for an error of a fleet or its carrier.
  private static func failure(_ error: any Error) -> Failure? {
    switch error {
    case let error as FleetError:
      Failure(error.exitStatus, error.description + (error.command.map { " Run: \(CommandHint.text($0))" } ?? ""))
    case let error as CarrierError: Failure(error.exitStatus, error.description)
    default: nil
    }
  }
}

extension FleetError {
  /// The command that resolves this error.
  fileprivate var command: String? {
    switch self {
    case .rolledBack(_, found: .some), .forked: "fleet accept-rollback"
    case .rolledBack(_, found: nil): "fleet leave --force"
    case .memberNotFound: "fleet members"
    case .lastAdminLeaves: "fleet leave --force"
    case .conflictNotFound: "fleet conflicts"
    case .collectionWaits(let name): "fleet accept \(name)"
    case .collectionNotWaiting, .collectionNotShared: "fleet status"
    default: nil
    }
  }

  /// The exit code for this error.
  fileprivate var exitStatus: ExitStatus {
    switch self {
    case .fleetNotFound, .notJoined, .memberNotFound, .conflictNotFound, .collectionNotWaiting, .collectionNotShared:
      .notFound
    case .fleetExists, .alreadyJoined, .invitationUsed, .memberExists, .collectionShared: .conflict
    case .damaged, .rolledBack, .forked, .olderThanInvitation: .integrity
    case .newerFormat: .newerFormat
    case .removed, .notAllowed, .lastAdmin, .lastAdminLeaves, .invitationExpired, .collectionWaits, .tooLarge,
      .tooManyCollections:
      .refused
    case .badName, .manyMayOnlyRead, .adminsHaveAll: .usage
    case .badInvitation: .format
    case .busy: .busy
    }
  }
}

extension CarrierError {
  /// The exit code for this error.
  fileprivate var exitStatus: ExitStatus {
    switch self {
    case .unreachable: .unreachable
    case .full: .inputOutput
    case .refused, .copied, .tooLarge, .tooManyChanges: .refused
    case .badAddress: .usage
    case .garbled: .integrity
    }
  }
}
