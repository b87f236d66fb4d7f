/// How new a store is.
public struct StoreAge: Equatable, Sendable, CustomStringConvertible {
  /// The number of the last commit; nil if its record was made under another root key.
  public let commit: CommitNumber?
  /// The number of changes to the store's slots and keys, plus one.
  public let envelope: UInt64

  /// For people: `commit 12, key change 3`.
  public var description: String {
    (commit.map { "commit \($0), " } ?? "") + "key change \(envelope)"
  }
}
