import CofferCrypto

/// The conversions between a setting and a former name of it, which only the program has that declares them.
struct RenameConverter: Sendable {
  /// Converts the item of one name to an item of the other; nil if it cannot be converted.
  typealias Conversion = @Sendable (_ session: Session, _ from: SettingPlace, _ to: SettingPlace) throws -> HeldItem?

  let current: SettingPlace
  let former: SettingPlace
  let forward: Conversion
  let back: Conversion
}

/// The conversions of a program, and the listener that applies them when another process has set a name.
final class RenameConverters: Sendable {
  private let state = Lock(State())

  /// A structure, as in `CommitFeed`.
  private struct State {
    var converters: [SettingPlace: [RenameConverter]] = [:]
    /// The names of the items that they convert.
    var keys: Set<ByteString> = []
    var registration: CommitRegistration?
  }

  func converter(of rename: Rename) -> RenameConverter? {
    state.withLock { $0.converters[rename.current]?.first { $0.former == rename.former } }
  }

  fileprivate func add(_ converters: [RenameConverter]) {
    state.withLock { state in
      for converter in converters {
        state.converters[converter.current, default: []].removeAll { $0.former == converter.former }
        state.converters[converter.current, default: []].append(converter)
        state.keys.formUnion([converter.current.key, converter.former.key])
      }
    }
  }

  /// Calls `body` after commits by others that may have set one of the names.
  fileprivate func listen(_ database: Database, _ body: @escaping @Sendable (Database) -> Void) throws {
    guard state.withLock({ $0.registration == nil }) else { return }
    let registration = try database.onCommit { [weak self, weak database] commit in
      guard let self, let database, concerns(commit) else { return }
      body(database)
    }
    state.withLock { $0.registration = registration }
  }

  private func concerns(_ commit: Commit) -> Bool {
    // A version that comes back waits for values under its names.
    if commit.isEverything || commit.actions.contains(where: \.isDeclaration) { return true }
    return state.withLock { state in
      commit.collections.values.contains { change in
        change.isUnlisted || change.keys.keys.contains { state.keys.contains($0) }
      }
    }
  }
}

extension Database {
  /// Converts between the names of renamed settings from now on, also when another process has set one.
  func convert(_ converters: [RenameConverter]) throws {
    guard !converters.isEmpty else { return }
    core.converters.add(converters)
    guard !isReadOnly else { return }
    try core.converters.listen(self) { database in
      do {
        let connection = try database.makeConnection()
        let isWaiting = try connection.read { transaction in
          let session = transaction.session
          return try session.reading { try session.isConversionWaiting() }
        }
        if isWaiting { try connection.readWrite { try $0.session.bringInStep() } }
      } catch {
        // The next commit, or the next opening, does it.
        database.options.logger.warning("Renamed settings could not follow their other names yet: \(error)")
      }
    }
  }
}

extension Session {
  /// Whether an item waits for a conversion that this program has.
  func isConversionWaiting() throws -> Bool {
    let behind = try RenameTable(connection: connection).behind()
    guard !behind.isEmpty else { return false }
    let renames = try renames()
    return behind.contains { item in
      !item.isRefused
        && renames.links(of: item.source).contains { link in
          link.other == item.place && (!link.rename.isConverted || core.converters.converter(of: link.rename) != nil)
        }
    }
  }
}
