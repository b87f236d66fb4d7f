import Dispatch

/// What a transaction knows of itself; each one begins with a new one.
struct TransactionState {
  /// That of the task that waits for it.
  var cancellation: Cancellation?
  /// When it began, which is the time of its changes, in milliseconds since 1970; what has expired then is not there.
  var time: Int64 = 0
  /// Whether it has read an item.
  var hasRead = false
  /// Whether the cache of items shows its snapshot.
  var isCacheCurrent = false

  // MARK: Of a write

  var changes = ChangeSet()
  /// How many items it will change, as far as that is known.
  var expectedChangeCount = 0
  /// Whether it changed what a collection was declared to be, which no change of a key shows.
  var changesDeclarations = false
  /// On whose behalf it is made, where it says so itself.
  var actor: String?
  /// Who made what it changes, where that was not this program: the text of an `Author`.
  var writer: String?
  /// Whether what it changes is kept in the history of collections that keep none, too.
  var keepsAllHistory = false
  /// The collections where it sealed or opened what it was given: what lies there is not what a caller has in hand.
  var sealedChanges: Set<ByteString> = []
  /// Which of the vault's keys is in use, once it is known.
  var vaultGeneration: UInt32?
  /// The version of what it changes, once it is known.
  var version: Int64?
  /// Names of the collections that it changed.
  var changedNames: [Int64: String] = [:]
  var isRolledBack = false

  // MARK: Observers

  /// Whether somebody listens to commits.
  var isFeedObserved = false
  var customObject: (any Sendable)?
  var observation = TransactionObservation()
  /// Changes that observers have not heard of yet: those of an operation or a savepoint that may still be undone.
  var undelivered: [TransactionObservation.Change] = []
  /// How many operations and savepoints are under way that may still be undone by themselves.
  var undoDepth = 0
  var completions: [(queue: DispatchQueue?, block: @Sendable (Bool) -> Void)] = []
}
