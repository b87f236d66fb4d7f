/// A reference to an object that something else keeps alive.
///
/// Copying it counts no reference, which would take 5 ns each.
///
/// It is valid while the owner keeps the object. A proxy's items belong to its table, which evicts none with pending or
/// unsettled changes; anything else that outlives the lock has to take the ``object``.
///
/// Transparent, like its callers: if they were merely inlined, the compiler would not inline the search for an item.
struct Borrowed<Object: AnyObject> {
  private let reference: Unmanaged<Object>

  @_transparent
  init(_ object: Object) { reference = .passUnretained(object) }

  /// The object, retained.
  @_transparent
  var object: Object { reference.takeUnretainedValue() }

  /// Lends the object to `body`.
  @_transparent
  func withObject<Result>(_ body: (Object) throws -> Result) rethrows -> Result {
    try reference._withUnsafeGuaranteedRef(body)
  }

  func refers(to object: Object) -> Bool { address == Borrowed(object).address }

  // MARK: For an owner

  /// Keeps the object alive, until `release()`.
  @_transparent
  init(keeping object: Object) { reference = .passRetained(object) }

  @_transparent
  func release() { reference.release() }

  // MARK: In an atomic

  /// - Parameter address: That of a borrowed object.
  @_transparent
  init(address: UnsafeMutableRawPointer) { reference = .fromOpaque(address) }

  @_transparent
  var address: UnsafeMutableRawPointer { reference.toOpaque() }
}

extension Borrowed: Sendable where Object: Sendable {}
