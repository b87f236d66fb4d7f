/// When a program applies a change.
public enum SettingEffect: String, Sendable, CaseIterable {
  /// Immediately.
  case immediate
  /// At the next start of the program.
  case restart
}

/// A setting as its program declared it, in the form that is stored and that tools read.
package struct Declaration: Hashable, Sendable {
  /// The collection of the setting.
  package var collection: String
  /// The name of the setting.
  package var name: String
  /// The type of its values.
  package var type: SettingType
  /// The value when nothing is set; nil for none.
  package var defaultValue: Value?
  /// The limits on values, beyond their type.
  package var limits: [SettingLimit] = []
  /// What it is for, in one line.
  package var summary = ""
  /// When a change takes effect.
  package var effect = SettingEffect.immediate
  /// The version of the program that introduced it.
  package var since: String?
  /// What to use instead, or why it will go; nil while it is in use.
  package var deprecated: String?
  /// Whether all suites share the collection, instead of having their own.
  package var isShared = false
  /// The setting's former names.
  package var formerNames: [FormerName] = []
  /// The new name, if the declaration is kept only for an older version of the program.
  package var renamed: SettingPlace?

  /// A former name of a setting.
  package struct FormerName: Hashable, Sendable {
    package var place: SettingPlace
    /// Whether only the program can convert the values.
    package var isConverted = false

    package init(place: SettingPlace, isConverted: Bool = false) {
      (self.place, self.isConverted) = (place, isConverted)
    }
  }

  /// The setting by its names.
  package var place: SettingPlace { SettingPlace(name, in: collection) }

  /// Whether suites have a part of the collection for themselves, `SUITE/COLLECTION`.
  ///
  /// They have none of a collection that all share. The application's own settings are in the suite's own collection instead, which
  /// only programs know for one of a suite.
  ///
  /// - Parameter application: The one that declares the setting.
  package func hasSuites(of application: String) -> Bool {
    !isShared && ByteString(collection) != ByteString(application)
  }

  /// Declares a setting.
  package init(
    _ name: String, in collection: String, type: SettingType, default defaultValue: Value? = nil,
    limits: [SettingLimit] = []
  ) {
    self.collection = collection
    self.name = name
    self.type = type
    self.defaultValue = defaultValue
    self.limits = limits
  }

  /// Why the setting may not have a value, as the rest of the sentence "the value must be …"; nil if it may.
  ///
  /// - Parameter showsValue: Whether the sentence may include the value: not for a sealed collection.
  package func problem(of value: Value, showsValue: Bool = true) -> String? {
    guard type.accepts(value) else { return "of type \(type), not \(value.kind.name)" }
    return limits.first { !$0.allows(value) }?.refusal(of: showsValue ? value : nil)
  }

  /// Whether both are of one setting.
  func isSameSetting(as other: Declaration) -> Bool { place == other.place }

  /// Whether programs may declare the setting in both ways: types, defaults and limits have to be the same.
  package func agrees(with other: Declaration) -> Bool {
    type == other.type && defaultValue == other.defaultValue && limits == other.limits && isShared == other.isShared
  }
}
