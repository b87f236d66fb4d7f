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

/// Every difference that is meant.
let differences = [
  Difference(
    script: "Setting the value that is there",
    inGRDB: ["a insertion of 1", "a willCommit", "a didCommit", "a update of 1", "a willCommit", "a didCommit"],
    inCoffer: ["a insertion of 1", "a willCommit", "a didCommit", "a willCommit", "a didCommit"],
    sentence: "Setting a value equal to the present one changes nothing.",
    document: "Sources/Coffer/Transactions/ReadWriteTransaction.swift"),
  Difference(
    script: "An operation that fails in the middle",
    inGRDB: [
      "a insertion of 1", "a insertion of 2", "a insertion of 3", "a insertion of 4", "a willCommit", "a didCommit",
    ],
    inCoffer: ["a insertion of 1", "a insertion of 4", "a willCommit", "a didCommit"],
    sentence: "what a savepoint or a failed operation has undone never comes",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
  Difference(
    script: "A disk that is full",
    inGRDB: ["a insertion of 1", "the transaction failed", "a insertion of 3", "a willCommit", "a didCommit"],
    inCoffer: [
      "a insertion of 1", "a didRollback", "the transaction failed", "a insertion of 3", "a willCommit", "a didCommit",
    ],
    sentence: "or after whatever went wrong `databaseDidRollback(_:)`: exactly one of them.",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
  Difference(
    script: "A write after the commit",
    inGRDB: [
      "a insertion of 1", "b insertion of 1", "a willCommit", "b willCommit", "a didCommit", "a insertion of 2",
      "b insertion of 2", "a willCommit", "b willCommit", "a didCommit", "b didCommit", "b didCommit",
    ],
    inCoffer: [
      "a insertion of 1", "b insertion of 1", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
      "a insertion of 2", "b insertion of 2", "a willCommit", "b willCommit", "a didCommit", "b didCommit",
    ],
    sentence: "starts after every observer has heard of the first transaction's end.",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
  Difference(
    script: "An observer that is added in a transaction",
    inGRDB: [
      "a insertion of 1", "a insertion of 2", "b insertion of 2", "a willCommit", "b willCommit", "a didCommit",
      "b didCommit", "a insertion of 3", "b insertion of 3", "a willCommit", "b willCommit", "a didCommit",
      "b didCommit",
    ],
    inCoffer: [
      "a insertion of 1", "a insertion of 2", "a willCommit", "a didCommit", "a insertion of 3", "b insertion of 3",
      "a willCommit", "b willCommit", "a didCommit", "b didCommit",
    ],
    sentence: "who hears of the transactions of all connections of this database that begin after the call.",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
  Difference(
    script: "An observer that is removed in a transaction",
    inGRDB: [
      "a insertion of 1", "b insertion of 1", "b insertion of 2", "b willCommit", "b didCommit", "b insertion of 3",
      "b willCommit", "b didCommit",
    ],
    inCoffer: [
      "a insertion of 1", "b insertion of 1", "a insertion of 2", "b insertion of 2", "a willCommit", "b willCommit",
      "a didCommit", "b didCommit", "b insertion of 3", "b willCommit", "b didCommit",
    ],
    sentence: "A transaction that is under way is still told to it to the end.",
    document: "Sources/Coffer/Observation/TransactionObserver.swift"),
]
