extension Key {
  /// A limit on the values of a typed key, beyond their type.
  ///
  /// ```swift
  /// extension Keys {
  ///   static let port = Key("http.port", default: 8080, limits: .range(1...65535))
  ///   static let name = Key("name", default: "x", limits: .notEmpty, .count(...20))
  ///   static let lines = Key("lines", default: 2, limits: .satisfying("an even number") { $0.isMultiple(of: 2) })
  /// }
  /// ```
  public struct Limit: Sendable {
    /// The limit in the form that tools use.
    package let limit: SettingLimit
    let allows: @Sendable (Object) -> Bool

    /// A condition that a closure checks.
    ///
    /// Only the program can check it, not a tool.
    ///
    /// - Parameter words: Completes the sentence "the value must be …": `an even number`.
    public static func satisfying(_ words: String, _ allows: @escaping @Sendable (Object) -> Bool) -> Limit {
      Limit(limit: .described(words), allows: allows)
    }

    fileprivate static func ofValue(_ limit: SettingLimit) -> Limit {
      Limit(limit: limit) { object in
        guard let value = (try? ValueCoder.encode(object)).flatMap({ try? Value($0) }) else { return true }
        return limit.allows(value)
      }
    }
  }
}

extension Key.Limit where Object: Comparable {
  /// From the lower to the upper bound, inclusive.
  public static func range(_ range: ClosedRange<Object>) -> Self {
    bounded(range.lowerBound, range.upperBound) { range.contains($0) }
  }

  /// The bound or more.
  public static func range(_ range: PartialRangeFrom<Object>) -> Self {
    bounded(range.lowerBound, nil) { range.contains($0) }
  }

  /// The bound or less.
  public static func range(_ range: PartialRangeThrough<Object>) -> Self {
    bounded(nil, range.upperBound) { $0 <= range.upperBound }
  }

  private static func bounded(
    _ lower: Object?, _ upper: Object?, _ allows: @escaping @Sendable (Object) -> Bool
  ) -> Self {
    let (minimum, maximum) = (lower.flatMap(value), upper.flatMap(value))
    if (minimum == nil) == (lower == nil), (maximum == nil) == (upper == nil) {
      return Self(limit: .range(minimum: minimum, maximum: maximum), allows: allows)
    }
    // Tools do not know the order of a type of the program's own.
    let words = [lower.map { "\($0) or more" }, upper.map { "\($0) or less" }].compactMap(\.self)
    return Self(limit: .described(words.joined(separator: " and ")), allows: allows)
  }

  private static func value(_ bound: Object) -> Value? {
    Value(plain: bound) ?? (bound as? any ValueConvertible)?.value
  }
}

extension Key.Limit where Object: Equatable {
  /// One of these values; a `CaseIterable` enumeration with raw values has this limit automatically.
  public static func choices(_ choices: Object...) -> Self {
    let values = choices.compactMap { choice in
      Value(plain: choice) ?? (try? ValueCoder.encode(choice)).flatMap { try? Value($0) }
    }
    return Self(limit: .choices(values)) { choices.contains($0) }
  }
}

extension Key.Limit where Object: Collection {
  /// Not empty.
  public static var notEmpty: Self { count(1...) }

  /// The number of Unicode scalars of a text, bytes of data, or elements of a list or a dictionary.
  ///
  /// - Parameter range: `2...5`, `1...` or `...20`.
  public static func count(_ range: some RangeExpression<Int> & Sendable) -> Self {
    counting(range) { Object.self == String.self ? ($0 as? String)?.unicodeScalars.count ?? 0 : $0.count }
  }
}

extension Key.Limit where Object == Secret {
  /// Not empty.
  public static var notEmpty: Self { count(1...) }

  /// The number of bytes.
  ///
  /// - Parameter range: `2...5`, `1...` or `...20`.
  public static func count(_ range: some RangeExpression<Int> & Sendable) -> Self { counting(range) { $0.count } }
}

extension Key.Limit {
  fileprivate static func counting(
    _ range: some RangeExpression<Int> & Sendable, _ count: @escaping @Sendable (Object) -> Int
  ) -> Self {
    let bounds = range.relative(to: 0..<Int.max)
    let maximum = bounds.upperBound == .max ? nil : bounds.upperBound - 1
    return Self(limit: .count(minimum: bounds.lowerBound, maximum: maximum)) { range.contains(count($0)) }
  }
}

extension Key.Limit where Object == String {
  /// Text that a regular expression matches completely.
  ///
  /// The syntax is that of JSON Schema and JavaScript (ECMA-262, with the flag `u`), without groups that look around or are
  /// referred to; `\d` is `0` to `9`. A pattern has at most 2,000 characters and 32 groups in each other, and 10,000 parts if
  /// its repetitions are written out. A text for which the comparison takes more than ten million steps does not match. A key with
  /// another pattern ends the program when it is first used, with a message that names the key.
  public static func pattern(_ pattern: String) -> Self { ofValue(.pattern(pattern)) }
}

extension Key.Limit {
  /// The limit for a key of an optional type: nil is always allowed.
  static func optional<Wrapped>(_ limit: Key<Wrapped>.Limit) -> Self where Object == Wrapped? {
    Self(limit: limit.limit) { $0.map(limit.allows) ?? true }
  }
}
