import Coffer

extension SettingFinding {
  /// What administrators give to only one of the names of a renamed setting: programs that use the other do not find it.
  static func ofNames(_ transaction: borrowing some Reading & ~Copyable) throws -> [SettingFinding] {
    let renamed = Set(try transaction.renames().flatMap { [$0.current.collection, $0.former.collection] })
    return try renamed.sorted().flatMap { collection in
      // Files that cannot be read are a problem of their own.
      guard let effective = try transaction.effectiveSettingsIfReadable(of: collection.string) else {
        return [SettingFinding]()
      }
      return try ofNames(in: collection.string, effective, transaction)
    }
  }

  private static func ofNames(
    in collection: String, _ effective: EffectiveSettings, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [SettingFinding] {
    try effective.managedKeys.flatMap { key in
      try transaction.otherNames(ofKey: key, inCollection: collection).flatMap { other in
        let others = try transaction.effectiveSettings(of: other.collection.string)
        let name = other.key.string
        func finding(_ own: EffectiveSettings.Managed?, _ other: EffectiveSettings.Managed?, _ text: String)
          -> SettingFinding?
        {
          guard let own, other == nil else { return nil }
          return SettingFinding(collection: collection, key: key, kind: .name, text: "in \(own.place) \(text)")
        }
        let isConverted = try transaction.renames().contains { $0.isConverted && $0.names(other) }
        func difference(_ own: EffectiveSettings.Managed?, _ given: EffectiveSettings.Managed?) -> SettingFinding? {
          // Each pair once, and not where the names have values of different forms.
          guard let own, let given, SettingPlace(key, in: collection) < other, !isConverted, own.value != given.value
          else { return nil }
          return SettingFinding(
            collection: collection, key: key, kind: .name,
            text: "in \(own.place) has another value than \(other), another name of the setting, in \(given.place).")
        }
        return [
          difference(effective.locked(key), others.locked(name)),
          difference(effective.managedDefault(key), others.managedDefault(name)),
          finding(
            effective.locked(key), others.locked(name),
            "is locked, but \(other), another name of the setting, is not. Lock it, too."),
          finding(
            effective.managedDefault(key), others.managedDefault(name) ?? others.locked(name),
            "has a default, but \(other), another name of the setting, has none. Give it one, too."),
        ].compactMap(\.self)
      }
    }
  }
}
