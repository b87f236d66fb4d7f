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
  /// Setting cannot throw either: where it fails, as where a value cannot be read, that is reported to the logger and to
  /// ``errors``; ``value(of:)`` and ``set(_:for:durability:)`` throw. Between the reading and the setting of `+=` another
  /// thread or process may set the value, too; use ``update(_:_:)`` to change a value atomically.
  @inlinable
  public subscript<Object>(key: Key<Object>) -> Object {
    get {
      // What is asked for most is answered without generic code: the program's compiler knows the type.
      if Object.self == Int.self {
        return unsafeBitCast(integer(unsafeDowncast(key, to: Key<Int>.self)), to: Object.self)
      }
      if Object.self == Bool.self {
        return unsafeBitCast(boolean(unsafeDowncast(key, to: Key<Bool>.self)), to: Object.self)
      }
      if Object.self == Double.self {
        return unsafeBitCast(double(unsafeDowncast(key, to: Key<Double>.self)), to: Object.self)
      }
      if Object.self == String.self {
        return unsafeBitCast(string(unsafeDowncast(key, to: Key<String>.self)), to: Object.self)
      }
      return reporting(key)
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
    guard key.isValid == nil else { return limitedString(key) }
    return proxy.state.string(of: key, in: places) ?? reporting(key)
  }

  @inline(__always)
  private func number<Number>(_ key: Key<Number>) -> Number {
    guard key.isValid == nil else { return limitedNumber(key) }
    return knownNumber(key) ?? reporting(key)
  }

  /// Not inlined, and the last thing that its callers do: a call of the program's code in their midst would have every read
  /// save registers for it.
  @inline(never)
  private func limitedNumber<Number>(_ key: Key<Number>) -> Number {
    if let number = knownNumber(key), key.allows(number) { return number }
    return reporting(key)
  }

  @inline(never)
  private func limitedString(_ key: Key<String>) -> String {
    if let text = proxy.state.string(of: key, in: places), key.allows(text) { return text }
    return reporting(key)
  }

  @inline(__always)
  private func knownNumber<Number>(_ key: Key<Number>) -> Number? {
    // What is not set in the application's collection may be set further down the search list.
    if let number: Number? = proxy.state.number(of: key, in: places),
      number != nil || key.collection != nil && !searchesBehindKeys
    {
      return number ?? key.defaultValue
    }
    return nil
  }

  /// The value of a typed key; what stands for it where that cannot be read, which is reported.
  @usableFromInline
  func reporting<Object>(_ key: Key<Object>) -> Object {
    let collection = place(of: key)
    // Layers above the store never change.
    if overrides.find(key.overrideName) == nil { proxy.state.remember(key, in: collection, places) }
    do {
      let search = try search(for: key)
      report(search, for: key)
      return search.finding?.object ?? key.defaultValue
    } catch {
      proxy.database.report(error, forKey: key.name, inCollection: collection)
      return fallback(for: key)
    }
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

  /// A good value of a setting, and the bad ones that were passed over for it.
  package struct GoodValue<Object: Sendable>: Sendable {
    package let object: Object
    fileprivate let problems: [SettingProblem]
    /// Whether it may be kept: not in a sealed collection, whose values nothing keeps in clear.
    package let isToKeep: Bool
  }

  /// The value of a typed key as the subscript gives it, but instead of a new bad one the last good one.
  package func value<Object>(of key: Key<Object>, after last: GoodValue<Object>?) -> GoodValue<Object> {
    do {
      let search = try search(for: key)
      if let last, search.hasProblems(besides: last.problems) {
        report(search, for: key, instead: "the last good value")
        return last
      }
      report(search, for: key)
      let isSealed = try places(of: key).contains { try proxy.state.isSealed($0) }
      return GoodValue(
        object: search.finding?.object ?? key.defaultValue, problems: search.problems, isToKeep: !isSealed)
    } catch {
      // Reads again, and reports.
      return GoodValue(object: self[key], problems: [], isToKeep: false)
    }
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
