import Foundation

/// A store as someone with its keys could make it, and Coffer would not: its pages and its envelope authenticate.
///
/// ```swift
/// let bench = try CraftingBench(in: scratch.path)
/// try crafted.craft(bench)
/// ```
package struct CraftedStore: Sendable, CustomStringConvertible {
  /// What is crafted, often the statement that does it.
  package let name: String
  /// What `doctor` must say, among other things; nil if it has to find nothing.
  package let finding: String?
  package let craft: @Sendable (CraftingBench) throws -> Void

  package var description: String { name }

  package init(_ name: String, finding: String?, _ craft: @escaping @Sendable (CraftingBench) throws -> Void) {
    self.name = name
    self.finding = finding
    self.craft = craft
  }

  /// A store in which a statement changed the tables past all that Coffer checks.
  init(_ sql: String, finding: String?) {
    self.init(sql, finding: finding) { try $0.execute(sql) }
  }

  /// All of them.
  package static let all = joined(
    itself, values, items, collections, history, changes, vault, declarations, fleets, schema, envelope, header, log,
    beside)

  static func joined(_ groups: [CraftedStore]...) -> [CraftedStore] { groups.flatMap { $0 } }

  /// The store as it was made.
  static let itself: [CraftedStore] = [CraftedStore("nothing", finding: nil) { _ in }]

  /// A statement for each end of what a column of integers can hold, in place of `#`.
  ///
  /// - Parameter harmless: The numbers that do no harm.
  static func ends(_ statement: String, finding: String, harmless: [Int64] = []) -> [CraftedStore] {
    ends.map { number in
      CraftedStore(
        statement.replacingOccurrences(of: "#", with: "\(number)"), finding: harmless.contains(number) ? nil : finding)
    }
  }

  static let ends: [Int64] = [.max, .min, -1, 0, 1 << 60]
}
