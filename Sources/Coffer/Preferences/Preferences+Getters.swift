#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// The getters of UserDefaults. Where a setting cannot be read they answer from the registered defaults, and report why.

extension Preferences {
  /// The same getters, in a form that throws.
  ///
  /// ```swift
  /// let name = try preferences.throwing.string(forKey: "name")
  /// ```
  public var throwing: Throwing { Throwing(preferences: self) }

  /// What `coerce` makes of the value for a key.
  private func get<Result>(_ key: String, _ coerce: (Value?) -> Result) -> Result {
    do {
      return coerce(try find(key)?.object)
    } catch {
      proxy.database.report(error, forKey: key, inCollection: collection)
      return coerce(registered.value(forKey: key))
    }
  }

  // MARK: As it is

  /// The value for a key as Swift's own type for it, nil when there is none.
  ///
  /// Types are exact: a truth value is a `Bool`, an integer an `Int`, or `UInt64` above its range; lists and dictionaries
  /// hold such objects again, and a nil `Optional` for null. What was set as a `Codable` type of one's own comes as lists
  /// and dictionaries; see ``object(forKey:as:)``.
  public func object(forKey key: String) -> (any Sendable)? {
    get(key) { $0?.asObject }
  }

  /// The value for a key as a type of one's own, nil when there is none.
  ///
  /// What was set as this type comes back equal; an integer reads as any integer type it fits, and as Double where that
  /// loses nothing. Where another type is set, that is reported, and the registered default read instead.
  public func object<Object: Decodable>(forKey key: String, as type: Object.Type) -> Object? {
    do {
      return try throwing.object(forKey: key, as: type)
    } catch {
      proxy.database.report(error, forKey: key, inCollection: collection)
      return try? registered.value(forKey: key)?.decoded(as: type, key, in: collection)
    }
  }

  /// The value for a key as it describes itself, nil when there is none.
  public func value(forKey key: String) -> Value? {
    get(key) { $0 }
  }

  // MARK: As text

  /// The text for a key.
  ///
  /// Numbers are their shortest decimal text (`"42"`, `"12.34"`, `"1.0"`), of a `Float` the shortest that reads as that
  /// `Float`; truth values are `"1"` and `"0"`; all else is nil.
  public func string(forKey key: String) -> String? {
    get(key) { $0?.asString }
  }

  // MARK: As numbers

  /// The truth value for a key, false when there is none.
  ///
  /// A number is false when it is 0. A text is true when it begins with one of `Y y T t 1`-`9`, white space, a sign and
  /// zeros left aside: `"YES"`, `"true"`, `"+1"`, `"12.9"`; not `"on"`, `"0.5"` or `"0x1F"`. All else is false.
  public func bool(forKey key: String) -> Bool {
    get(key) { $0?.asBool ?? false }
  }

  /// The integer for a key, 0 when there is none.
  ///
  /// A truth value is 1 or 0, a double its whole part, at the nearest end of the range where it lies outside; NaN is 0. Of
  /// a text the digits at its beginning count, white space and a sign before them included: `"1234abc"` is 1234, `"1e3"`
  /// is 1. All else is 0.
  public func integer(forKey key: String) -> Int {
    get(key) { $0?.asInteger ?? 0 }
  }

  /// The double for a key, 0 when there is none.
  ///
  /// A truth value is 1 or 0. Of a text the longest number at its beginning counts: `"1e3"` is 1000, `".5"` is 0.5,
  /// `"1234abc"` is 1234. All else is 0.
  public func double(forKey key: String) -> Double {
    get(key) { $0?.asDouble ?? 0 }
  }

  /// The float for a key, as ``double(forKey:)``; infinite where it lies outside of the range.
  public func float(forKey key: String) -> Float {
    get(key) { $0?.asFloat ?? 0 }
  }

  // MARK: As other types

  /// The URL for a key, whole as it was set.
  ///
  /// A text is the path of a file, with `~` expanded; all else is nil.
  public func url(forKey key: String) -> URL? {
    get(key) { $0?.asURL }
  }

  /// The bytes for a key, nil when there are none; nothing else is taken for bytes.
  public func data(forKey key: String) -> Data? {
    get(key) { $0?.asData }
  }

  /// The list for a key, its elements as of ``object(forKey:)``; nil when there is none.
  public func array(forKey key: String) -> [any Sendable]? {
    get(key) { $0?.asArray }
  }

  /// The list for a key, nil when there is none, or an element of it is no text.
  public func stringArray(forKey key: String) -> [String]? {
    get(key) { $0?.asStringArray }
  }

  /// The dictionary for a key, its values as of ``object(forKey:)``; nil when there is none.
  public func dictionary(forKey key: String) -> [String: any Sendable]? {
    get(key) { $0?.asDictionary }
  }

  // MARK: All

  /// All keys of the search list, each with what ``object(forKey:)`` gives for it.
  ///
  /// Two keys that differ in their bytes alone, and are equal to Swift, come as one. Where the store cannot be read, this
  /// is what stands outside of it.
  public func dictionaryRepresentation() -> [String: any Sendable] {
    do {
      return try throwing.dictionaryRepresentation()
    } catch {
      proxy.database.report(error, forKey: nil, inCollection: collection)
      var values = registered.all
      overrides.replaceDefaults(in: &values)
      overrides.replace(in: &values)
      return objects(values)
    }
  }

  func objects(_ values: [ByteString: Value]) -> [String: any Sendable] {
    // Not by assignment: it would keep one key's bytes with the other key's value.
    Dictionary(values.map { ($0.key.string, $0.value.asObject) }) { first, _ in first }
  }

  // MARK: Where from

  /// The place of the search list that answers for a key, nil when none does.
  public func origin(ofKey key: String) -> Origin? {
    do {
      return try throwing.origin(ofKey: key)
    } catch {
      proxy.database.report(error, forKey: key, inCollection: collection)
      return registered.value(forKey: key).map { _ in .registered }
    }
  }

  /// Whether a key is forced, so that setting it changes nothing that is read.
  public func objectIsForced(forKey key: String) -> Bool {
    switch overrides.find(key)?.origin {
    case .forced, .locked: true
    default: false
    }
  }
}
