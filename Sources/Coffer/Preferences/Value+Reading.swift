// The text forms of settings, for a program's own layers, providers and pages.

extension Value {
  /// The value as a type of the program, parsed as the layers of ``Preferences`` do.
  ///
  /// ```swift
  /// let port = try Value.string("8080").read(as: Int.self)
  /// let isOn = try Value.string("yes").read(as: Bool.self)
  /// let hosts = try Value.string(#"["a", "b"]"#).read(as: [String].self)
  /// ```
  ///
  /// A value of the type is returned as it is. For other types, text is parsed: a number, a Boolean (`true` `false` `yes`
  /// `no` `on` `off` `1` `0`), a date (RFC 3339), a URL, a UUID, the raw value of an enumeration, bytes in base64; JSON or a
  /// property list for lists, dictionaries and `Codable` types. For a ``Secret``, the whole text is taken as it is.
  ///
  /// - Parameters:
  ///   - key: The key to name in errors.
  ///   - collection: The collection to name in errors.
  /// - Throws: `CofferError.notDecodable`, which does not include the value.
  public func read<Object: Decodable>(
    as type: Object.Type = Object.self, forKey key: String = "", inCollection collection: String = ""
  ) throws -> Object {
    do {
      return try decoded(as: type, key, in: collection)
    } catch {
      guard case .string(let text) = self,
        let object = SettingsText.object(in: text, as: type, key, in: collection)
      else { throw error }
      return object
    }
  }

  /// The value as text that ``read(as:forKey:inCollection:)`` parses back to the same value, and that `prefs get` prints;
  /// nil for a secret, which has no text form.
  ///
  /// A date is in milliseconds, and a list or a dictionary one line of JSON.
  public var text: String? {
    if case .secret = self { nil } else { ValueText.text(self) }
  }
}

extension Key {
  /// A value, such as text, read as a value of this key.
  ///
  /// ```swift
  /// let rate = Key("rate", default: 12, limits: .range(1...60))
  /// let fromForm = try rate.read("30")  // 30
  /// ```
  ///
  /// - Throws: `CofferError.notDecodable` when it cannot be read as one, see ``Value/read(as:forKey:inCollection:)``;
  ///   `.invalidValue` when it violates the key's limits.
  public func read(_ value: Value) throws -> Object {
    let collection = collection ?? ""
    return try checked(value.read(forKey: name, inCollection: collection), in: collection) { true }
  }

  /// The text that ``read(_:)`` parses back to this object; nil for a secret, and for nil.
  ///
  /// - Throws: `CofferError.notEncodable`.
  public func text(of object: Object) throws -> String? {
    if isNil(object) { return nil }
    return try Value(StoredValue(encoding: object, name, in: collection ?? "")).text
  }
}
