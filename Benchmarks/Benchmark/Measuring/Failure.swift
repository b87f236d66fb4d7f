/// Why a measurement cannot be had.
struct Failure: Error, CustomStringConvertible {
  let reason: String

  var description: String { reason }
}

/// Throws when a measurement measured something else than it should have: a value was not there, or not the newest.
func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
  guard condition else { throw Failure(reason: what()) }
}
