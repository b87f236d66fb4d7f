import Coffer

/// How lists show secret and sealed values.
package struct Redaction {
  /// Whether everything is shown as plaintext.
  package let reveals: Bool

  package init(reveals: Bool) { self.reveals = reveals }

  /// The value to show: a secret's length, a sealed value's kind.
  ///
  /// - Parameter isSecret: Whether its setting is declared as a secret; the value may be text that was set before.
  package func shown(_ value: Value, isSealed: Bool, isSecret: Bool = false) -> Value {
    if reveals { return ValueText.revealed(value) }
    if isSealed { return .string(Self.sealed) }
    return isSecret && value.kind != .secret ? .string(Self.secret(byteCount: ValueText.bytes(value).count)) : value
  }

  /// What stands for the value of a secret.
  static func secret(byteCount: Int) -> String { "<secret: \(byteCount) bytes>" }

  /// The placeholder of a sealed value that was not opened.
  package static func sealed(byteCount: Int) -> Value { .string("<sealed: \(byteCount) bytes>") }

  /// The name of its type.
  func kind(_ value: Value, isSealed: Bool) -> Value.Kind {
    isSealed && !reveals ? .sealed : value.kind
  }

  /// Why an item is not written where its reader would take what stands for it for the value.
  static func refusal(_ key: String, _ collection: String, _ kind: Value.Kind) -> Failure {
    Failure(
      .refused,
      "key \"\(key)\" in \(DisplayText.collection(collection)) is \(kind.name), and this format has no placeholder for it; "
        + "nothing was written. Give --reveal to write it.")
  }

  /// What stands for a value of a sealed collection.
  static let sealed = "<sealed>"

  /// Whether a text is what stands for a secret or a sealed value.
  static func isPlaceholder(_ text: String) -> Bool {
    if text == sealed { return true }
    let (start, end) = ("<secret: ", " bytes>")
    guard text.hasPrefix(start), text.hasSuffix(end), text.utf8.count > start.utf8.count + end.utf8.count else {
      return false
    }
    return text.utf8.dropFirst(start.utf8.count).dropLast(end.utf8.count).allSatisfy { (0x30...0x39).contains($0) }
  }
}
