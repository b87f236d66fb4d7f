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
  /// Stored values are taken over when the settings are declared (``Preferences/declare(_:strict:)``), in one transaction.
  /// The old value goes into the history, even if the collection keeps none. A value that cannot be converted is reported
  /// and stays where it is; so does one whose setting already has a value.
  public struct Former: Sendable {
    /// nil for the setting's own name, with another type.
    let name: String?
    /// nil for the setting's own collection.
    let collection: String?
    /// Reads an old value as a new one; nil if it cannot be converted.
    let read: @Sendable (_ session: Session, _ key: String, _ collection: String) throws -> Object?

    /// The setting had another name.
    ///
    /// - Parameter collection: Its former collection; nil for the collection of the key.
    public static func named(_ name: String, in collection: String? = nil) -> Former {
      named(name, in: collection, as: Object.self) { $0 }
    }

    /// The setting had another name and another type.
    ///
    /// - Parameter convert: Returns the new value for an old one, or nil.
    public static func named<Old: Decodable & Sendable>(
      _ name: String, in collection: String? = nil, as type: Old.Type,
      _ convert: @escaping @Sendable (Old) throws -> Object?
    ) -> Former {
      Former(name: name, collection: collection, read: reading(convert))
    }

    /// The setting had another type.
    ///
    /// - Parameter convert: Returns the new value for an old one, or nil.
    public static func type<Old: Decodable & Sendable>(
      _ type: Old.Type, _ convert: @escaping @Sendable (Old) throws -> Object?
    ) -> Former {
      Former(name: nil, collection: nil, read: reading(convert))
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
