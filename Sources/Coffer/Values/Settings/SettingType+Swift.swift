extension SettingType {
  /// The type of a setting whose values are `Object`s, and the limits that the type implies: the range of a small integer,
  /// the cases of an enumeration.
  static func of<Object>(_ object: Object.Type) -> (type: SettingType, limits: [SettingLimit]) {
    if let wrapping = object as? any OptionalType.Type { return wrapping.wrappedSettingType }
    if let convertible = object as? any ValueConvertible.Type { return convertible.settingType }
    if let representable = object as? any RawRepresentable.Type, let raw = rawType(of: representable) {
      return (raw.type, choices(of: object).map { [.choices($0)] } ?? raw.limits)
    }
    return (.json, [])
  }

  private static func rawType<Object: RawRepresentable>(
    of object: Object.Type
  ) -> (type: SettingType, limits: [SettingLimit])? {
    (Object.RawValue.self as? any ValueConvertible.Type)?.settingType
  }

  private static func choices(of object: Any.Type) -> [Value]? {
    func values<Object: CaseIterable>(_ object: Object.Type) -> [Value]? {
      let values = object.allCases.compactMap { item -> Value? in
        guard let representable = item as? any RawRepresentable else { return nil }
        return (representable.rawValue as? any ValueConvertible)?.value
      }
      return values.count == object.allCases.count ? values : nil
    }
    return (object as? any CaseIterable.Type).flatMap { values($0) }
  }
}

private protocol OptionalType {
  static var wrappedSettingType: (type: SettingType, limits: [SettingLimit]) { get }
}

extension Optional: OptionalType {
  fileprivate static var wrappedSettingType: (type: SettingType, limits: [SettingLimit]) {
    SettingType.of(Wrapped.self)
  }
}
