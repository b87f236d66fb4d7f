/// A setting as its program declared it: data that the store keeps and tools read.
public struct Declaration: Hashable, Sendable {
  /// When a program acts upon a change.
  public enum Effect: String, Sendable, CaseIterable {
    /// As soon as it is made.
    case immediate
    /// When the program starts the next time.
    case restart
  }

  /// The collection of the setting.
  public var collection: String
  /// The name of the setting.
  public var name: String
  /// The type of its values.
  public var type: SettingType
  /// What is read where nothing is set; nil for nothing.
  public var defaultValue: Value?
  /// What a value has to be, beyond its type.
  public var limits: [SettingLimit] = []
  /// What it is for, in a line.
  public var summary = ""
  /// When a change takes effect.
  public var effect = Effect.immediate
  /// The version of the program that has it first.
  public var since: String?
  /// What to use instead of it, or why it will go; nil as long as it is in use.
  public var deprecated: String?
  /// Whether the collection is the same one for all suites, and none of a suite's own.
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

  /// Why a value may not be the setting's, as the rest of the sentence "the value is …"; nil when it may.
  ///
  /// - Parameter showsValue: Whether the value may be in the sentence: not one of a sealed collection.
  public func problem(of value: Value, showsValue: Bool = true) -> String? {
    guard type.accepts(value) else { return "of type \(type), not \(value.kind.name)" }
    return limits.first { !$0.allows(value) }?.refusal(of: showsValue ? value : nil)
  }

  /// Whether programs that declare the setting in both ways get along: not with other types, defaults or limits.
  func agrees(with other: Declaration) -> Bool {
    type == other.type && defaultValue == other.defaultValue && limits == other.limits && isShared == other.isShared
  }
}
