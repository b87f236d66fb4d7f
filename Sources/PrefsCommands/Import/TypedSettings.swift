import Coffer
import CofferMaintenance

/// The settings of a file with the types that they have in a store.
///
/// Text is read as its setting's declared type, as `prefs set` reads it, and as a secret in the place of one. The values of `.env`
/// files, which are all text, are also read as any other type of the existing value.
package struct TypedSettings {
  private let file: ImportedSettings
  private let name: String
  private let force: Bool

  /// - Parameters:
  ///   - name: The name of the file in messages.
  ///   - force: Whether text that is not of its type stays text.
  package init(_ file: ImportedSettings, named name: String, force: Bool) {
    (self.file, self.name, self.force) = (file, name, force)
  }

  /// The most settings that a message names.
  private static let shownProblems = 20

  /// - Throws: ``Failure`` with the status `format` that names the settings whose text is not of its type.
  package func all(as transaction: borrowing some Reading & ~Copyable) throws -> [ImportedSetting] {
    var problems: [String] = []
    var typed: [ImportedSetting] = []
    for setting in try file.isText ? withKeysOfVariables(transaction) : file.settings {
      let reference = KeyReference(setting.key, collection: setting.collection)
      let declaration = try transaction.declaration(forKey: setting.key, inCollection: setting.collection)
      let kind = declaration == nil || setting.value == nil ? try reference.presentKind(transaction) : nil
      if setting.value == nil, !force, let kind, ![.secret, .sealed].contains(kind), declaration?.type != .secret,
        try !transaction.isSealed(collection: setting.collection)
      {
        problems.append(
          "key \"\(setting.key)\": the file hides a secret here, and the existing value is no secret. Write the value, or leave "
            + "the line out.")
        continue
      }
      var value = setting.value
      do {
        if let given = setting.value { value = try self.value(given, declaration, kind) }
      } catch let failure as Failure where failure.status == .format {
        let why =
          declaration.map { "It is declared as \($0.type)." } ?? "The existing value has type \(kind?.name ?? "")."
        if !force {
          problems.append("key \"\(setting.key)\": \(failure.message) \(why)")
          continue
        }
      }
      typed.append(ImportedSetting(collection: setting.collection, key: setting.key, value: value))
    }
    guard problems.isEmpty else {
      // With all that may not be set for other reasons, which would be said next.
      problems += try typed.compactMap { try refusal(of: $0, transaction) }
      let rest = problems.count - Self.shownProblems
      let shown = Array(problems.prefix(Self.shownProblems)) + (rest > 0 ? ["and \(rest) more."] : [])
      let way = "Nothing was changed; --force takes the values as they are."
      guard shown.count > 1 else { throw Failure(.format, "\(name): \(shown[0]) \(way)") }
      throw Failure(.format, "\(name):", details: shown + [way])
    }
    return typed
  }

  /// Why a setting may not be set, though it is of its type; nil if it may.
  private func refusal(
    of setting: ImportedSetting, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> String? {
    guard let value = setting.value else { return nil }
    do {
      try transaction.requireSettable(value, forKey: setting.key, inCollection: setting.collection)
      return nil
    } catch let error as CofferError {
      guard let problem = SettingProblem(error, place: name) else { throw error }
      return problem.sentence
    }
  }

  /// The settings of a file of variables under the keys that are set, declared or an administrator's, if those become the names of these
  /// variables; under the names themselves, if not.
  ///
  /// - Throws: ``Failure`` if two keys become the same name.
  private func withKeysOfVariables(_ transaction: borrowing some Reading & ~Copyable) throws -> [ImportedSetting] {
    let declared = try DeclaredKeys(transaction)
    var known: [ByteString: [String: Set<ByteString>]] = [:]
    var variables: [ByteString: [ByteString: String]] = [:]
    let settings = try file.settings.map { setting in
      let collection = ByteString(setting.collection)
      let keys = try known[collection] ?? Self.keysByVariable(of: setting.collection, declared, transaction)
      known[collection] = keys
      guard let own = keys[setting.key], !own.contains(ByteString(setting.key)) else { return setting }
      guard let key = own.first, own.count == 1 else {
        let names = own.sorted().map { "\"\($0.string)\"" }.joined(separator: " and ")
        throw Failure(
          .format, "\(name): \(setting.key) may be \(names), which are both this variable. Nothing was changed.")
      }
      return ImportedSetting(collection: setting.collection, key: key.string, value: setting.value)
    }
    for (setting, given) in zip(settings, file.settings) {
      let earlier = variables[ByteString(setting.collection), default: [:]]
        .updateValue(given.key, forKey: ByteString(setting.key))
      guard let earlier else { continue }
      throw Failure(
        .format, "\(name): \(earlier) and \(given.key) are both the key \"\(setting.key)\". Nothing was changed.")
    }
    return settings
  }

  private static func keysByVariable(
    of collection: String, _ declared: DeclaredKeys, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [String: Set<ByteString>] {
    var keys: [String: Set<ByteString>] = [:]
    let parent = CollectionEnvironment(collection: collection)?.parent
    for name in [collection] + (parent.map { [$0] } ?? []) {
      let managed = try transaction.effectiveSettings(of: name).managedKeys
      let ofDeclarations = declared.settings(in: name).map(\.declaration.name)
      let known = try transaction.allKeys(inCollection: name) + ofDeclarations + managed
      for key in declared.forVariables(known, in: name) {
        guard let variable = try? EnvironmentFile.name(key) else { continue }
        keys[variable, default: []].insert(ByteString(key))
      }
    }
    return keys
  }

  private func value(_ given: Value, _ declaration: Declaration?, _ kind: Value.Kind?) throws -> Value {
    // Other formats have placeholders, and so no such text.
    if kind == .secret || declaration?.type == .secret, case .string(let text) = given, Redaction.isPlaceholder(text) {
      throw Failure(.format, "the text is what stands for a hidden secret.")
    }
    if let declaration { return try value(given, declared: declaration.type) }
    if kind == .secret, given.kind != .secret {
      guard case .string(let text) = given else { throw Failure(.format, "\(given.kind.name) is no secret.") }
      return try secret(text)
    }
    guard file.isText, let kind, case .string(let text) = given else { return given }
    return try ValueReader(type: ValueType(kind), encoding: .base64).value(Array(text.utf8))
  }

  private func value(_ given: Value, declared type: SettingType) throws -> Value {
    // Text alone, which JSON is not.
    let isText = file.isText && type == .json
    guard case .string(let text) = given, isText || !type.accepts(given) else {
      return type.accepts(given) ? given : type.value(plain: given) ?? given
    }
    if type == .secret { return try secret(text) }
    // Only formats without types have numbers and booleans as text.
    guard file.isText else { return type.value(plain: given) ?? given }
    return try ValueReader(type: ValueType(type), encoding: .base64).value(Array(text.utf8), type)
  }

  private func secret(_ text: String) throws -> Value {
    guard !text.isEmpty else { throw Failure(.format, "a secret must not be empty.") }
    return .secret(Secret(text))
  }
}
