import Coffer

/// What is wrong with an entry, beside what its setting is declared to be.
package struct SettingFinding {
  package enum Kind: String {
    case unknown, type, limit, deprecated, doubtful
    /// Administrators' locks for several applications differ.
    case disagreement
    /// An administrator's value under one of two names.
    case name

    /// Whether it has to be mended.
    var isFailure: Bool { ![.deprecated, .doubtful].contains(self) }
  }

  let collection: String
  let key: String
  package let kind: Kind
  /// The rest of the sentence that begins with its name.
  package let text: String
  /// The declared key that it may have been meant to be.
  var near: String?

  /// The whole sentence.
  var sentence: String { "\(KeyText.of(key, in: collection)) \(text)" }

  /// What is wrong with a stored entry of a collection for which settings are declared.
  ///
  /// - Parameters:
  ///   - place: Where the value is, if it is an administrator's.
  ///   - suggestsNames: Whether a name that is not declared is compared with those that are.
  ///   - value: Reads its value; asked for only where a declaration says what that is to be.
  package static func all(
    of key: String, in collection: String, _ declared: DeclaredKeys, isSealed: Bool,
    place: String? = nil, suggestsNames: Bool = true, value: () throws -> Value?
  ) rethrows -> [SettingFinding] {
    func finding(_ kind: Kind, _ text: String, near: String? = nil) -> SettingFinding {
      SettingFinding(
        collection: collection, key: key, kind: kind, text: (place.map { "in \($0) " } ?? "") + text, near: near)
    }
    guard let setting = declared.setting(key, in: collection) else {
      let near = suggestsNames ? declared.near(key, in: collection) : nil
      let text = suggestsNames ? declared.absence(of: key, in: collection) : "not declared."
      return [finding(.unknown, "is \(text)", near: near)]
    }
    let declaration = setting.declaration
    var findings: [SettingFinding] = []
    if place == nil, let reason = declaration.deprecated {
      findings.append(finding(.deprecated, "is deprecated: \(reason)"))
    }
    let showsValue = !isSealed && !declared.isSecret(key, in: collection)
    func problem(of value: Value, by declaration: Declaration, _ end: String) -> SettingFinding? {
      declaration.problem(of: value, showsValue: showsValue).map {
        finding(declaration.type.accepts(value) ? .limit : .type, "must be \($0)\(end)")
      }
    }
    guard let value = try value() else { return findings }
    let common = problem(of: value, by: declaration, ".")
    guard let own = setting.overruled else { return findings + (common.map { [$0] } ?? []) }
    let local = problem(of: value, by: own.declaration, ", as \(own.owner) declares it on this host.")
    // An administrator of this host speaks to its programs, and where they take a value, no other host's declaration lifts its lock.
    if place != nil, local == nil, let common {
      let text =
        "\(common.text.dropLast()), as \(setting.ownerText) declares it in a fleet; \(own.owner) on this host takes it."
      return findings + [SettingFinding(collection: collection, key: key, kind: .disagreement, text: text)]
    }
    return findings + [place == nil ? common : nil, local].compactMap(\.self)
  }
}
