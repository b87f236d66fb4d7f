/// A change to a vault, as seen by this process.
///
/// Later versions may add cases: have a `default`.
public enum VaultEvent: Hashable, Sendable {
  /// Its key is in memory.
  case unlocked
  /// Its key was wiped.
  case locked
  /// The vault has a new key; `isFollowed` says whether that is in memory too.
  ///
  /// It is if this process has created it, or could read it from where the earlier key came from. If not, values of sealed
  /// collections throw ``CofferError/vaultLocked(collection:)`` until the vault is unlocked again.
  case keyReplaced(isFollowed: Bool)
}
