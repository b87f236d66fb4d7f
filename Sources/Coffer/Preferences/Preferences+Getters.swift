#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// The getters of UserDefaults. If a setting cannot be read, they return the registered default and report why.

extension Preferences {
  /// Reads settings with errors.
  ///
  /// ```swift
  /// let name = try preferences.throwing.object(forKey: "name", as: String.self)
  /// ```
  public var throwing: Throwing { Throwing(preferences: self) }

  /// The value of a key, converted by `coerce`.
  private func get<Result>(_ key: String, _ coerce: (Value?) -> Result) -> Result {
    do {
      return coerce(try find(key)?.object)
    } catch {
      proxy.database.report(error, forKey: key, inCollection: collection)
      return coerce(registered.value(forKey: key))
    }
  }

  // MARK: Any type

  /// The value of a key as Swift's own type for it, or nil.
  ///
  /// Types are exact: a Boolean is a `Bool`, an integer an `Int`, or `UInt64` above its range; lists and dictionaries hold
  /// such objects again, and a nil `Optional` for null. A custom `Codable` type is returned as lists and dictionaries; to
  /// decode it, use ``object(forKey:as:)``.
  public func object(forKey key: String) -> (any Sendable)? {
    get(key) { $0?.asObject }
  }

  /// The value of a key decoded as a type, or nil.
  ///
  /// A value set as this type reads back equal. An integer can be read as any integer type that holds it, and as Double if
  /// that is exact. If the value has another type, that is reported, and the registered default is returned.
  public func object<Object: Decodable>(forKey key: String, as type: Object.Type) -> Object? {
    do {
      return try throwing.object(forKey: key, as: type)
    } catch {
      proxy.database.report(error, forKey: key, inCollection: collection)
      return try? registered.value(forKey: key)?.decoded(as: type, key, in: collection)
    }
  }

  /// The value of a key as a self-describing ``Value``, or nil.
  public func value(forKey key: String) -> Value? {
    get(key) { $0 }
  }

  // MARK: As text

  /// The text of a key, or nil.
  ///
  /// Numbers become their shortest decimal text (`"42"`, `"12.34"`, `"1.0"`), a `Float` the shortest that reads as that
  /// `Float`; Booleans become `"1"` and `"0"`; all else is nil.
  public func string(forKey key: String) -> String? {
    get(key) { $0?.asString }
  }

  // MARK: As numbers

  /// The Boolean of a key; false if it has none.
  ///
  /// A number is false if it is 0. A text is true if it begins with one of `Y y T t 1`-`9`, after white space, a sign and
  /// zeros: `"YES"`, `"true"`, `"+1"`, `"12.9"`; not `"on"`, `"0.5"` or `"0x1F"`. All else is false.
  public func bool(forKey key: String) -> Bool {
    get(key) { $0?.asBool ?? false }
  }

  /// The integer of a key; 0 if it has none.
  ///
  /// A Boolean is 1 or 0. A double loses its fraction, and becomes the nearest limit if it is out of range; NaN is 0. In a
  /// text, the leading digits count, after white space and a sign: `"1234abc"` is 1234, `"1e3"` is 1. All else is 0.
  public func integer(forKey key: String) -> Int {
    get(key) { $0?.asInteger ?? 0 }
  }

  /// The double of a key; 0 if it has none.
  ///
  /// A Boolean is 1 or 0. In a text, the longest leading number counts: `"1e3"` is 1000, `".5"` is 0.5, `"1234abc"` is 1234.
  /// All else is 0.
  public func double(forKey key: String) -> Double {
    get(key) { $0?.asDouble ?? 0 }
  }

  /// The float of a key, as ``double(forKey:)``; infinite if out of range.
  public func float(forKey key: String) -> Float {
    get(key) { $0?.asFloat ?? 0 }
  }

  // MARK: As other types

  /// The URL of a key, complete as it was set.
  ///
  /// A text is taken as a file path, with `~` expanded; all else is nil.
  public func url(forKey key: String) -> URL? {
    get(key) { $0?.asURL }
  }

  /// The bytes of a key, or nil; no other type is converted to bytes.
  public func data(forKey key: String) -> Data? {
    get(key) { $0?.asData }
  }

  /// The list of a key, with elements as in ``object(forKey:)``, or nil.
  public func array(forKey key: String) -> [any Sendable]? {
    get(key) { $0?.asArray }
  }

  /// The list of a key; nil if there is none, or an element is not text.
  public func stringArray(forKey key: String) -> [String]? {
    get(key) { $0?.asStringArray }
  }

  /// The dictionary of a key, with values as in ``object(forKey:)``, or nil.
  public func dictionary(forKey key: String) -> [String: any Sendable]? {
    get(key) { $0?.asDictionary }
  }

  // MARK: All

  /// All keys of the search list, each with its ``object(forKey:)``.
  ///
  /// Two keys that Swift considers equal but whose bytes differ become one entry. If the store cannot be read, the result is
  /// what is set outside of it.
  public func dictionaryRepresentation() -> [String: any Sendable] {
    do {
      return objects(try findAll())
    } catch {
      proxy.database.report(error, forKey: nil, inCollection: collection)
      var values = registered.all
      overrides.replaceDefaults(in: &values, ofSuite: suite)
      overrides.replace(in: &values, ofSuite: suite)
      return objects(values)
    }
  }

  func objects(_ values: [ByteString: Value]) -> [String: any Sendable] {
    // Assignment would keep one key's bytes with the other key's value.
    Dictionary(values.map { ($0.key.string, $0.value.asObject) }) { first, _ in first }
  }

  // MARK: Origins

  /// The place in the search list that has the value of a key, or nil.
  public func origin(ofKey key: String) -> Origin? {
    do {
      return try find(key)?.origin
    } catch {
      proxy.database.report(error, forKey: key, inCollection: collection)
      return registered.value(forKey: key).map { _ in .registered }
    }
  }

  /// Whether a key is forced, so that setting it has no effect on reads.
  public func objectIsForced(forKey key: String) -> Bool {
    switch overrides.find(key, managedName(ofKey: key))?.origin {
    case .forced, .lockedByAdministrator: true
    default: false
    }
  }
}
