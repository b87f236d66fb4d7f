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

  func add(_ converters: [RenameConverter]) {
    state.withLock { state in
      for converter in converters {
        state.converters[converter.current, default: []].removeAll { $0.former == converter.former }
        state.converters[converter.current, default: []].append(converter)
        state.keys.formUnion([converter.current.key, converter.former.key])
      }
    }
  }

  /// Keeps the listener that `listen` makes, if there is none yet.
  func listen(_ listen: () throws -> CommitRegistration) throws {
    guard state.withLock({ $0.registration == nil }) else { return }
    let registration = try listen()
    state.withLock { $0.registration = registration }
  }

  /// Whether a commit may have set one of the names.
  func concerns(_ commit: Commit) -> Bool {
    // A version that comes back waits for values under its names.
    if commit.isEverything || commit.actions.contains(where: \.isDeclaration) { return true }
    return state.withLock { state in
      commit.collections.values.contains { change in
        change.isUnlisted || change.keys.keys.contains { state.keys.contains($0) }
      }
    }
  }
}
