/// A script with different journals, their contents, and where Coffer's documents explain it.
struct Difference: Sendable {
  let script: String
  let inGRDB: [String]
  let inCoffer: [String]
  /// The sentence, as it stands in `document`.
  let sentence: String
  /// A path in the repository.
  let document: String
}

/// All intended differences.
let differences = [
  Difference(
    script: "Setting the value that is there",
    inGRDB: ["a inserted 1", "a willCommit", "a didCommit", "a updated 1", "a willCommit", "a didCommit"],
    inCoffer: ["a inserted 1", "a willCommit", "a didCommit", "a willCommit", "a didCommit"],
    sentence: "Setting a value equal to the current one changes nothing.",
    document: "Sources/Coffer/Transactions/ReadWriteTransaction.swift"),
  Difference(
    script: "An operation that fails in the middle",
    inGRDB: [
      "a inserted 1", "a inserted 2", "a inserted 3", "a inserted 4", "a willCommit", "a didCommit",
    ],
    inCoffer: ["a inserted 1", "a inserted 4", "a willCommit", "a didCommit"],
    sentence: "changes that a savepoint or a failed operation has undone are never reported",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
  Difference(
    script: "A disk that is full",
    inGRDB: ["a inserted 1", "the transaction failed", "a inserted 3", "a willCommit", "a didCommit"],
    inCoffer: [
      "a inserted 1", "a didRollback", "the transaction failed", "a inserted 3", "a willCommit", "a didCommit",
    ],
    sentence: "or, after any failure, `databaseDidRollback(_:)`.",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
  Difference(
    script: "A write after the commit",
    inGRDB: [
      "a inserted 1", "b inserted 1", "a willCommit", "b willCommit", "a didCommit", "a inserted 2",
      "b inserted 2", "a willCommit", "b willCommit", "a didCommit", "b didCommit", "b didCommit",
    ],
    inCoffer: [
      "a inserted 1", "b inserted 1", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
      "a inserted 2", "b inserted 2", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
    ],
    sentence: "starts after all observers have been notified of the first transaction's end.",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
  Difference(
    script: "An observer that is added in a transaction",
    inGRDB: [
      "a inserted 1", "a inserted 2", "b inserted 2", "a willCommit", "b willCommit", "a didCommit",
      "b didCommit", "a inserted 3", "b inserted 3", "a willCommit", "b willCommit", "a didCommit",
      "b didCommit",
    ],
    inCoffer: [
      "a inserted 1", "a inserted 2", "a willCommit", "a didCommit", "a inserted 3", "b inserted 3",
      "a willCommit", "b willCommit", "a didCommit", "b didCommit",
    ],
    sentence: "Adds an observer of transactions that begin after the call, on all connections of this database.",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
  Difference(
    script: "An observer that is removed in a transaction",
    inGRDB: [
      "a inserted 1", "b inserted 1", "b inserted 2", "b willCommit", "b didCommit", "b inserted 3",
      "b willCommit", "b didCommit",
    ],
    inCoffer: [
      "a inserted 1", "b inserted 1", "a inserted 2", "b inserted 2", "a willCommit", "b willCommit",
      "a didCommit", "b didCommit", "b inserted 3", "b willCommit", "b didCommit",
    ],
    sentence: "It still observes a running transaction, to its end.",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
]
