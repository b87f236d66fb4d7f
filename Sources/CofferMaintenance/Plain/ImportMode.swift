import Coffer

/// What becomes of the items that are there already.
public enum ImportMode: Sendable {
  /// Those that the file doesn't have stay.
  case merge
  /// Those that the file doesn't have go, in the collections that it has.
  case replace
}
