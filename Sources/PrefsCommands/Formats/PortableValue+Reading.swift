import Coffer

extension PortableValue {
  /// Decodes a tree.
  ///
  /// - Throws: ``FormatProblem``.
  package static func value(_ tree: Value) throws -> Value {
    if case .data = tree { return URLArchive.unwrapped(tree) }
    let value = try reading { try MarkedValue.value(tree) }
    guard value != .null else {
      throw FormatProblem("null is not a value; leave the key out, or write \"\" for empty text")
    }
    return value
  }

  /// The date that a text represents; nil for another text.
  ///
  /// - Throws: ``FormatProblem`` for one with more digits than a date holds.
  package static func date(_ text: String) throws -> Value? { try reading { try MarkedValue.date(text) } }

  private static func reading<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as ValueCodingError { throw FormatProblem(error.reason) }
  }
}
