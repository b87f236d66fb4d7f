import ArgumentParser
import Coffer

/// The command `prefs increment`.
struct IncrementCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "increment",
    abstract: "Add to a number, and print the sum.",
    discussion: """
      N is added to the value that `prefs get` prints, which may be a default. A key without a value counts as 0, and becomes an \
      integer, or a double if N has a point or --double is given. A number keeps its type; a sum out of its range is refused with exit code 8. Concurrent increments each get a distinct \
      result. Metadata, expiry and due date stay.

      Examples:
        prefs increment visits
        prefs increment stock/apples -12
        prefs increment ratio 0.25
      """)

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var key: String

  @Argument(help: ArgumentHelp("What to add.", valueName: "n"))
  var step = "1"

  @Flag(help: "How to read N.")
  var type: NumberType?

  @OptionGroup var declared: DeclaredOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  /// The types of numbers.
  enum NumberType: String, EnumerableFlag {
    case int, double
  }

  mutating func run() throws {
    let reference = try common.referenceToSet(key)
    let session = try CommandSession(
      common, in: reference.certainPlaces, force: declared.force, undeclared: declared.undeclared)
    let step = try readStep()
    let (sum, notes) = try session.writeCreating(reference) { transaction, reference in
      let present = try transaction.itemInForce(reference)
      do {
        let sum = try Sum.of(present.found?.value ?? Sum.zero(like: step), step)
        try transaction.setKeepingRest(sum, forKey: reference.key, inCollection: reference.collection)
        return (sum, present.notes)
      } catch let failure as Failure {
        throw Failure(failure.status, "the value for key \"\(reference.key)\": \(failure.message) Nothing was changed.")
      }
    }
    for note in notes { common.note(note) }
    try StandardOutput.report(ValueText.text(sum) + "\n", of: "the sum is saved")
  }

  private func readStep() throws -> Value {
    let bytes = Array(CommandArguments.value(step).utf8)
    func read(_ type: ValueType) throws -> Value { try ValueReader(type: type, encoding: .raw).value(bytes) }
    switch type {
    case .int: return try read(.int)
    case .double: return try read(.double)
    case nil:
      if let integer = try? read(.int) { return integer }
      guard let double = try? read(.double) else {
        throw Failure(.format, "N is not a number. Examples: 5, -1, 0.25. Nothing was changed.")
      }
      return double
    }
  }
}
