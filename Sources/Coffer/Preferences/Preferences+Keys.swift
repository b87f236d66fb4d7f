#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Preferences {
  // MARK: Reading

  /// The value of a typed key: what the search list has for it, else its default.
  ///
  /// ```swift
  /// if preferences[.theme] == .dark { preferences[.fontSize] += 1 }
  /// ```
  ///
  /// A value of another type, one that does not keep to the key's limits, or one that cannot be read is no new value: the last
  /// good one that was read stays, and this is reported to the logger and to ``errors``. Of a sealed collection nothing is
  /// remembered; there the next value of the search list shows, at last the default. Where setting fails, that is reported, too;
  /// ``value(of:)`` and ``set(_:for:durability:)`` throw. Between the reading and the setting of `+=` another
  /// thread or process may set the value, too; use ``update(_:_:)`` to change a value atomically.
  @inlinable
  public subscript<Object>(key: Key<Object>) -> Object {
    get {
      PlainType.value(
        of: Object.self, int: integer(PlainType.same(key)), bool: boolean(PlainType.same(key)),
        double: double(PlainType.same(key)), string: string(PlainType.same(key)), otherwise: reporting(key))
    }
    set { setReporting(newValue, for: key) }
  }

  /// Not there: for a value of another type than the key's, of which the compiler could say nothing by itself.
  @available(
    *, unavailable,
    message: "the value and the key are of different types: a Key<Int>, for instance, takes and gives an Int"
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
    proxy.state.string(of: key, in: places) ?? reporting(key)
  }

  @inline(__always)
  private func number<Number>(_ key: Key<Number>) -> Number {
    // What is not set in the application's collection may be set further down the search list.
    guard let number: Number? = proxy.state.number(of: key, in: places), number != nil || key.collection != nil else {
      return reporting(key)
    }
    return number ?? key.defaultValue
  }

  /// The value of a typed key; what stands for it where that cannot be read, which is reported.
  ///
  /// Not inlined: the short ways that end here then save no registers.
  @inline(never)
  @usableFromInline
  func reporting<Object>(_ key: Key<Object>) -> Object {
    let collection = place(of: key)
    if let object = newValue(of: key, in: collection) { return object }
    proxy.state.remember(key, in: collection, places)
    let last = lastGood.entry(of: key, in: collection)
    do {
      let search = try search(for: key)
      return accept(search, for: key, in: collection, after: last) ?? last?.object ?? key.defaultValue
    } catch {
      proxy.database.report(error, forKey: key.name, inCollection: collection)
      if case CofferError.locked = error {
        // Sealed meanwhile.
        lastGood.note(nil, of: key, in: collection)
        return fallback(for: key)
      }
      return last?.object ?? fallback(for: key)
    }
  }

  /// The value of a typed key where that is in memory and good: noted, and read by the short way from now on.
  private func newValue<Object>(of key: Key<Object>, in collection: String) -> Object? {
    guard let (object, version) = proxy.state.unchecked(of: key, in: places),
      object != nil || key.collection != nil && !searchesBehindKeys,
      // Asked after the version, which moves on when an administrator locks something.
      overrides.find(key.overrideName) == nil
    else { return nil }
    let value = object ?? key.defaultValue
    guard key.allows(value) else { return nil }
    lastGood.note(LastGoodValues.Entry(object: value, isDefault: object == nil), of: key, in: collection)
    places.noteGood(version, at: key.place)
    return value
  }

  /// The value that a search has found, noted as the last good one; nil where `last` stays, as a bad one has come.
  ///
  /// Bad values are reported.
  func accept<Object>(
    _ search: Search<Object>, for key: Key<Object>, in collection: String, after last: LastGoodValues.Entry<Object>?
  ) -> Object? {
    // A default is worth no more than what is found further down.
    if let last, !last.isDefault, search.hasProblems(besides: last.problems) {
      report(search, for: key, instead: "the last good value")
      return nil
    }
    report(search, for: key)
    let object = search.finding?.object ?? key.defaultValue
    let names = key.collection == nil ? searchedCollections.map(\.name) : places(of: key)
    // Nothing keeps in clear what is sealed.
    let isToKeep = names.allSatisfy { (try? proxy.state.isSealed($0)) == false }
    lastGood.note(
      isToKeep
        ? LastGoodValues.Entry(object: object, problems: search.problems, isDefault: search.finding == nil) : nil,
      of: key, in: collection)
    return object
  }

  @usableFromInline
  func setReporting<Object>(_ object: Object, for key: Key<Object>) {
    do {
      try set(object, for: key)
    } catch {
      proxy.database.report(error, forKey: key.name, inCollection: place(of: key))
    }
  }

  /// The value of a typed key: what the search list has for it, else its default.
  ///
  /// For a key that names a collection, that collection is the whole list, below forced values, arguments and
  /// environment, where it goes by `collection/key`. A value of another type, or one that does not keep to the key's limits,
  /// is passed over for the next one of the list, and reported once.
  ///
  /// - Throws: `CofferError.notDecodable` or `.invalidValue` when there is a value, and none that is good; `.closed`,
  ///   `.damaged` or `.inputOutput`.
  public func value<Object>(of key: Key<Object>) throws -> Object {
    try foundValue(of: key)?.object ?? key.defaultValue
  }

  /// The place of the search list that answers for a typed key; nil where it has its own default.
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

  /// What stands for a value that cannot be read: the registered default, if there is one for the key, else its own.
  private func fallback<Object>(for key: Key<Object>) -> Object {
    guard key.collection == nil,
      let registered = try? registered.value(forKey: key.name)?.decoded(as: Object.self, key.name, in: collection),
      let object = try? proxy.checked(registered, for: key, in: collection)
    else { return key.defaultValue }
    return object
  }

  // MARK: Setting

  /// Sets the value of a typed key; nil, for one of an optional type, removes it.
  ///
  /// - Throws: `CofferError.invalidValue` when the value does not keep to the key's limits, with nothing changed;
  ///   otherwise as ``set(_:forKey:)-(Object?,_)``. With another durability also what a flush throws.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, durability: ConnectionProxy.Durability = .asynchronous
  ) throws {
    let collection = place(of: key)
    try overrides.requireUnlocked(key.overrideName, key: key.name, in: collection)
    try proxy.set(object, for: key, inCollection: collection, durability: durability)
  }

  /// Sets the value of a typed key for a time; nil, for one of an optional type, removes it.
  ///
  /// ```swift
  /// try preferences.set(.debug, for: .logLevel, expires: Date(timeIntervalSinceNow: 900))
  /// ```
  ///
  /// See ``set(_:forKey:expires:due:)``.
  ///
  /// - Throws: As ``set(_:for:durability:)``.
  public func set<Object>(
    _ object: Object, for key: Key<Object>, expires: Date?, due: Date? = nil,
    durability: ConnectionProxy.Durability = .asynchronous
  ) throws {
    let collection = place(of: key)
    try overrides.requireUnlocked(key.overrideName, key: key.name, in: collection)
    try proxy.set(
      object, for: key, inCollection: collection, dates: ItemDates(expires: expires, due: due), durability: durability)
  }

  /// Removes what is set for a typed key; what is behind it in the search list shows again, at last its default.
  ///
  /// - Throws: As ``removeObject(forKey:)``.
  public func reset<Object>(_ key: Key<Object>) throws {
    try proxy.removeObject(forKey: key.name, inCollection: place(of: key))
  }
}
