#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Preferences {
  /// The getters of a `Preferences`, with the same names and rules, that throw if a setting cannot be read.
  ///
  /// All of them throw `CofferError.damaged`, `.inputOutput`, `.closed` and similar errors. A value of another type is not
  /// an error for the getters of UserDefaults; ``object(forKey:as:)`` throws `.notDecodable`.
  public struct Throwing: Sendable {
    let preferences: Preferences

    private func value(_ key: String) throws -> Value? {
      try preferences.find(key)?.object
    }

    /// As ``Preferences/object(forKey:)``.
    public func object(forKey key: String) throws -> (any Sendable)? { try value(key)?.asObject }

    /// As ``Preferences/object(forKey:as:)``.
    ///
    /// - Throws: Also `CofferError.notDecodable` when the value has another type.
    public func object<Object: Decodable>(forKey key: String, as type: Object.Type) throws -> Object? {
      let proxy = preferences.proxy
      return try preferences.find(key, as: type) {
        try proxy.object(forKey: key, inCollection: $0, as: type)
      }?.object
    }

    /// As ``Preferences/value(forKey:)``.
    public func value(forKey key: String) throws -> Value? { try value(key) }

    /// As ``Preferences/string(forKey:)``.
    public func string(forKey key: String) throws -> String? { try value(key)?.asString }

    /// As ``Preferences/bool(forKey:)``.
    public func bool(forKey key: String) throws -> Bool { try value(key)?.asBool ?? false }

    /// As ``Preferences/integer(forKey:)``.
    public func integer(forKey key: String) throws -> Int { try value(key)?.asInteger ?? 0 }

    /// As ``Preferences/double(forKey:)``.
    public func double(forKey key: String) throws -> Double { try value(key)?.asDouble ?? 0 }

    /// As ``Preferences/float(forKey:)``.
    public func float(forKey key: String) throws -> Float { try value(key)?.asFloat ?? 0 }

    /// As ``Preferences/url(forKey:)``.
    public func url(forKey key: String) throws -> URL? { try value(key)?.asURL }

    /// As ``Preferences/data(forKey:)``.
    public func data(forKey key: String) throws -> Data? { try value(key)?.asData }

    /// As ``Preferences/array(forKey:)``.
    public func array(forKey key: String) throws -> [any Sendable]? { try value(key)?.asArray }

    /// As ``Preferences/stringArray(forKey:)``.
    public func stringArray(forKey key: String) throws -> [String]? { try value(key)?.asStringArray }

    /// As ``Preferences/dictionary(forKey:)``.
    public func dictionary(forKey key: String) throws -> [String: any Sendable]? { try value(key)?.asDictionary }

    /// As ``Preferences/dictionaryRepresentation()``.
    public func dictionaryRepresentation() throws -> [String: any Sendable] {
      preferences.objects(try preferences.findAll())
    }

    /// As ``Preferences/origin(ofKey:)``.
    public func origin(ofKey key: String) throws -> Origin? { try preferences.find(key)?.origin }
  }
}
