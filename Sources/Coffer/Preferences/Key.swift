/// A setting with its type, its default and its limits, declared once.
///
/// ```swift
/// extension Keys {
///   static let theme = Key("theme", in: "ui", default: Theme.dark)
///   static let retries = Key("retries", default: 3, limits: .range(0...10), summary: "How often to try again")
///   static let nickname = Key<String?>("nickname")
/// }
///
/// preferences[.theme] = .light
/// try preferences.set(5, for: .retries)
/// preferences[.nickname]  // nil: a String?
/// ```
///
/// The object has to be `Codable`; for a key of an optional type, nil stands for no value. Declare a key as a constant, as
/// above, instead of creating one for each use. ``Settings`` carry the summary and the other descriptions into the store,
/// where tools find them.
public final class Key<Object: Codable & Sendable>: Keys, @unchecked Sendable {
  /// The value when nothing is set.
  public let defaultValue: Object
  /// The limits on values, beyond their type.
  package let limits: [Limit]
  /// What the setting was before; see ``Former``.
  let formers: [Former]
  /// Whether an object is within the limits; nil if there are no limits.
  let isValid: (@Sendable (Object) -> Bool)?

  /// Declares a key.
  ///
  /// - Parameters:
  ///   - name: The name of the setting.
  ///   - collection: The collection of the setting. nil means the collection of the `Preferences` in use, or the default
  ///     collection of a proxy. Under a suite, it is a collection of the suite's own, `SUITE/COLLECTION`.
  ///   - isShared: Whether all suites share one collection instead.
  ///   - defaultValue: The value when nothing is set. It has to be within the limits: a default outside them ends the program
  ///     when the key is first used, with a message that names the key, as does a limit that is none, such as an invalid pattern.
  ///   - limits: The limits on values, beyond their type. Setting a value outside them throws; a stored value outside them
  ///     is skipped and reported.
  ///   - summary: What the setting is for, in one line.
  ///   - effect: When the program applies a change.
  ///   - since: The version of the program that introduced the setting.
  ///   - deprecated: What to use instead, or why the setting will go; nil while it is in use.
  ///   - formers: Its former names and types. Declaring the settings takes their values over; see <doc:ChangingSettings>.
  public init(
    _ name: String, in collection: String? = nil, isShared: Bool = false, default defaultValue: Object,
    limits: Limit..., summary: String = "", effect: SettingEffect = .immediate, since: String? = nil,
    deprecated: String? = nil, formerly formers: Former...
  ) {
    Self.check(limits, default: defaultValue, name, in: collection)
    self.defaultValue = defaultValue
    self.limits = limits
    self.formers = formers
    isValid = Self.check(limits)
    // Not `map(\.limit)`: a key path of a generic type is created for each key, which took most of the time of this.
    super.init(
      name: name, collection: collection, isShared: isShared, formerNames: formers.map { $0.outline },
      about: About(summary: summary, effect: effect, since: since, deprecated: deprecated),
      typed: Fingerprint.bytes(of: Object.self, default: Value(plain: defaultValue), limits: limits.map { $0.limit }))
  }

  /// Declares a key of an optional type, whose default is nil.
  ///
  /// The parameters are those of other keys; nil is always within the limits.
  public init<Wrapped>(
    _ name: String, in collection: String? = nil, isShared: Bool = false, limits: Key<Wrapped>.Limit...,
    summary: String = "", effect: SettingEffect = .immediate, since: String? = nil, deprecated: String? = nil,
    formerly formers: Former...
  ) where Object == Wrapped? {
    Key<Wrapped>.check(limits, default: nil, name, in: collection)
    defaultValue = nil
    self.limits = limits.map(Limit.optional)
    self.formers = formers
    isValid = Self.check(self.limits)
    super.init(
      name: name, collection: collection, isShared: isShared, formerNames: formers.map { $0.outline },
      about: About(summary: summary, effect: effect, since: since, deprecated: deprecated),
      typed: Fingerprint.bytes(of: Object.self, default: nil, limits: limits.map { $0.limit }))
  }

  /// Traps if a limit is invalid, or the default is not within the limits.
  ///
  /// Otherwise the one would allow anything, and the other be found at some later read.
  fileprivate static func check(_ limits: [Limit], default object: Object?, _ name: String, in collection: String?) {
    for limit in limits {
      let problem =
        limit.limit.problem
        ?? object.flatMap { object in
          limit.allows(object) ? nil : "its default must be \(limit.limit.refusal(of: Self.value(of: object)))"
        }
      guard let problem else { continue }
      preconditionFailure("The key \(KeyText.of(name, in: collection ?? "")) cannot be declared: \(problem).")
    }
  }

  private static func value(of object: Object) -> Value? {
    (try? ValueCoder.encode(object)).flatMap { try? Value($0) }
  }

  private static func check(_ limits: [Limit]) -> (@Sendable (Object) -> Bool)? {
    switch limits.count {
    case 0: nil
    case 1: limits[0].allows
    default: { object in limits.allSatisfy { $0.allows(object) } }
    }
  }

  /// Whether an object is within the limits.
  func allows(_ object: Object) -> Bool { isValid?(object) ?? true }

  /// - Parameter showsValue: Whether the error may include the value.
  /// - Throws: `CofferError.invalidValue`.
  func checked(_ object: Object, in collection: String, showsValue: () -> Bool) throws -> Object {
    if allows(object) { return object }
    let value = showsValue() ? Self.value(of: object) : nil
    let reason = limits.first { !$0.allows(object) }?.limit.refusal(of: value)
    throw CofferError.invalidValue(collection: collection, key: name, reason: reason ?? "within its limits")
  }

  // MARK: Declaring

  override func declaration(in application: String) -> Declaration {
    let (type, ownLimits) = SettingType.of(Object.self)
    var declaration = Declaration(
      name, in: collection ?? application, type: type,
      default: isNil(defaultValue) ? nil : Self.value(of: defaultValue),
      limits: ownLimits + limits.map(\.limit))
    declaration.summary = about.summary
    declaration.effect = about.effect
    declaration.since = about.since
    declaration.deprecated = about.deprecated
    declaration.isShared = isShared
    declaration.formerNames = formerNames.compactMap { former in
      former.name.map {
        Declaration.FormerName(
          place: SettingPlace($0, in: former.collection ?? declaration.collection), isConverted: former.isConverted)
      }
    }
    return declaration
  }

  override func problems(in preferences: Preferences) throws -> [SettingProblem] {
    try preferences.search(for: self).problems
  }

  // MARK: Former names and types

  override func converters(in collection: String) -> [RenameConverter] {
    formers.compactMap { former in
      guard let oldName = former.name, former.isConverted else { return nil }
      return RenameConverter(
        current: SettingPlace(name, in: collection),
        former: SettingPlace(oldName, in: former.collection ?? collection),
        forward: { [allows] session, from, to in
          guard let object = try former.read(session, from.key.string, from.collection.string), allows(object) else {
            return nil
          }
          return try session.held(object, from: from, to: to)
        }, back: { session, from, to in try former.write?(session, from, to) })
    }
  }

  override func takeOver(
    _ session: Session, in place: FormerPlace, except renames: Renames, isTrial: Bool
  ) throws -> TakeOver {
    let collection = place.collection
    for former in formers {
      let oldName = former.name ?? name
      guard let oldCollection = former.collection.map({ place.collection(named: $0) }) ?? collection else { continue }
      let own = SettingPlace(name, in: collection)
      guard isTrial || !renames.links(of: oldName, in: oldCollection).contains(where: { $0.other == own }) else {
        continue
      }
      guard try session.has(oldName, in: oldCollection) else { continue }
      if former.name == nil {
        guard try !isCurrent(session, in: collection) else { return .nothing }
      } else if try session.has(name, in: collection) {
        continue
      }
      // A sealed value is never copied to where anyone could read it.
      if try !session.isSealedOrWillBe(collection) && session.isSealedOrWillBe(oldCollection) {
        return .problem(problem(oldName, oldCollection, collection))
      }
      do {
        guard let object = try former.read(session, oldName, oldCollection), allows(object) else {
          return .problem(problem(oldName, oldCollection, collection))
        }
        if !isTrial { try take(object, session, from: oldName, oldCollection, to: collection) }
        return .taken
      } catch CofferError.notDecodable where former.name == nil {
        // Another former type may fit.
        continue
      } catch CofferError.notDecodable, CofferError.vaultLocked {
        return .problem(problem(oldName, oldCollection, collection))
      }
    }
    return .nothing
  }

  /// Whether the stored value has the setting's own type.
  private func isCurrent(_ session: Session, in collection: String) throws -> Bool {
    do {
      return try session.item(name, in: collection).map {
        _ = try session.core.decode($0.object, as: Object.self, name, in: collection)
        return true
      } ?? true
    } catch CofferError.notDecodable {
      return false
    }
  }

  private func take(
    _ object: Object, _ session: Session, from oldName: String, _ oldCollection: String, to collection: String
  ) throws {
    let new = try session.held(
      object, from: SettingPlace(oldName, in: oldCollection), to: SettingPlace(name, in: collection))
    try session.apply(.set(new), name, in: collection)
    if ByteString(oldName) != ByteString(name) || ByteString(oldCollection) != ByteString(collection) {
      try session.apply(.removed, oldName, in: oldCollection)
    }
  }

  private func problem(_ oldName: String, _ oldCollection: String, _ collection: String) -> SettingProblem {
    SettingProblem(
      collection: oldCollection, key: oldName, place: "the store",
      reason: "kept, and not migrated to \(KeyText.of(name, in: collection)): it cannot be read as the new setting")
  }
}
