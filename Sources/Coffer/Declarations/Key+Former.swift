extension Key {
  /// What a setting was before: called otherwise, or of another type.
  ///
  /// ```swift
  /// extension Keys {
  ///   static let size = Key("text.size", default: 12, formerly: .named("fontSize"))
  ///   static let delay = Key("delay", default: 1.5, formerly: .type(String.self) { Double($0) })
  /// }
  /// ```
  ///
  /// What is stored is taken over when the settings are declared (``Preferences/declare(_:strict:)``), in one transaction.
  /// The old value goes into the history, whether the collection keeps one or not. One that cannot be carried over is
  /// reported, and stays where it is; so does one whose setting has a value already.
  public struct Former: Sendable {
    /// nil for the setting's own name, which had another type.
    let name: String?
    /// nil for the setting's own collection.
    let collection: String?
    /// Reads an old value as a new one; nil where it cannot be one.
    let read: @Sendable (_ session: Session, _ key: String, _ collection: String) throws -> Object?

    /// It had another name.
    ///
    /// - Parameter collection: Where it was; nil for the collection of the key.
    public static func named(_ name: String, in collection: String? = nil) -> Former {
      named(name, in: collection, as: Object.self) { $0 }
    }

    /// It had another name and another type.
    ///
    /// - Parameter convert: Makes the new value of the old one; nil where there is none.
    public static func named<Old: Decodable & Sendable>(
      _ name: String, in collection: String? = nil, as type: Old.Type,
      _ convert: @escaping @Sendable (Old) throws -> Object?
    ) -> Former {
      Former(name: name, collection: collection, read: reading(convert))
    }

    /// It had another type.
    ///
    /// - Parameter convert: Makes the new value of the old one; nil where there is none.
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

/// What became of a setting's former self.
enum TakeOver {
  /// There is none.
  case nothing
  case taken
  case problem(SettingProblem)
}
