// The text forms of settings, for a program's own layers, providers and pages.

extension Value {
  /// The value as a type of the program, as the layers of ``Preferences`` read it.
  ///
  /// ```swift
  /// let port = try Value.string("8080").read(as: Int.self)
  /// let isOn = try Value.string("yes").read(as: Bool.self)
  /// let hosts = try Value.string(#"["a", "b"]"#).read(as: [String].self)
  /// ```
  ///
  /// A value of the type is read as it is. Of any other type a text is read that stands for one: a number, a truth value
  /// (`true` `false` `yes` `no` `on` `off` `1` `0`), a date (RFC 3339), a URL, a UUID, the raw value of an enumeration, bytes
  /// in base64; JSON or a property list for lists, dictionaries and `Codable` types. Any text is a ``Secret``, whole.
  ///
  /// - Parameters:
  ///   - key: The key that an error names.
  ///   - collection: The collection that an error names.
  /// - Throws: `CofferError.notDecodable`, in which the value is not.
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

  /// The value as a text that ``read(as:forKey:inCollection:)`` reads as the same again, and that `prefs get` prints; nil for
  /// a secret, which no text shows.
  ///
  /// A date is in milliseconds, and a list or a dictionary one line of JSON.
  public var text: String? {
    if case .secret = self { nil } else { ValueText.text(self) }
  }
}

extension Key {
  /// What a value, a text for instance, is as a value of this key.
  ///
  /// ```swift
  /// let rate = Key("rate", default: 12, limits: .range(1...60))
  /// let fromForm = try rate.read("30")  // 30
  /// ```
  ///
  /// - Throws: `CofferError.notDecodable` when it is none, see ``Value/read(as:forKey:inCollection:)``; `.invalidValue` when it
  ///   does not keep to the key's limits.
  public func read(_ value: Value) throws -> Object {
    let collection = collection ?? ""
    return try checked(value.read(forKey: name, inCollection: collection), in: collection) { true }
  }

  /// The text that ``read(_:)`` reads as this object; nil for a secret, and for nil.
  ///
  /// - Throws: `CofferError.notEncodable`.
  public func text(of object: Object) throws -> String? {
    if isNil(object) { return nil }
    return try Value(StoredValue(encoding: object, name, in: collection ?? "")).text
  }
}
