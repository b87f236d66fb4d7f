import Coffer
import PrefsCommands

/// Changes that the program has prepared, for a page to show before it makes them: those of a file, or the way back to a moment.
struct ChangePlan: Sendable {
  /// A change with what the page shows of it.
  struct Entry: Sendable {
    let change: SettingChange
    /// The values in a line, with secrets by their length; nil for none.
    let before: String?
    let after: String?
    /// Why it cannot be made, as a sentence.
    var problem: String?

    fileprivate var json: String {
      JSONText.object([
        ("collection", JSONText.quoted(change.collection)), ("key", JSONText.quoted(change.key)),
        ("before", before.map(JSONText.quoted) ?? "null"), ("after", after.map(JSONText.quoted) ?? "null"),
        ("problem", problem.map(JSONText.quoted) ?? "null"),
      ])
    }
  }

  let entries: [Entry]
  /// What else there is to know, as sentences.
  let notes: [String]

  /// How many changes a page shows.
  private static let shownEntries = 500

  /// - Parameter number: nil if it cannot be made.
  fileprivate func json(_ number: Int64?) -> String {
    // Problems first: they are why it cannot be made.
    let shown = (entries.filter { $0.problem != nil } + entries.filter { $0.problem == nil }).prefix(Self.shownEntries)
    return JSONText.object([
      ("plan", number.map { "\($0)" } ?? "null"), ("count", "\(entries.count)"),
      ("changes", JSONText.array(shown.map(\.json))), ("notes", JSONText.array(notes.map(JSONText.quoted))),
    ])
  }
}

/// The plans that pages have been shown.
struct ChangePlans: Sendable {
  private var plans: [(number: Int64, plan: ChangePlan)] = []
  private var last: Int64 = 0
  /// The maximum number of them: each keeps values in memory.
  private static let limit = 4

  func plan(_ number: Int64) -> ChangePlan? { plans.first { $0.number == number }?.plan }

  /// Keeps a plan, if it can be made.
  ///
  /// - Returns: What the page shows.
  mutating func add(_ plan: ChangePlan) -> String {
    guard !plan.entries.isEmpty, plan.entries.allSatisfy({ $0.problem == nil }) else { return plan.json(nil) }
    last += 1
    plans = plans.suffix(Self.limit - 1) + [(last, plan)]
    return plan.json(last)
  }

  mutating func drop(_ number: Int64) { plans.removeAll { $0.number == number } }
}

extension PageStore {
  /// Makes the changes of a plan in one transaction.
  ///
  /// - Throws: ``ChangeConflict`` if one of the settings is no longer what the plan was made for.
  func apply(_ request: PageRequest) throws -> String {
    guard let number = try request.integer("plan"), let plan = plans.withLock({ $0.plan(number) }) else {
      throw Failure(.notFound, "this preview is no longer kept. Make it again; nothing was changed.")
    }
    let entries = try make(plan.entries.map(\.change))
    plans.withLock { $0.drop(number) }
    return try answer(entries, describes: false)
  }

  private static let lineLength = 300

  /// A value in a line, with secrets and sealed values by their kind or length.
  ///
  /// - Parameter isSealed: Whether the collection is sealed in the transaction that has read the value: the list may not know yet.
  func line(
    _ value: Value?, _ key: String, _ collection: String, isSealed: Bool, _ reader: SettingReader
  ) -> String? {
    guard let value else { return nil }
    let isSecret = reader.declared.isSecret(key, in: collection)
    let shown = Redaction(reveals: false).shown(value, isSealed: isSealed, isSecret: isSecret)
    return String(ValueText.text(shown).prefix(Self.lineLength))
  }
}
