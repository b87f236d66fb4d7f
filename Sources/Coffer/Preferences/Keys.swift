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
  /// What the setting was before.
  let formerNames: [FormerName]
  /// The setting's descriptions, for people.
  let about: About
  /// Where proxies keep their items of this key; no other key gets this place while the process runs.
  let place: KeyPlaces.Position
  /// The name of the setting in the layers above the store.
  let overrideName: String

  /// Another name or type that the setting had.
  struct FormerName: Sendable {
    /// nil for the setting's own name, with another type.
    let name: String?
    /// nil for the setting's own collection.
    let collection: String?
    let isConverted: Bool
  }

  struct About: Sendable {
    let summary: String
    let effect: SettingEffect
    let since: String?
    let deprecated: String?
  }

  /// What distinguishes this declaration from all others; nil for the less common types, which only JSON distinguishes.
  ///
  /// Made with the key, so that openings only hash it.
  private let distinction: [UInt8]?

  private static let count = Atomic<Int>(0)

  /// - Parameter typed: The distinction of type, default and limits.
  init(
    name: String, collection: String?, isShared: Bool, formerNames: [FormerName], about: About, typed: [UInt8]?
  ) {
    self.name = name
    self.collection = collection
    self.isShared = isShared
    self.formerNames = formerNames
    self.about = about
    distinction = typed.map { typed in
      var bytes = typed
      bytes.append(isShared ? 1 : 0)
      bytes.append(about.effect == .immediate ? 0 : 1)
      for text in [name, collection ?? "", about.summary, about.since ?? "", about.deprecated ?? ""] {
        bytes.append(counted: text)
      }
      for former in formerNames {
        bytes.append(former.isConverted ? 3 : 2)
        bytes.append(counted: former.name ?? "")
        bytes.append(counted: former.collection ?? "")
      }
      return bytes
    }
    overrideName = collection.map { "\($0)/\(name)" } ?? name
    place = KeyPlaces.Position(number: Self.count.wrappingAdd(1, ordering: .relaxed).oldValue)
  }

  /// Appends what distinguishes this declaration from all others.
  func appendFingerprint(to bytes: inout [UInt8]) {
    if let distinction {
      bytes.append(contentsOf: distinction)
    } else {
      bytes.append(counted: declaration(in: "").json)
    }
  }

  // Overridden by `Key`, which knows the type.

  /// - Parameter application: The collection of keys that don't name one.
  func declaration(in application: String) -> Declaration {
    Declaration(name, in: collection ?? application, type: .any)
  }

  /// What is wrong with the values found for the setting.
  func problems(in preferences: Preferences) throws -> [SettingProblem] { [] }

  /// Takes over the values of former names and types, in the current write transaction.
  ///
  /// - Parameter renames: Those whose former names are kept, which follow in another way.
  func takeOver(_ session: Session, in place: FormerPlace, except renames: Renames, isTrial: Bool) throws -> TakeOver {
    .nothing
  }

  /// The conversions between the setting and its former names, in a program that declares it in `collection`.
  func converters(in collection: String) -> [RenameConverter] { [] }
}
