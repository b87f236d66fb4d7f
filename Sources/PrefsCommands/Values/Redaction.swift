import Coffer

/// What lists show of values that are not for every eye.
struct Redaction {
  /// Whether everything is shown in clear.
  let reveals: Bool

  /// The value to show: a secret as its length, a sealed one by its kind alone.
  func shown(_ value: Value, isSealed: Bool) -> Value {
    if reveals { return ValueText.revealed(value) }
    if isSealed { return .string("<sealed>") }
    return value
  }

  /// What stands for a sealed value that was not opened.
  static func sealed(byteCount: Int) -> Value { .string("<sealed: \(byteCount) bytes>") }

  /// The word for its type.
  func kind(_ value: Value, isSealed: Bool) -> Value.Kind {
    isSealed && !reveals ? .sealed : value.kind
  }
}
