#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Preferences {
  // MARK: Reading

  /// The value of a typed key: the first in the search list, or else the key's default.
  ///
  /// ```swift
  /// if preferences[.theme] == .dark { preferences[.fontSize] += 1 }
  /// ```
  ///
  /// If the value has another type, violates the key's limits, or cannot be read, the last good value stays in effect, and
  /// the problem is reported to the logger and to ``errors``. For a sealed collection no value is remembered; the next value
  /// in the search list is used instead, or the default. A failed assignment is reported too. To get errors thrown, use
  /// ``value(of:)`` and `set(_:for:)`.
  ///
  /// A change in place, such as `+=` or `append`, is not atomic; use `update(_:_:)`, as in `try preferences.update(.fontSize) { $0 += 1 }`.
  /// It is refused and reported, as ``CofferError/notMutable(collection:key:reason:)``, while the stored value cannot be read as
  /// one of the key: it would overwrite that value with one made from another. An assignment replaces it.
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
    proxy.state.string(at: key.place, in: places) ?? reporting(key)
  }

  @inline(__always)
  private func number<Number>(_ key: Key<Number>) -> Number {
    // A key that isn't set in the application's collection may be set further down the search list.
    guard let number: Number? = proxy.state.number(at: key.place, in: places), number != nil || key.collection != nil
    else {
      return reporting(key)
    }
    return number ?? key.defaultValue
  }

  /// The value of a typed key.
  ///
  /// If it cannot be read, reports why and returns its replacement.
  ///
  /// Not inlined, so that the fast paths that end here need not save registers.
  @inline(never)
  @usableFromInline
  func reporting<Object>(_ key: Key<Object>) -> Object {
    let collection = place(of: key)
    if let object = newValue(of: key, in: collection) { return object }
    proxy.state.remember(key.name, in: collection, at: key.place, places)
    let last = lastGood.entry(of: key, in: collection)
    do {
      let search = try search(for: key)
      return accept(search, for: key, in: collection, after: last) ?? last?.object ?? key.defaultValue
    } catch {
      proxy.database.report(error, forKey: key.name, inCollection: collection)
      if case CofferError.vaultLocked = error {
        // Sealed in the meantime.
        lastGood.note(nil, of: key, in: collection)
        return fallback(for: key)
      }
      return last?.object ?? fallback(for: key)
    }
  }

  /// The value of a typed key if it is in memory and good: recorded, so that the fast path reads it from now on.
  private func newValue<Object>(of key: Key<Object>, in collection: String) -> Object? {
    guard let (object, version) = proxy.state.unchecked(at: key.place, as: Object.self, in: places),
      object != nil || key.collection != nil && !searchesBehindKeys,
      // Checked after the version, which changes when an administrator locks something.
      overrides.find(key.overrideName, managedName(of: key)) == nil
    else { return nil }
    let value = object ?? key.defaultValue
    guard key.allows(value) else { return nil }
    lastGood.note(LastGoodValues.Entry(object: value, isDefault: object == nil), of: key, in: collection)
    places.noteGood(version, at: key.place)
    return value
  }

  /// The value that a search found, recorded as the last good one; nil if `last` stays in effect because a bad value came.
  ///
  /// Bad values are reported.
  func accept<Object>(
    _ search: Search<Object>, for key: Key<Object>, in collection: String, after last: LastGoodValues.Entry<Object>?
  ) -> Object? {
    let found = LastGoodValues.Entry(
      object: search.finding?.object ?? key.defaultValue, problems: search.problems, isDefault: search.finding == nil)
    let place = LastGoodValues.Place(key.name, in: collection, as: Object.self)
    let isAccepted = lastGood.accepts(found, at: place, after: last) {
      let names = key.collection == nil ? searchedCollections.map(\.name) : places(of: key)
      return names.allSatisfy { (try? proxy.state.isSealed($0)) == false }
    }
    report(search, for: key, instead: isAccepted ? nil : "the last good value")
    return isAccepted ? found.object : nil
  }

  @usableFromInline
  func setReporting<Object>(_ object: Object, for key: Key<Object>) {
    do {
      try set(object, for: key)
    } catch {
      proxy.database.report(error, forKey: key.name, inCollection: place(of: key))
    }
  }

  /// Sets a value that was changed in place, unless the stored one cannot be read.
  @usableFromInline
  func setChanged<Object>(_ object: Object, for key: Key<Object>) {
    let collection = place(of: key)
    do {
      try proxy.requireReadable(key, in: collection)
      try set(object, for: key)
    } catch {
      proxy.database.report(error, forKey: key.name, inCollection: collection)
    }
  }

  /// The value of a typed key: the first in the search list, or else the key's default.
  ///
  /// For a key with a collection, only that collection is searched, after forced values, arguments and variables, where
  /// the key is named `collection/key`. A value that has another type or violates the key's limits is skipped, and reported
  /// once.
  ///
  /// - Throws: `CofferError.notDecodable` or `.invalidValue` when there are values but no good one; `.closed`, `.damaged` or
  ///   `.inputOutput`.
  public func value<Object>(of key: Key<Object>) throws -> Object {
    try foundValue(of: key)?.object ?? key.defaultValue
  }

  /// The place in the search list that has the value of a typed key; nil if the key has its own default.
  ///
  /// - Throws: As ``value(of:)``.
  public func origin<Object>(of key: Key<Object>) throws -> Origin? {
    try foundValue(of: key)?.origin
  }

  private func foundValue<Object>(of key: Key<Object>) throws -> Finding<Object>? {
    let search = try search(for: key)
    if search.finding == nil, let error = search.firstError { throw error }
    report(search, for: key)
    return search.finding
  }

  /// The replacement for a value that cannot be read: the registered default, or else the key's own.
  private func fallback<Object>(for key: Key<Object>) -> Object {
    guard key.collection == nil,
      let registered = try? registered.value(forKey: key.name)?.decoded(as: Object.self, key.name, in: collection),
      let object = try? proxy.checked(registered, for: key, in: collection)
    else { return key.defaultValue }
    return object
  }

  // MARK: Setting

  /// Sets the value of a typed key; for an optional type, nil removes it.
  ///
  /// - Throws: `CofferError.invalidValue` when the value violates the key's limits; nothing is changed then. Otherwise as
  ///   ``set(_:forKey:)-(Object?,_)``; with a stronger durability also the errors of a flush.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, durability: ConnectionProxy.Durability = .asynchronous
  ) throws {
    let collection = place(of: key)
    try overrides.requireUnlocked(managedName(of: key), key: key.name, in: collection)
    try proxy.set(object, for: key, inCollection: collection, durability: durability)
  }

  /// Sets the value of a typed key, with an expiry; for an optional type, nil removes it.
  ///
  /// ```swift
  /// try preferences.set(.debug, for: .logLevel, expires: Date(timeIntervalSinceNow: 900))
  /// ```
  ///
  /// See ``set(_:forKey:expires:due:)``.
  ///
  /// - Throws: As `set(_:for:durability:)`.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, expires: Date?, due: Date? = nil,
    durability: ConnectionProxy.Durability = .asynchronous
  ) throws {
    let collection = place(of: key)
    try overrides.requireUnlocked(managedName(of: key), key: key.name, in: collection)
    try proxy.set(
      object, for: key, inCollection: collection, dates: ItemDates(expires: expires, due: due), durability: durability)
  }

  /// Removes the stored value of a typed key; the next value in the search list shows again, or the default.
  ///
  /// - Throws: As ``removeObject(forKey:)``.
  public func reset<Object>(
    _ key: Key<Object>, durability: ConnectionProxy.Durability = .asynchronous
  ) throws {
    try proxy.removeObject(forKey: key.name, inCollection: place(of: key), durability: durability)
  }
}
