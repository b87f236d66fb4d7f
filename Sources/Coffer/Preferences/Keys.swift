import Synchronization

// Unchecked sendable: only `Key` builds on it, and both have nothing but constants.

/// Where a program declares its typed keys, see ``Key``.
///
/// ```swift
/// extension Keys {
///   static let theme = Key("theme", in: "ui", default: Theme.dark)
/// }
/// ```
///
/// It is what all keys have in common, whatever their type: their names. As the class that ``Key`` builds on it lends them
/// what is declared on it, so that `preferences[.theme]` finds a key of any type.
public class Keys: @unchecked Sendable {
  /// The name of the setting.
  public let name: String
  /// The collection of the setting; nil for the one of the `Preferences` that is asked.
  public let collection: String?
  /// Whether ``collection`` is the same one for all suites.
  public let isShared: Bool
  /// Whether the setting was another one before.
  let hasFormers: Bool
  /// What is said about the setting, for people.
  let about: About
  /// Where proxies keep their items of this key, and of no other one as long as the process runs.
  let place: KeyPlaces.Position
  /// What the setting is called in the layers above the stored ones.
  let overrideName: String

  struct About: Sendable {
    let summary: String
    let effect: Declaration.Effect
    let since: String?
    let deprecated: String?

  }

  /// What keys of the usual types are, for their fingerprint; nil for others, whose declaration is what tells them.
  private let plain: Plain?

  struct Plain: Sendable {
    /// That of ``Fingerprint``.
    let type: UInt8
    let defaultValue: Value?
    let limits: [SettingLimit]
  }

  private static let count = Atomic<Int>(0)

  init(name: String, collection: String?, isShared: Bool, hasFormers: Bool, about: About, plain: Plain?) {
    self.name = name
    self.collection = collection
    self.isShared = isShared
    self.hasFormers = hasFormers
    self.about = about
    self.plain = plain
    overrideName = collection.map { "\($0)/\(name)" } ?? name
    place = KeyPlaces.Position(number: Self.count.wrappingAdd(1, ordering: .relaxed).oldValue)
  }

  /// Appends what tells this declaration from any other one.
  func appendFingerprint(to bytes: inout [UInt8]) {
    guard let plain else { return bytes.append(counted: declaration(in: "").json) }
    bytes.append(plain.type)
    bytes.append(isShared ? 1 : 0)
    bytes.append(about.effect == .immediate ? 0 : 1)
    bytes.append(counted: name)
    bytes.append(counted: collection ?? "")
    bytes.append(counted: about.summary)
    bytes.append(counted: about.since ?? "")
    bytes.append(counted: about.deprecated ?? "")
    if let value = plain.defaultValue { Fingerprint.append(value, to: &bytes) }
    for limit in plain.limits { Fingerprint.append(limit, to: &bytes) }
  }

  // What `Key` knows, which has the type.

  /// - Parameter application: The collection of keys that name none.
  func declaration(in application: String) -> Declaration {
    Declaration(name, in: collection ?? application, type: .any)
  }

  /// What is wrong with the values that are found for the setting.
  func problems(in preferences: Preferences) throws -> [SettingProblem] { [] }

  /// Takes over what the setting was before, in the write transaction that is under way.
  func takeOver(_ session: Session, in place: FormerPlace, isTrial: Bool) throws -> TakeOver {
    .nothing
  }
}
