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

  /// The word for its type.
  func kind(_ value: Value, isSealed: Bool) -> Value.Kind {
    isSealed && !reveals ? .sealed : value.kind
  }
}
