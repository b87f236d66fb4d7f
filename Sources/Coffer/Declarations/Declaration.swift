/// A setting as its program declared it, in the form that is stored and that tools read.
public struct Declaration: Hashable, Sendable {
  /// When a program applies a change.
  public enum Effect: String, Sendable, CaseIterable {
    /// Immediately.
    case immediate
    /// At the next start of the program.
    case restart
  }

  /// The collection of the setting.
  public var collection: String
  /// The name of the setting.
  public var name: String
  /// The type of its values.
  public var type: SettingType
  /// The value when nothing is set; nil for none.
  public var defaultValue: Value?
  /// The limits on values, beyond their type.
  public var limits: [SettingLimit] = []
  /// What it is for, in one line.
  public var summary = ""
  /// When a change takes effect.
  public var effect = Effect.immediate
  /// The version of the program that introduced it.
  public var since: String?
  /// What to use instead, or why it will go; nil while it is in use.
  public var deprecated: String?
  /// Whether all suites share the collection, instead of having their own.
  public var isShared = false

  /// Declares a setting.
  public init(
    _ name: String, in collection: String, type: SettingType, default defaultValue: Value? = nil,
    limits: [SettingLimit] = []
  ) {
    self.collection = collection
    self.name = name
    self.type = type
    self.defaultValue = defaultValue
    self.limits = limits
  }

  /// Why the setting may not have a value, as the rest of the sentence "the value is …"; nil if it may.
  ///
  /// - Parameter showsValue: Whether the sentence may include the value: not for a sealed collection.
  public func problem(of value: Value, showsValue: Bool = true) -> String? {
    guard type.accepts(value) else { return "of type \(type), not \(value.kind.name)" }
    return limits.first { !$0.allows(value) }?.refusal(of: showsValue ? value : nil)
  }

  /// Whether programs may declare the setting in both ways: types, defaults and limits have to be the same.
  func agrees(with other: Declaration) -> Bool {
    type == other.type && defaultValue == other.defaultValue && limits == other.limits && isShared == other.isShared
  }
}
