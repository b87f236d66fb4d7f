import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A change that a client asks for: a key that gets a value, or loses it.
struct ChangeRequest {
  let place: NamedCollection
  let key: String
  /// nil removes the key.
  private(set) var value: Value?
  private var type: SettingType?
  /// The version that it must have; 0 for none.
  let ifVersion: CommitNumber?
  /// The ID of the store that the version is of; nil for any.
  private let store: String?
  /// Whether the key may be one that is not declared.
  private let isUndeclaredAllowed: Bool
  private var expires: Date?
  private var due: Date?

  /// A removal.
  init(unset request: JSONMembers, in collection: String) throws {
    try self.init(request, in: collection, ifVersion: Self.version("ifVersion", request))
  }

  /// A version that must still hold, without a change.
  init(check request: JSONMembers, in collection: String) throws {
    guard let version = try Self.version("version", request) else { throw Failure(.usage, "\"version\" is missing.") }
    try self.init(request, in: collection, ifVersion: version)
  }

  private init(_ request: JSONMembers, in collection: String, ifVersion: CommitNumber?) throws {
    place = try request.place(in: collection)
    key = try request.text("key")
    self.ifVersion = ifVersion
    guard request["store"] != .null else { throw Failure(.usage, "\"store\" is not a text.") }
    store = try request.optionalText("store")
    isUndeclaredAllowed = try request.flag("undeclared")
  }

  init(set request: JSONMembers, in collection: String) throws {
    try self.init(unset: request, in: collection)
    guard !key.isEmpty else { throw Failure(.usage, "the key is empty; nothing was changed.") }
    guard let tree = request["value"] else { throw Failure(.usage, "\"value\" is missing.") }
    do {
      value = try PortableValue.value(tree)
    } catch let problem as FormatProblem {
      throw Failure(.format, "the value for key \"\(key)\": \(problem.reason). Nothing was changed.")
    }
    type = try request.optionalText("type").map { text in
      guard let type = SettingType(text) else { throw Failure(.usage, "there is no type \"\(text)\".") }
      return type
    }
    expires = try Self.expiry(request)
    due = try request.optionalText("due").map { text in
      guard let due = DueDate(argument: text)?.date else { throw Failure(.usage, "\"due\" is not a date or a time.") }
      return due
    }
  }

  /// A version that must hold; nil if the request names none.
  ///
  /// null is no such version: it is what a client writes that does not know the version, and the change must not be unconditional then.
  private static func version(_ name: String, _ request: JSONMembers) throws -> CommitNumber? {
    guard request[name] != .null else { throw Failure(.usage, "\"\(name)\" is not an integer.") }
    return try request.integer(name)
  }

  private static func expiry(_ request: JSONMembers) throws -> Date? {
    let date = try request.date("expiresAt")
    guard let text = try request.optionalText("expiresIn") else {
      if let date, date <= Date() { throw Failure(.usage, "\"expiresAt\" is in the past.") }
      return date
    }
    guard date == nil else { throw Failure(.usage, "give \"expiresIn\" or \"expiresAt\", not both.") }
    guard let time = Lifetime(argument: text) else {
      throw Failure(.usage, "\"expiresIn\" is not a time, as in 90s, 2h or 30d.")
    }
    return Date(timeIntervalSinceNow: Double(time.seconds))
  }

  // MARK: - In a transaction

  /// Whether the key has another version than the expected one, or is in another store.
  ///
  /// - Throws: ``Failure`` with the status `notFound` if the environment does not exist.
  func isConflict(_ transaction: borrowing ReadWriteTransaction) throws -> Bool {
    _ = try place.inForce(transaction)
    if let store, transaction.session.storeID != store { return true }
    guard let ifVersion else { return false }
    return try transaction.version(forKey: key, inCollection: place.name) != ifVersion
  }

  /// Makes the change.
  func make(_ transaction: borrowing ReadWriteTransaction) throws {
    guard let value else { return try transaction.removeObject(forKey: key, inCollection: place.name) }
    let rules = transaction.session.settingRules
    if isUndeclaredAllowed { transaction.session.settingRules?.allowsUndeclared = true }
    defer { if isUndeclaredAllowed { transaction.session.settingRules = rules } }
    // Checked even if nothing would be set.
    try transaction.requireUnlocked(forKey: key, inCollection: place.name)
    try transaction.setObject(
      typed(value, transaction), forKey: key, inCollection: place.name, expires: expires, due: due)
  }

  /// The value as the named type, or else as the declared one; without either, as `prefs import` takes it.
  private func typed(_ value: Value, _ transaction: borrowing ReadWriteTransaction) throws -> Value {
    guard let type = try type ?? transaction.declaration(forKey: key, inCollection: place.name)?.type else {
      guard [.int, .string].contains(value.kind) else { return value }
      // A number stays a double, and text in the place of a secret is one.
      let kind = try KeyReference(key, in: place).presentKind(transaction)
      if kind == .double, value.kind == .int { return Self.value(value, as: .double) ?? value }
      if kind == .secret, case .string(let text) = value { return try secret(text) }
      return value
    }
    if type == .secret, case .string(let text) = value { return try secret(text) }
    if let typed = Self.value(value, as: type) { return typed }
    // What is wrong with a declared one, the store says.
    guard self.type != nil else { return value }
    throw Failure(.format, "the value for key \"\(key)\" is not of type \(type). Nothing was changed.")
  }

  /// nil if it is not of this type.
  private static func value(_ value: Value, as type: SettingType) -> Value? {
    // JavaScript writes 5.0 as 5.
    if type == .double, case .int = value { return type.value(plain: value) }
    return type.accepts(value) ? value : type.value(plain: value)
  }

  private func secret(_ text: String) throws -> Value {
    guard !text.isEmpty else { throw Failure(.format, "a secret must not be empty. Nothing was changed.") }
    return .secret(Secret(text))
  }
}

extension JSONMembers {
  /// The collection that a request names, in the environment that it names.
  ///
  /// - Parameter collection: The one that is meant if it names none.
  func place(in collection: String) throws -> NamedCollection {
    try NamedCollection(
      optionalText("collection") ?? collection, environment: optionalText("env"), isVariable: false)
  }
}
