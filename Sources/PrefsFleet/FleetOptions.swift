import ArgumentParser
import Coffer
import CofferFleet
import PrefsCommands

/// The options of every command about fleets, and the store and fleet that they name.
struct FleetOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The file with the password of the user in the carrier's address, or with the access key of an S3-compatible storage.",
      valueName: "path"),
    completion: .file())
  var passwordFile: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if passwordFile == "" { throw ValidationError("--password-file needs a path.") }
  }

  // MARK: Carriers

  func carrier(at address: String) throws -> any Carrier {
    let key = AccessKey(file: passwordFile)
    if address.hasPrefix("s3://"), let path = key.path, let problem = KeyFile.accessProblem(at: path, ofStoreAt: nil) {
      common.note(problem)
    }
    return try Fleet.carrier(at: address, password: password, credentials: { try key.read() })
  }

  private func password() throws -> SecretBytes {
    let path =
      passwordFile ?? Environment.variable("PREFS_FLEET_PASSWORD_FILE")
      ?? Environment.variable("CREDENTIALS_DIRECTORY").map { "\($0)/prefs-fleet-password" }
    guard let path else {
      throw Failure(
        .keyUnavailable,
        "the password of the user in the carrier's address is missing. Name its file with --password-file or "
          + "PREFS_FLEET_PASSWORD_FILE, or set the credential prefs-fleet-password.")
    }
    if let problem = KeyFile.accessProblem(at: path, ofStoreAt: nil) {
      common.note(problem)
    }
    do {
      return try FileDescriptor.readSecretFile(path, droppingNewline: true)
    } catch let failure as Failure {
      throw Failure(.keyUnavailable, "the password of the carrier's user cannot be read: \(failure.message)")
    }
  }

  // MARK: Stores and fleets

  /// Opens or creates the store, and closes it after `body`.
  ///
  /// If `body` throws and leaves a new store empty, the store is removed again. Its key file stays: another store may have been
  /// created with it meanwhile.
  func withStore<R>(_ body: (Database) async throws -> R) async throws -> R {
    let session = try CommandSession(ofCommandWith: common)
    let isNew = try !session.exists()
    var isLeftEmpty = false
    do {
      return try await using(try session.openOrCreate()) { database in
        do {
          try KeptVault(database, session).unlockIfAtHand()
          return try await body(database)
        } catch {
          isLeftEmpty = isNew && (try? Self.isEmpty(database)) == true
          throw error
        }
      }
    } catch {
      if isLeftEmpty { removeAgain(session.path) }
      throw error
    }
  }

  private func removeAgain(_ path: String) {
    do {
      try Database.remove(at: path)
      common.note("removed the store \(path) again.")
    } catch {
      common.note("the new store \(path) is empty, and could not be removed: \(error)")
    }
  }

  private static func isEmpty(_ database: Database) throws -> Bool {
    let connection = try database.makeConnection()
    return try Fleet.carriers(of: database).isEmpty && connection.read { try $0.allCollections().isEmpty }
  }

  /// Opens the store and its fleets, and closes it after `body`.
  ///
  /// - Parameter isReading: Whether a read-only store suffices.
  func withFleets<R>(isReading: Bool = false, _ body: ([Fleet]) async throws -> R) async throws -> R {
    try await withFleetsAndVault(isReading: isReading) { fleets, _ in try await body(fleets) }
  }

  /// The same, with the vault of the store, which is unlocked if its key is at hand.
  func withFleetsAndVault<R>(
    isReading: Bool = false, _ body: ([Fleet], KeptVault) async throws -> R
  ) async throws -> R {
    let session = try CommandSession(ofCommandWith: common)
    return try await using(isReading ? try session.openForReading() : try session.open()) { database in
      let addresses = try Fleet.carriers(of: database)
      guard !addresses.isEmpty else {
        throw Failure(
          .notFound,
          "the store \(session.path) belongs to no fleet. Join one with `\(CommandHint.text("fleet join -"))`, or create one "
            + "with `\(CommandHint.text("fleet create NAME --at ADDRESS -c COLLECTION"))`.")
      }
      let vault = KeptVault(database, session)
      try vault.unlockIfAtHand()
      return try await body(addresses.map { try Fleet.open(in: database, at: carrier(at: $0)) }, vault)
    }
  }

  private func using<R>(_ database: Database, _ body: (Database) async throws -> R) async throws -> R {
    do {
      let result = try await body(database)
      try await database.close()
      return result
    } catch {
      try? await database.close()
      throw error
    }
  }
}

/// The options of a command about one fleet.
struct OneFleetOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The name of the fleet, if the store belongs to several.", valueName: "name"))
  var fleet: String?

  @OptionGroup var options: FleetOptions

  var common: CommonOptions { options.common }

  /// Opens the store and the fleet, and closes the store after `body`.
  func withFleet<R>(isReading: Bool = false, _ body: (Fleet) async throws -> R) async throws -> R {
    try await options.withFleets(isReading: isReading) { fleets in
      var named: [String: Fleet] = [:]
      for fleet in fleets { named[try await fleet.status().fleet] = fleet }
      if fleet == nil, fleets.count == 1 { return try await body(fleets[0]) }
      let names = named.keys.sorted().joined(separator: ", ")
      guard let fleet else {
        throw Failure(.usage, "the store belongs to several fleets. Choose one with --fleet: \(names).")
      }
      guard let found = named[fleet] else {
        throw Failure(.notFound, "the store belongs to no fleet named \"\(fleet)\". Its fleets are: \(names).")
      }
      return try await body(found)
    }
  }
}
