import CofferStorage

/// A value in memory; the most common kinds are decoded.
package enum HeldValue: Sendable {
  case bool(Bool)
  case int(Int64)
  case double(Double)
  case string(String)
  case stored(StoredValue)

  package init(_ stored: StoredValue) {
    let plain = stored.bytes.withUnsafeBytes { Self(plain: stored.kind, $0) }
    self = plain ?? .stored(stored)
  }

  init(kind: Value.Kind, copying bytes: UnsafeRawBufferPointer) {
    self =
      Self(plain: kind, bytes)
      ?? .stored(StoredValue(kind: kind, bytes: StoredBytes(copying: bytes, isSecret: kind == .secret)))
  }

  /// nil for a kind without a case of its own, and for malformed bytes, which fail when they are read.
  private init?(plain kind: Value.Kind, _ bytes: UnsafeRawBufferPointer) {
    switch kind {
    case .bool where bytes.count == 1 && bytes[0] <= 1: self = .bool(bytes[0] == 1)
    case .int where bytes.count == 8: self = .int(Int64(bigEndian: bytes.loadUnaligned(as: Int64.self)))
    case .double where bytes.count == 8:
      self = .double(Double(bitPattern: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))))
    case .string:
      guard let text = String(validating: bytes) else { return nil }
      self = .string(text)
    default: return nil
    }
  }

  /// A value that needs no encoding; nil for other types.
  @inline(__always)
  init?<Object>(unencoded object: Object) {
    let held: HeldValue? = PlainType.match(
      Object.self, int: .int(Int64(PlainType.same(object, as: Int.self))), bool: .bool(PlainType.same(object)),
      double: .double(PlainType.same(object)), string: .string(PlainType.same(object)), otherwise: nil)
    guard let held else { return nil }
    self = held
  }

  /// The value if it is of exactly this type, or else the result of `decode`.
  ///
  /// Not optional: where the compiler does not know `Object`, the optional type would have to be looked up each time.
  @inline(__always)
  func decoded<Object>(
    as type: Object.Type, otherwise decode: (StoredValue) throws -> Object
  ) rethrows -> Object {
    switch self {
    // If an `Int` has 32 bits, the value may not fit.
    case .int(let value) where Object.self == Int.self && Int.bitWidth == 64:
      PlainType.same(Int(truncatingIfNeeded: value))
    case .string(let value) where Object.self == String.self: PlainType.same(value)
    case .bool(let value) where Object.self == Bool.self: PlainType.same(value)
    case .double(let value) where Object.self == Double.self: PlainType.same(value)
    default: try decode(stored)
    }
  }

  /// The value as a ``Value``; nil if it has to be decoded.
  var value: Value? {
    switch self {
    case .bool(let value): .bool(value)
    case .int(let value): .int(value)
    case .double(let value): .double(value)
    case .string(let value): .string(value)
    case .stored: nil
    }
  }

  package var kind: Value.Kind {
    switch self {
    case .bool: .bool
    case .int: .int
    case .double: .double
    case .string: .string
    case .stored(let stored): stored.kind
    }
  }

  /// The value in its stored form.
  package var stored: StoredValue {
    if case .stored(let stored) = self { return stored }
    return StoredValue(kind: kind, bytes: withUnsafeBytes { Array($0) })
  }

  /// Lends the stored bytes to `body`.
  @inline(__always)
  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    switch self {
    case .bool(let value): return try Swift.withUnsafeBytes(of: value ? 1 : 0 as UInt8, body)
    case .int(let value): return try Swift.withUnsafeBytes(of: value.bigEndian, body)
    case .double(let value): return try Swift.withUnsafeBytes(of: value.bitPattern.bigEndian, body)
    case .string(let value): return try value.withUTF8Bytes { try body(UnsafeRawBufferPointer($0)) }
    case .stored(let stored): return try stored.bytes.withUnsafeBytes(body)
    }
  }

  /// Its size in the store, in bytes.
  var byteCount: Int {
    switch self {
    case .bool: 1
    case .int, .double: 8
    case .string(let value): value.utf8.count
    case .stored(let stored): stored.bytes.count
    }
  }
}

extension HeldValue: Equatable {
  /// Whether both have the same stored bytes.
  @inline(__always)
  package static func == (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.bool(let a), .bool(let b)): a == b
    case (.int(let a), .int(let b)): a == b
    case (.double(let a), .double(let b)): a.bitPattern == b.bitPattern
    case (.string(let a), .string(let b)): a.utf8.elementsEqual(b.utf8)
    case (.stored(let a), .stored(let b)): a == b
    // A kind with a case of its own is `.stored` only if its bytes are malformed.
    default: false
    }
  }
}

extension HeldValue: StatementValue {
  package func bind(to statement: Statement, at index: Int32) {
    withUnsafeBytes { statement.bind(copying: $0, at: index) }
  }
}

/// Both values of an item, and its dates.
package struct HeldItem: Sendable {
  package let object: HeldValue
  /// Boxed: items rarely have more than an object, and every read of a text copies the rest.
  private let box: Box?

  private final class Box: Sendable {
    let metadata: StoredValue?
    let dates: ItemDates

    init(metadata: StoredValue?, dates: ItemDates) {
      self.metadata = metadata
      self.dates = dates
    }
  }

  package var metadata: StoredValue? { box?.metadata }

  package var dates: ItemDates { box?.dates ?? .none }

  @inline(__always)
  init(object: HeldValue, metadata: StoredValue?, dates: ItemDates = .none) {
    self.object = object
    box =
      metadata == nil && dates.expires == nil && dates.due == nil ? nil : Box(metadata: metadata, dates: dates)
  }

  func with(object: HeldValue) -> HeldItem { HeldItem(object: object, metadata: metadata, dates: dates) }

  func with(metadata: StoredValue?) -> HeldItem { HeldItem(object: object, metadata: metadata, dates: dates) }

  /// Whether the item depends on the time.
  @inline(__always)
  var expires: Bool { box != nil && dates.expires != nil }

  @inline(__always)
  var byteCount: Int { object.byteCount + (box?.metadata?.bytes.count ?? 0) }

  /// Whether one of its values is sealed.
  @inline(__always)
  var isSealed: Bool { object.kind == .sealed || box?.metadata?.kind == .sealed }
}

extension HeldItem: Equatable {
  package static func == (a: Self, b: Self) -> Bool {
    a.object == b.object && a.metadata == b.metadata && a.dates == b.dates
  }
}

/// When an item expires, and when it should be renewed, in milliseconds since 1970.
package struct ItemDates: Sendable, Equatable {
  /// When it expires.
  package var expires: Int64?
  /// When it should be renewed.
  package var due: Int64?

  package static let none = ItemDates()

  package init(expires: Int64? = nil, due: Int64? = nil) {
    self.expires = expires
    self.due = due
  }

  func isExpired(at time: Int64) -> Bool { expires.map { $0 <= time } ?? false }
}
