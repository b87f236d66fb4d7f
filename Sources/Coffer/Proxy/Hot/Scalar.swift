import Synchronization

/// A number that shows, readable while it is being changed.
///
/// The first word counts the changes, is odd during one, and says what the second word is: a sequence lock, with one
/// writer at a time.
struct Scalar: ~Copyable {
  /// Not an enumeration: what makes one of a raw value may be called, and each read would call it.
  struct Kind: Equatable {
    let rawValue: UInt64

    /// Not a number, or not known: to be asked under the lock.
    static var other: Kind { Kind(rawValue: 0) }
    static var absent: Kind { Kind(rawValue: 2) }
    static var int: Kind { Kind(rawValue: 4) }
    static var bool: Kind { Kind(rawValue: 6) }
    static var double: Kind { Kind(rawValue: 8) }
    static var mask: UInt64 { 14 }
  }

  /// One of a change is 16, so that the kind has the bits 1 to 3.
  private let state = Atomic<UInt64>(0)
  private let word = Atomic<UInt64>(0)

  /// What the two words say.
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

  /// What tells what shows from what showed before; odd during a change.
  @inline(__always)
  var version: UInt64 { state.load(ordering: .acquiring) }

  /// The version of nothing: odd, and of more changes than there ever are.
  static let noVersion = UInt64.max

  /// The number where it is of this type, nil inside where the key is absent; nil otherwise, and during a change.
  @inline(__always)
  borrowing func number<Object>() -> Object?? {
    let version = version
    return version & 1 == 0 ? number(of: version) : nil
  }

  /// The number as ``number()``, of one version; nil where there is another one by now.
  @inline(__always)
  borrowing func number<Object>(of version: UInt64) -> Object?? {
    guard state.load(ordering: .acquiring) == version else { return nil }
    let word = word.load(ordering: .acquiring)
    guard state.load(ordering: .relaxed) == version else { return nil }
    switch Kind(rawValue: version & Kind.mask) {
    case .absent: return .some(nil)
    // Where an `Int` has 32 bits, the value may not fit.
    case .int where Object.self == Int.self && Int.bitWidth == 64:
      return unsafeBitCast(Int(truncatingIfNeeded: word), to: Object.self)
    case .double where Object.self == Double.self: return unsafeBitCast(Double(bitPattern: word), to: Object.self)
    case .bool where Object.self == Bool.self: return unsafeBitCast(word != 0, to: Object.self)
    default: return nil
    }
  }
}
