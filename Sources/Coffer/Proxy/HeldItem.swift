/// A value as a proxy holds it in memory: what is asked for most is there without decoding.
enum HeldValue: Sendable {
  case bool(Bool)
  case int(Int64)
  case double(Double)
  case string(String)
  case stored(StoredValue)

  init(_ stored: StoredValue) {
    switch stored.kind {
    case .bool, .int, .double, .string:
      switch try? Value(stored) {
      case .bool(let value): self = .bool(value)
      case .int(let value): self = .int(value)
      case .double(let value): self = .double(value)
      case .string(let value): self = .string(value)
      // Malformed bytes: reading them says so.
      default: self = .stored(stored)
      }
    default: self = .stored(stored)
    }
  }

  /// A value that needs no encoding; nil for one of another type.
  @inline(__always)
  init?<Object>(unencoded object: Object) {
    if Object.self == Int.self {
      self = .int(Int64(unsafeBitCast(object, to: Int.self)))
    } else if Object.self == String.self {
      self = .string(unsafeBitCast(object, to: String.self))
    } else if Object.self == Bool.self {
      self = .bool(unsafeBitCast(object, to: Bool.self))
    } else if Object.self == Double.self {
      self = .double(unsafeBitCast(object, to: Double.self))
    } else {
      return nil
    }
  }

  /// The value where it is of just this type, nil otherwise.
  @inline(__always)
  func undecoded<Object>(as type: Object.Type) -> Object? {
    switch self {
    case .int(let value) where Object.self == Int.self: unsafeBitCast(Int(truncatingIfNeeded: value), to: Object.self)
    case .string(let value) where Object.self == String.self: unsafeBitCast(value, to: Object.self)
    case .bool(let value) where Object.self == Bool.self: unsafeBitCast(value, to: Object.self)
    case .double(let value) where Object.self == Double.self: unsafeBitCast(value, to: Object.self)
    default: nil
    }
  }

  /// The value as it lies in the store.
  var stored: StoredValue {
    func encoded(_ kind: Value.Kind, _ word: UInt64) -> StoredValue {
      StoredValue(
        kind: kind,
        bytes: [UInt8](unsafeUninitializedCapacity: 8) { buffer, count in
          UnsafeMutableRawBufferPointer(buffer).storeBytes(of: word.bigEndian, as: UInt64.self)
          count = 8
        })
    }
    return switch self {
    case .bool(let value): StoredValue(kind: .bool, bytes: [value ? 1 : 0])
    case .int(let value): encoded(.int, UInt64(bitPattern: value))
    case .double(let value): encoded(.double, value.bitPattern)
    case .string(let value): StoredValue(kind: .string, bytes: Array(value.utf8))
    case .stored(let stored): stored
    }
  }

  /// How many bytes it has in the store.
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
  /// Whether both are the same bytes in the store.
  @inline(__always)
  static func == (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.bool(let a), .bool(let b)): a == b
    case (.int(let a), .int(let b)): a == b
    case (.double(let a), .double(let b)): a.bitPattern == b.bitPattern
    case (.string(let a), .string(let b)): a.utf8.elementsEqual(b.utf8)
    case (.stored(let a), .stored(let b)): a == b
    // What has a case of its own is `.stored` only where its bytes are malformed.
    default: false
    }
  }
}

/// Both values of an item, as a proxy holds them.
struct HeldItem: Sendable {
  let object: HeldValue
  /// In a box: hardly any item has metadata, and every read of a text copies the rest.
  private let box: MetadataBox?

  private final class MetadataBox: Sendable {
    let value: StoredValue

    init(_ value: StoredValue) {
      self.value = value
    }
  }

  var metadata: StoredValue? { box?.value }

  init(object: HeldValue, metadata: StoredValue?) {
    self.object = object
    box = metadata.map(MetadataBox.init)
  }

  init(_ stored: StoredItem) {
    self.init(object: HeldValue(stored.object), metadata: stored.metadata)
  }

  var byteCount: Int { object.byteCount + (metadata?.bytes.count ?? 0) }
}

extension HeldItem: Equatable {
  static func == (a: Self, b: Self) -> Bool {
    a.object == b.object && a.metadata == b.metadata
  }
}
