/// A reference to an object that something else keeps alive.
///
/// Copying it counts no reference, which would take 5 ns each.
///
/// It is valid while the owner keeps the object. A proxy's items belong to its table, which evicts none with pending or
/// unsettled changes; anything else that outlives the lock has to take the ``object``.
///
/// Transparent, like its callers: if they were merely inlined, the compiler would not inline the search for an item.
typealias Borrowed = Unmanaged

extension Unmanaged {
  @_transparent
  init(_ object: Instance) { self = .passUnretained(object) }

  /// The object, retained.
  @_transparent
  var object: Instance { takeUnretainedValue() }

  /// Lends the object to `body`.
  @_transparent
  func withObject<Result>(_ body: (Instance) throws -> Result) rethrows -> Result {
    try _withUnsafeGuaranteedRef(body)
  }

  func refers(to object: Instance) -> Bool { toOpaque() == Unmanaged.passUnretained(object).toOpaque() }
}
