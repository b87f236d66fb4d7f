/// A value that is not what its setting is declared to be, and where it was found.
public struct SettingProblem: Hashable, Sendable, CustomStringConvertible {
  /// The collection of the setting.
  public let collection: String
  /// The name of the setting.
  public let key: String
  /// Where the value was found: `the environment's SHOP_HTTP_PORT`.
  public let place: String
  /// What is wrong.
  ///
  /// It is the rest of the sentence "the value is …": `6 to 72, not 400`. A secret is not in it.
  public let reason: String
  /// Tells the value from another bad one.
  private let valueHash: Int

  /// All of it in a sentence: `editor/size is 6 to 72, not 400 (in the environment's EDITOR_SIZE)`.
  public var description: String { "\(KeyText.of(key, in: collection)) is \(reason) (in \(place))" }
}

extension SettingProblem {
  package init(collection: String, key: String, place: String, reason: String, value: Value? = nil) {
    self.collection = collection
    self.key = key
    self.place = place
    self.reason = reason
    valueHash = value.hashValue
  }
}

/// The bad values that were reported.
struct ReportedProblems {
  private var problems: Set<SettingProblem> = []
  /// So many different ones are not to be expected; a bound for what is kept all the same.
  private static let limit = 10_000

  /// - Returns: Whether it had not been reported.
  mutating func insert(_ problem: SettingProblem) -> Bool {
    if problems.count >= Self.limit { problems.removeAll() }
    return problems.insert(problem).inserted
  }
}
