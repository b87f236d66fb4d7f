/// Why a measurement failed.
struct Failure: Error, CustomStringConvertible {
  let reason: String

  var description: String { reason }
}

/// Throws if a measurement was invalid: a value was missing, or not the newest.
func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
  guard condition else { throw Failure(reason: what()) }
}
