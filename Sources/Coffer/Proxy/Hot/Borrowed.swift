/// A reference to an object that something else keeps alive: no copy of it counts references, each of which takes 5 ns.
///
/// Valid as long as the owner keeps the object. A proxy's items belong to its table, which lets go of none that has
/// something pending or is being settled; what else outlives the lock has to take the ``object``.
///
/// Transparent, as what they call is: merely inlined, they keep the compiler from inlining the search for an item.
typealias Borrowed = Unmanaged

extension Unmanaged {
  @_transparent
  init(_ object: Instance) { self = .passUnretained(object) }

  /// The object, kept alive from now on.
  @_transparent
  var object: Instance { takeUnretainedValue() }

  /// Lends the object for the time of `body`.
  @_transparent
  func withObject<Result>(_ body: (Instance) throws -> Result) rethrows -> Result {
    try _withUnsafeGuaranteedRef(body)
  }

  func refers(to object: Instance) -> Bool { toOpaque() == Unmanaged.passUnretained(object).toOpaque() }
}
