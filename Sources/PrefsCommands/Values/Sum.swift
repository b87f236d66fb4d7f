import Coffer

/// Exact sums of stored numbers.
enum Sum {
  static func zero(like number: Value) -> Value {
    if case .double = number { .double(0) } else { .int(0) }
  }

  /// The sum, of the type of `present`.
  ///
  /// - Throws: ``Failure`` with the status `format` when one is not a number, or the sum does not fit.
  static func of(_ present: Value, _ step: Value) throws -> Value {
    if case .double(let number) = present {
      let step = try double(step)
      let sum = number + step
      guard sum.isFinite || !number.isFinite || !step.isFinite else {
        throw Failure(.format, "the sum is too large for a double.")
      }
      return .double(sum)
    }
    guard let number = integer(present) else {
      throw Failure(.format, "it has type \(present.kind.name), but must be a number.")
    }
    guard let step = integer(step) else {
      throw Failure(.format, "it is an integer, so N must be one of at most 64 bits, too.")
    }
    let sum = number + step
    if let small = Int64(exactly: sum) { return .int(small) }
    guard let large = UInt64(exactly: sum) else {
      throw Failure(.format, "the sum is not an integer from \(Int64.min) to \(UInt64.max).")
    }
    return .uint64(large)
  }

  private static func integer(_ value: Value) -> Int128? {
    switch value {
    case .int(let number): Int128(number)
    case .uint64(let number): Int128(number)
    default: nil
    }
  }

  private static func double(_ value: Value) throws -> Double {
    if case .double(let number) = value { return number }
    guard let number = integer(value) else { throw Failure(.format, "N is not a number.") }
    return Double(number)
  }
}
