#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// Typed keys on a proxy. `Preferences` uses these too, besides its layers.

extension ConnectionProxy {
  // MARK: Reading

  /// The value of a typed key: the stored value, or else the key's default.
  ///
  /// A key without a collection belongs to the default collection here. If the stored value has another type, violates the
  /// key's limits, or cannot be read, the last good value stays in effect (except in a sealed collection), and the problem
  /// is reported to the logger and to ``errors``. A failed assignment is reported the same way, and so is a change in place, such
  /// as `+=`, which is refused while the stored value cannot be read: ``CofferError/notMutable(collection:key:reason:)``.
  @inlinable
  public subscript<Object>(key: Key<Object>) -> Object {
    get {
      PlainType.value(
        of: Object.self, int: integer(PlainType.same(key)), bool: boolean(PlainType.same(key)),
        double: double(PlainType.same(key)), string: string(PlainType.same(key)), otherwise: reporting(key))
    }
    set { setReporting(newValue, for: key) }
    _modify {
      var object = self[key]
      defer { setChanged(object, for: key) }
      yield &object
    }
  }

  /// Unavailable: explains the error when the value has a different type than the key, which the compiler's own does not.
  @available(
    *, unavailable,
    message: "the value and the key are of different types: a Key<Int>, for instance, reads and writes an Int"
  )
  public subscript<Object, Other>(key: Key<Object>) -> Other {
    get { fatalError() }
    set { fatalError() }
  }

  @usableFromInline
  func integer(_ key: Key<Int>) -> Int { number(key) }

  @usableFromInline
  func boolean(_ key: Key<Bool>) -> Bool { number(key) }

  @usableFromInline
  func double(_ key: Key<Double>) -> Double { number(key) }

  @usableFromInline
  func string(_ key: Key<String>) -> String {
    state.string(at: key.place, in: places) ?? reporting(key)
  }

  @inline(__always)
  private func number<Number>(_ key: Key<Number>) -> Number {
    guard let number: Number? = state.number(at: key.place, in: places) else { return reporting(key) }
    return number ?? key.defaultValue
  }

  /// The value of a typed key.
  ///
  /// If it cannot be read, reports why and returns the last good value or else the default.
  ///
  /// Not inlined, so that the fast paths that end here need not save registers.
  @inline(never)
  @usableFromInline
  func reporting<Object>(_ key: Key<Object>) -> Object {
    let collection = key.collection ?? ""
    if let (object, version) = state.unchecked(at: key.place, as: Object.self, in: places),
      key.allows(object ?? key.defaultValue)
    {
      lastGood.note(
        LastGoodValues.Entry(object: object ?? key.defaultValue, isDefault: object == nil), of: key, in: collection)
      places.noteGood(version, at: key.place)
      return object ?? key.defaultValue
    }
    let last = lastGood.entry(of: key, in: collection)
    do {
      let object = try value(of: key)
      let isSealed = try state.isSealed(collection)
      lastGood.note(isSealed ? nil : LastGoodValues.Entry(object: object), of: key, in: collection)
      return object
    } catch {
      let problem = problem(
        error, of: key, in: collection, "collection \"\(collection)\"",
        try? object(forKey: key.name, inCollection: collection, as: Value.self))
      if let problem {
        database.report(problem, instead: last?.isDefault ?? true ? "the default" : "the last good value")
      } else {
        database.report(error, forKey: key.name, inCollection: collection)
      }
      guard case CofferError.vaultLocked = error else { return last?.object ?? key.defaultValue }
      // Sealed in the meantime.
      lastGood.note(nil, of: key, in: collection)
      return key.defaultValue
    }
  }

  @usableFromInline
  func setReporting<Object>(_ object: Object, for key: Key<Object>) {
    do {
      try set(object, for: key)
    } catch {
      database.report(error, forKey: key.name, inCollection: key.collection ?? "")
    }
  }

  /// Sets a value that was changed in place, unless the stored one cannot be read.
  @usableFromInline
  func setChanged<Object>(_ object: Object, for key: Key<Object>) {
    let collection = key.collection ?? ""
    do {
      try requireReadable(key, in: collection)
      try set(object, for: key)
    } catch {
      database.report(error, forKey: key.name, inCollection: collection)
    }
  }

  /// Throws if the stored value of a typed key cannot be read, so that a change in place started from another one.
  ///
  /// - Throws: `CofferError.notMutable`; other errors of reading.
  func requireReadable<Object>(_ key: Key<Object>, in collection: String) throws {
    do {
      _ = try object(for: key, inCollection: collection)
    } catch {
      let stored = try? object(forKey: key.name, inCollection: collection, as: Value.self)
      guard let problem = problem(error, of: key, in: collection, "", stored) else { throw error }
      throw CofferError.notMutable(collection: collection, key: key.name, reason: problem.reason)
    }
  }

  /// The value of a typed key: the stored value, or else the key's default.
  ///
  /// - Throws: `CofferError.notDecodable` when the stored value has another type, `.invalidValue` when it violates the key's
  ///   limits; `.closed`, `.damaged` or `.inputOutput`.
  public func value<Object>(of key: Key<Object>) throws -> Object {
    let collection = key.collection ?? ""
    state.remember(key.name, in: collection, at: key.place, places)
    return try object(for: key, inCollection: collection) ?? key.defaultValue
  }

  /// The stored value of a typed key in a collection, or nil.
  func object<Object>(for key: Key<Object>, inCollection collection: String) throws -> Object? {
    try object(forKey: key.name, inCollection: collection, as: Object.self).map {
      try checked($0, for: key, in: collection)
    }
  }

  /// - Throws: `CofferError.invalidValue`, which includes the value unless it is a secret or in a sealed collection.
  func checked<Object>(_ object: Object, for key: Key<Object>, in collection: String) throws -> Object {
    try key.checked(object, in: collection) { showsValues(of: collection) }
  }

  /// What is wrong with the stored value of a typed key; nil if `error` has another cause.
  func problem<Object>(
    _ error: any Error, of key: Key<Object>, in collection: String, _ place: @autoclosure () -> String,
    _ found: @autoclosure () -> Value?
  ) -> SettingProblem? {
    let (reason, value): (String, Value?)
    switch error {
    case CofferError.invalidValue(_, _, let words): (reason, value) = (words, found())
    case CofferError.notDecodable(_, _, let stored, let requested, let failure):
      value = found()
      // The declaration describes the expected value better than the error does.
      let problem = value.flatMap {
        key.declaration(in: collection).problem(of: $0, showsValue: showsValues(of: collection))
      }
      // The declaration of a `Codable` type does not say what is missing inside the value.
      reason = problem ?? "of type \(requested), not \(stored): \(failure)"
    default: return nil
    }
    return SettingProblem(collection: collection, key: key.name, place: place(), reason: reason, value: value)
  }

  /// Whether errors may include values: not those of sealed collections.
  private func showsValues(of collection: String) -> Bool {
    (try? state.isSealed(collection)) == false
  }

  // MARK: Setting

  /// Sets the value of a typed key; for an optional type, nil removes it.
  ///
  /// - Throws: `CofferError.invalidValue` when the value violates the key's limits; nothing is changed then. Otherwise as
  ///   `setObject(_:forKey:inCollection:durability:)`.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, durability: Durability = .asynchronous
  ) throws {
    try set(object, for: key, inCollection: key.collection ?? "", durability: durability)
  }

  func set<Object>(
    _ object: Object, for key: Key<Object>, inCollection collection: String, durability: Durability
  ) throws {
    let object = try checked(object, for: key, in: collection)
    if isNil(object) {
      try removeObject(forKey: key.name, inCollection: collection, durability: durability)
    } else {
      try setObject(object, forKey: key.name, inCollection: collection, durability: durability)
    }
  }

  /// Sets the value of a typed key, with an expiry; for an optional type, nil removes it.
  ///
  /// See `setObject(_:forKey:inCollection:expires:due:durability:)`.
  ///
  /// - Throws: As `set(_:for:durability:)`.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, expires: Date?, due: Date? = nil, durability: Durability = .asynchronous
  ) throws {
    try set(
      object, for: key, inCollection: key.collection ?? "", dates: ItemDates(expires: expires, due: due),
      durability: durability)
  }

  func set<Object>(
    _ object: Object, for key: Key<Object>, inCollection collection: String, dates: ItemDates, durability: Durability
  ) throws {
    let object = try checked(object, for: key, in: collection)
    if isNil(object) {
      try removeObject(forKey: key.name, inCollection: collection, durability: durability)
    } else {
      try setObject(object, forKey: key.name, inCollection: collection, dates: dates, durability: durability)
    }
  }

  /// Removes the stored value of a typed key, so that its default shows again.
  ///
  /// - Throws: As `removeObject(forKey:inCollection:durability:)`.
  public func reset<Object>(_ key: Key<Object>, durability: Durability = .asynchronous) throws {
    try removeObject(forKey: key.name, inCollection: key.collection ?? "", durability: durability)
  }
}

extension LastGoodValues {
  /// The last good value of a key; nil if there is none, or if it came from another key and violates this key's limits.
  func entry<Object>(of key: Key<Object>, in collection: String) -> Entry<Object>? {
    let entry = entry(at: Place(key.name, in: collection, as: Object.self), as: Object.self)
    return entry.flatMap { key.allows($0.object) ? $0 : nil }
  }

  func note<Object>(_ entry: Entry<Object>?, of key: Key<Object>, in collection: String) {
    note(entry, at: Place(key.name, in: collection, as: Object.self))
  }
}
