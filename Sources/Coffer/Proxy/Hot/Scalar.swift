import Synchronization

/// A visible number that can be read while it is being changed.
///
/// The first word counts the changes, is odd during one, and gives the type of the second word: a sequence lock with one
/// writer at a time.
struct Scalar: ~Copyable {
  /// Not an enumeration: its `init(rawValue:)` may be a call, on every read.
  struct Kind: Equatable {
    let rawValue: UInt64

    /// Not a number, or unknown: it has to be read under the lock.
    static var other: Kind { Kind(rawValue: 0) }
    static var absent: Kind { Kind(rawValue: 2) }
    static var int: Kind { Kind(rawValue: 4) }
    static var bool: Kind { Kind(rawValue: 6) }
    static var double: Kind { Kind(rawValue: 8) }
    static var mask: UInt64 { 14 }
  }

  /// A change adds 16, so that bits 1 to 3 are left for the kind.
  private let state = Atomic<UInt64>(0)
  private let word = Atomic<UInt64>(0)

  /// The content of the two words.
  struct Content {
    let kind: Kind
    var word: UInt64 = 0
  }

  /// Called with the exclusive lock held.
  @inline(__always)
  borrowing func store(_ content: Content) {
    let earlier = state.load(ordering: .relaxed)
    state.store(earlier | 1, ordering: .relaxed)
    word.store(content.word, ordering: .releasing)
    state.store((earlier & ~15) &+ 16 | content.kind.rawValue, ordering: .releasing)
  }

  /// Identifies the visible value among earlier ones; odd during a change.
  @inline(__always)
  var version: UInt64 { state.load(ordering: .acquiring) }

  /// The version of no value: odd, and more changes than there ever are.
  static let noVersion = UInt64.max

  /// The number if it has this type; an inner nil if the key is absent; an outer nil otherwise, and during a change.
  @inline(__always)
  borrowing func number<Object>() -> Object?? {
    let version = version
    return version & 1 == 0 ? number(of: version) : nil
  }

  /// The number as ``number()``, if it still has this version; otherwise nil.
  @inline(__always)
  borrowing func number<Object>(of version: UInt64) -> Object?? {
    guard state.load(ordering: .acquiring) == version else { return nil }
    let word = word.load(ordering: .acquiring)
    guard state.load(ordering: .relaxed) == version else { return nil }
    switch Kind(rawValue: version & Kind.mask) {
    case .absent: return .some(nil)
    // If an `Int` has 32 bits, the value may not fit.
    case .int where Object.self == Int.self && Int.bitWidth == 64:
      return unsafeBitCast(Int(truncatingIfNeeded: word), to: Object.self)
    case .double where Object.self == Double.self: return unsafeBitCast(Double(bitPattern: word), to: Object.self)
    case .bool where Object.self == Bool.self: return unsafeBitCast(word != 0, to: Object.self)
    default: return nil
    }
  }
}
