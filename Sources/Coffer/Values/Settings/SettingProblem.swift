/// A value that does not match the declaration of its setting, and where it was found.
public struct SettingProblem: Hashable, Sendable, CustomStringConvertible {
  /// The collection of the setting.
  public let collection: String
  /// The name of the setting.
  public let key: String
  /// Where the value was found: `the environment variable SHOP_HTTP_PORT`.
  public let place: String
  /// What is wrong.
  ///
  /// It is the rest of the sentence "the value must be …": `6 to 72, not 400`. It never includes a secret.
  public let reason: String
  /// Distinguishes the value from other bad values.
  private let valueHash: Int

  /// What is wrong: the value, or the setting itself; the sentence is then "the key is …".
  package enum Kind: Sendable {
    case value, undeclared, locked
  }

  package private(set) var kind = Kind.value

  /// The sentence without the place; that of a setting that is not declared has its full stop.
  package var sentence: String { "\(KeyText.of(key, in: collection)) \(kind == .value ? "must be" : "is") \(reason)" }

  /// The complete sentence: `editor/size must be 6 to 72, not 400 (in the environment variable EDITOR_SIZE)`.
  public var description: String { "\(sentence) (in \(place))" }
}

extension SettingProblem {
  package init(collection: String, key: String, place: String, reason: String, value: Value? = nil) {
    self.collection = collection
    self.key = key
    self.place = place
    self.reason = reason
    valueHash = value.hashValue
  }

  /// The problem that an error of setting a value is about; nil if it is another error.
  package init?(_ error: CofferError, place: String) {
    switch error {
    case .invalidValue(let collection, let key, let reason):
      self.init(collection: collection, key: key, place: place, reason: reason)
    case .undeclaredSetting(let collection, let key, let reason):
      self.init(collection: collection, key: key, place: place, reason: reason)
      kind = .undeclared
    case .lockedByAdministrator(let collection, let key, let file):
      self.init(collection: collection, key: key, place: place, reason: "locked by an administrator, in \(file)")
      kind = .locked
    default: return nil
    }
  }
}

/// The bad values that have been reported.
struct ReportedProblems {
  private var problems: Set<SettingProblem> = []
  /// More than ever expected; a safety bound.
  private static let limit = 10_000

  /// - Returns: Whether it is new.
  mutating func insert(_ problem: SettingProblem) -> Bool {
    if problems.count >= Self.limit { problems.removeAll() }
    return problems.insert(problem).inserted
  }
}
