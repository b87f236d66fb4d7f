import Synchronization

/// A number that shows, readable while it is being changed.
///
/// The first word counts the changes, is odd during one, and says what the second word is: a sequence lock, with one
/// writer at a time.
struct Scalar: ~Copyable {
  enum Kind: UInt64 {
    /// Not a number, or not known: to be asked under the lock.
    case other = 0
    case absent = 2
    case int = 4
    case bool = 6
    case double = 8

    static let mask: UInt64 = 14
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

  /// With or without the lock; nil during a change.
  @inline(__always)
  borrowing func load() -> (kind: Kind, word: UInt64)? {
    let before = state.load(ordering: .acquiring)
    let value = word.load(ordering: .acquiring)
    guard before & 1 == 0, state.load(ordering: .relaxed) == before else { return nil }
    return (Kind(rawValue: before & Kind.mask) ?? .other, value)
  }

  /// The number where it is of this type, nil inside where the key is absent; nil otherwise.
  @inline(__always)
  borrowing func number<Object>() -> Object?? {
    guard let (kind, word) = load() else { return nil }
    switch kind {
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
