extension Key {
  /// A former name or type of a setting.
  ///
  /// ```swift
  /// extension Keys {
  ///   static let size = Key("text.size", default: 12, formerly: .named("fontSize"))
  ///   static let delay = Key("delay", default: 1.5, formerly: .type(String.self) { Double($0) })
  /// }
  /// ```
  ///
  /// Stored values are taken over when the settings are declared (`Preferences.declare(_:strict:)`), in one transaction.
  /// While an older version that declares the former name may still run, both names are kept, and each follows the other;
  /// see <doc:ChangingSettings>. Otherwise the old value goes into the history, even if the collection keeps none. A value that
  /// cannot be converted is reported and stays where it is; so does one whose setting already has a value.
  public struct Former: Sendable {
    /// nil for the setting's own name, with another type.
    let name: String?
    /// nil for the setting's own collection.
    let collection: String?
    /// Whether the values have another form under the former name.
    let isConverted: Bool
    /// Reads an old value as a new one; nil if it cannot be converted.
    let read: @Sendable (_ session: Session, _ key: String, _ collection: String) throws -> Object?
    /// Reads the item of the setting as one of the former name; nil if it cannot be converted, or no way is known.
    let write: (@Sendable (_ session: Session, _ from: SettingPlace, _ to: SettingPlace) throws -> HeldItem?)?

    var outline: Keys.FormerName { Keys.FormerName(name: name, collection: collection, isConverted: isConverted) }

    /// The setting had another name.
    ///
    /// - Parameter collection: Its former collection; nil for the collection of the key.
    public static func named(_ name: String, in collection: String? = nil) -> Former {
      Former(
        name: name, collection: collection, isConverted: false, read: reading { (object: Object) in object }, write: nil
      )
    }

    /// The setting had another name and another type, or another meaning of its values.
    ///
    /// An older version that may still run keeps its last value: give the way back, too.
    ///
    /// - Parameter convert: Returns the new value for an old one, or nil.
    public static func named<Old: Decodable & Sendable>(
      _ name: String, in collection: String? = nil, as type: Old.Type,
      _ convert: @escaping @Sendable (Old) throws -> Object?
    ) -> Former {
      Former(name: name, collection: collection, isConverted: true, read: reading(convert), write: nil)
    }

    /// The setting had another name and another type, or another meaning of its values; with the way back, for older versions
    /// that still run.
    ///
    /// ```swift
    /// static let delay = Key(
    ///   "delay.ms", default: 1500, formerly: .named("delay", as: Double.self) { Int($0 * 1000) } back: { Double($0) / 1000 })
    /// ```
    ///
    /// - Parameters:
    ///   - convert: Returns the new value for an old one, or nil.
    ///   - back: Returns the old value for a new one, or nil.
    public static func named<Old: Codable & Sendable>(
      _ name: String, in collection: String? = nil, as type: Old.Type,
      _ convert: @escaping @Sendable (Old) throws -> Object?, back: @escaping @Sendable (Object) throws -> Old?
    ) -> Former {
      Former(name: name, collection: collection, isConverted: true, read: reading(convert)) { session, from, to in
        guard let item = try session.storedItem(from.key.string, in: from.collection.string) else { return nil }
        let object = try session.core.decode(
          item.object, as: Object.self, from.key.string, in: from.collection.string)
        return try back(object).map { try session.held($0, from: from, to: to) }
      }
    }

    /// The setting had another type.
    ///
    /// Refused while an older version that declares that type may still run: it would read values of a form it does not know.
    ///
    /// - Parameter convert: Returns the new value for an old one, or nil.
    public static func type<Old: Decodable & Sendable>(
      _ type: Old.Type, _ convert: @escaping @Sendable (Old) throws -> Object?
    ) -> Former {
      Former(name: nil, collection: nil, isConverted: true, read: reading(convert), write: nil)
    }

    private static func reading<Old: Decodable & Sendable>(
      _ convert: @escaping @Sendable (Old) throws -> Object?
    ) -> @Sendable (Session, String, String) throws -> Object? {
      { session, key, collection in
        try session.item(key, in: collection).flatMap {
          try convert(session.core.decode($0.object, as: Old.self, key, in: collection))
        }
      }
    }
  }
}

/// The result of taking over a former value.
enum TakeOver {
  /// There is no former value.
  case nothing
  case taken
  case problem(SettingProblem)
}
