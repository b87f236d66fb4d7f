import Synchronization

// Unchecked sendable: only `Key` derives from it, and both hold constants only.

/// The namespace in which a program declares its typed keys; see ``Key``.
///
/// ```swift
/// extension Keys {
///   static let theme = Key("theme", in: "ui", default: Theme.dark)
/// }
/// ```
///
/// It holds what all keys have in common, whatever their type: their names. Because it is the superclass of ``Key``, static
/// keys declared on it are found by `preferences[.theme]` whatever their type.
public class Keys: @unchecked Sendable {
  /// The name of the setting.
  public let name: String
  /// The collection of the setting; nil means the collection of the `Preferences` in use.
  public let collection: String?
  /// Whether all suites share ``collection``.
  public let isShared: Bool
  /// Whether the setting has former names or types.
  let hasFormers: Bool
  /// The setting's descriptions, for people.
  let about: About
  /// Where proxies keep their items of this key; no other key gets this place while the process runs.
  let place: KeyPlaces.Position
  /// The name of the setting in the layers above the store.
  let overrideName: String

  struct About: Sendable {
    let summary: String
    let effect: Declaration.Effect
    let since: String?
    let deprecated: String?

  }

  /// The kind of a key of a common type, for its fingerprint; nil for other types, which only their declaration
  /// distinguishes.
  private let plain: Plain?

  struct Plain: Sendable {
    /// The type, as ``Fingerprint`` numbers it.
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

  /// Appends what distinguishes this declaration from all others.
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

  // Overridden by `Key`, which knows the type.

  /// - Parameter application: The collection of keys that don't name one.
  func declaration(in application: String) -> Declaration {
    Declaration(name, in: collection ?? application, type: .any)
  }

  /// What is wrong with the values found for the setting.
  func problems(in preferences: Preferences) throws -> [SettingProblem] { [] }

  /// Takes over the values of former names and types, in the current write transaction.
  func takeOver(_ session: Session, in place: FormerPlace, isTrial: Bool) throws -> TakeOver {
    .nothing
  }
}
