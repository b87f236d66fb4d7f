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
  /// Where proxies keep their items of this key, and of no other one as long as the process runs.
  let place: KeyPlaces.Position
  /// What the setting is called in the layers above the stored ones.
  let overrideName: String

  private static let count = Atomic<Int>(0)

  init(name: String, collection: String?) {
    self.name = name
    self.collection = collection
    overrideName = collection.map { "\($0)/\(name)" } ?? name
    place = KeyPlaces.Position(number: Self.count.wrappingAdd(1, ordering: .relaxed).oldValue)
  }
}
