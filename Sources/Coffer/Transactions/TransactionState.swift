import Dispatch

/// The state of one transaction; each begins with a new one.
struct TransactionState {
  /// The cancellation of the task that waits for it.
  var cancellation: Cancellation?
  /// When it began, which is the time of its changes, in milliseconds since 1970; items that have expired by then are
  /// absent.
  var time: Int64 = 0
  /// Whether it has read an item.
  var hasRead = false
  /// Whether the item cache shows its snapshot.
  var isCacheCurrent = false
  /// The declared settings, once one was looked for that has no declaration under its own name.
  var declaredKeys: DeclaredKeys?
  /// Whether any of them states a former name, once that was asked.
  var hasFormerNames: Bool?
  /// The names of secrets, once something was to be hidden.
  var secretNames: SecretNames?

  /// Forgets what it knows of declarations, after a change of them.
  mutating func forgetDeclarations() {
    (effective, declaredKeys, hasFormerNames, secretNames) = ([:], nil, nil, nil)
  }

  // MARK: Write transactions

  var changes = ChangeSet()
  /// How many items it will change, if known.
  var expectedChangeCount = 0
  /// Whether it changed declarations, which no change to a key shows.
  var changesDeclarations = false
  /// What it may set, if other than the database's rules say.
  var rules: SettingRules?
  /// What is in force in the collections where it has set something, if rules ask for that.
  var effective: [ByteString: EffectiveSettings] = [:]
  /// What it does besides changing keys, for the change log.
  var actions: [CommitAction] = []
  /// Whether it removes expired items, of which no one is the author.
  var isExpiry = false
  /// On whose behalf it is made, if set.
  var actor: String?
  /// The author of its changes, if that is not this program: the text of an `Author`.
  var writer: String?
  /// Whether its changes go into the history even of collections that keep none.
  var keepsAllHistory = false
  /// The collections where it sealed or opened values: what is stored there differs from what a caller has in hand.
  var sealedChanges: Set<ByteString> = []
  /// What it did to names of renamed settings, whose other names follow at its end.
  var changedNamesOfSettings: [SettingPlace: ChangedName] = [:]
  var nameChangeCount = 0
  /// The items that changed because another name of the setting did.
  var followers: [SettingPlace] = []
  /// The vault key in use, once known.
  var vaultGeneration: UInt32?
  /// The version of its changes, once known.
  var version: CommitNumber?
  /// The names of the collections it changed.
  var changedNames: [Int64: String] = [:]
  var isRolledBack = false
  /// The number of its commit, once it is made.
  var committed: CommitNumber?

  // MARK: Observers

  /// Whether there are listeners for commits.
  var isFeedObserved = false
  var attachment: (any Sendable)?
  /// nil if no one observes it.
  var observation: (any TransactionObservation)?
  /// Changes not yet delivered to observers: those of an operation or a savepoint that may still be undone.
  var undelivered: [ObservedChange] = []
  /// How many current operations and savepoints may still be undone separately.
  var undoDepth = 0
  var completions: [(queue: DispatchQueue?, block: @Sendable (Bool) -> Void)] = []
}
