import CofferCrypto

/// The settings of a program, declared together.
///
/// ```swift
/// extension Keys {
///   static let theme = Key("theme", default: Theme.light, summary: "How the window looks")
///   static let size = Key("size", in: "editor", default: 12, limits: .range(6...72), summary: "Size of the text, in points")
/// }
///
/// let settings = Settings(version: "2.1") {
///   Keys.theme
///   Keys.size
///   Network.settings  // of a module, declared in the same way
/// }
/// Preferences.standard = try Preferences.open(application: "org.example.editor", declaring: settings)
/// ```
public struct Settings: Sendable {
  /// The version of the program, compared number by number.
  ///
  /// If an older and a newer version of a program use one store, the declarations of the newer one stay.
  package let version: String?
  /// How long the program may run after it has opened a store, in milliseconds.
  let runTime: Int64
  /// Whether to end the former names that no older version can use any more.
  let contracts: Bool
  /// The keys.
  public let keys: [Keys]

  /// Combines keys, and settings of modules.
  ///
  /// - Parameters:
  ///   - version: The version of the program, compared number by number. An older and a newer version may use one store at the
  ///     same time, see <doc:ChangingSettings>.
  ///   - mayRunFor: How long this version may still run after it has opened a store; so long a newer one keeps the former names
  ///     of settings for it. By default 30 days.
  ///   - contracts: Whether declaring the settings ends the former names that no older version can use any more, as
  ///     `prefs schema contract` does.
  public init(
    version: String? = nil, mayRunFor: Duration = .seconds(30 * 86_400), contracts: Bool = false,
    @SettingsBuilder _ keys: () -> [Keys]
  ) {
    self.version = version
    runTime = max(0, min(mayRunFor.components.seconds, 1 << 40) * 1000)
    self.contracts = contracts
    self.keys = keys()
  }

  /// Identifies these declarations.
  ///
  /// Each opening computes it.
  func fingerprint(of application: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(128 * keys.count)
    bytes.append(counted: application)
    bytes.append(counted: version ?? "")
    for key in keys { key.appendFingerprint(to: &bytes) }
    return try bytes.withUnsafeBytes(SHA256.digest)
  }

  /// The declarations, one for each setting.
  ///
  /// - Parameter application: The collection of keys that don't name one.
  /// - Throws: `CofferError.conflictingDeclarations` when a setting is declared in two ways, `.malformedSettings` when a
  ///   declaration is invalid.
  package func declarations(of application: String) throws -> [Declaration] {
    var seen: [ByteString: [ByteString: Declaration]] = [:]
    var declarations: [Declaration] = []
    for key in keys {
      let declaration = key.declaration(in: application)
      try declaration.check()
      let collection = ByteString(declaration.collection)
      if let other = seen[collection]?[ByteString(declaration.name)] {
        guard other == declaration else { throw CofferError.conflicting(declaration, application, other, application) }
        continue
      }
      seen[collection, default: [:]][ByteString(declaration.name)] = declaration
      declarations.append(declaration)
    }
    return declarations
  }
}

/// Combines the keys of ``Settings``.
@resultBuilder public enum SettingsBuilder {
  /// One key.
  public static func buildExpression(_ key: Keys) -> [Keys] { [key] }
  /// Several keys.
  public static func buildExpression(_ keys: [Keys]) -> [Keys] { keys }
  /// The settings of a module.
  public static func buildExpression(_ settings: Settings) -> [Keys] { settings.keys }
  /// Several statements in sequence.
  public static func buildBlock(_ keys: [Keys]...) -> [Keys] { keys.flatMap { $0 } }
  /// The keys of an `if`.
  public static func buildOptional(_ keys: [Keys]?) -> [Keys] { keys ?? [] }
  /// The keys of an `if` with an `else`.
  public static func buildEither(first keys: [Keys]) -> [Keys] { keys }
  /// The keys of an `else`.
  public static func buildEither(second keys: [Keys]) -> [Keys] { keys }
  /// The keys of a `for`.
  public static func buildArray(_ keys: [[Keys]]) -> [Keys] { keys.flatMap { $0 } }
}

extension CofferError {
  /// The error for two incompatible declarations of one setting.
  static func conflicting(
    _ one: Declaration, _ application: String, _ other: Declaration, _ otherApplication: String
  ) -> CofferError {
    .conflictingDeclarations(
      setting: KeyText.of(one.name, in: one.collection), first: "\(otherApplication): \(other.outline)",
      second: "\(application): \(one.outline)")
  }
}

extension Declaration {
  /// Type, default and limits in one line.
  var outline: String {
    ([type.description] + limits.map(\.words) + [defaultValue.map { "default \($0.shortText)" } ?? "no default"])
      .joined(separator: ", ")
  }
}

extension [UInt8] {
  /// Appends text and a byte that no UTF-8 has, so that its end is unambiguous.
  mutating func append(counted text: String) {
    append(contentsOf: text.utf8)
    append(0xff)
  }
}
