import Logging

/// How a database behaves.
public struct DatabaseOptions: Sendable {
  /// How long a transaction waits for a lock that another connection or process holds.
  public var busyTimeout: Duration
  /// The size of the log, in bytes, above which long-lived reads of this process are ended so that it can be checkpointed.
  public var logByteLimit: Int
  /// Receives warnings: a lost tail of the log, a failed flush, a setting that does not match its declaration.
  ///
  /// Messages never contain a secret, a value of a sealed collection, or a text value, except a text that is not one of a
  /// setting's choices.
  public var logger: Logger {
    get { chosenLogger ?? Self.standardLogger }
    set { chosenLogger = newValue }
  }

  private var chosenLogger: Logger?
  /// Created with the first message; most programs never log one.
  private static let standardLogger = Logger(label: "coffer")
  /// Whether the store is opened read-only: one in a bundle, on read-only media, or another user's.
  ///
  /// Every write throws `CofferError.readOnly`. If the store or its folder cannot be written, the store belongs to another
  /// user, or the disk is full, no file is created: an existing log is read, and an unreadable one is an error. Without a
  /// log, the store is then read as an image, which shows no later commits and must be reopened after a change. Otherwise,
  /// and beside an active writer, later commits are visible; the log and shared memory that this needs are created if
  /// missing, and stay behind.
  ///
  /// A value that has expired is absent at once, but its listeners hear of it only when a program that writes removes it.
  public var isReadOnly: Bool
  /// Whether to create the store if there is none.
  public var mode: OpeningMode
  /// Whether writes are checked against the settings declared in the store.
  ///
  /// For tools, which know a program's settings only by their declarations: writing a value that does not match its
  /// declaration throws `CofferError.invalidValue`.
  public var checksDeclarations: Bool
  /// What a tool may set besides; nil for programs, which know their settings themselves.
  package var settingRules: SettingRules?
  /// On whose behalf this program writes, if known; recorded with each commit, beside the program, the user and the host.
  ///
  /// See ``Commit/author``.
  public var actor: String?

  /// Counts and times what the database does; nil for no measurements.
  ///
  /// Single reads are counted on the path that searches the store's memory. With a meter, reads of typed keys and numbers
  /// take that path too, which costs some ten nanoseconds more.
  public var meter: (any DatabaseMeter)?

  /// The group that shares a newly created store, by name or number; nil for its owner alone.
  ///
  /// The store and every file that appears beside it get this group and mode 0660. The folder must let the group write,
  /// and is created with mode 2770 if missing. An existing store's mode shows whether a group shares it.
  public var group: String?

  /// Where the newest state of the store is remembered, to recognize an older one.
  public var freshness: Freshness
  /// Whether to open a store that is older than the last state used here, or another one: a backup that was put there on
  /// purpose.
  ///
  /// The remembered state is then forgotten.
  public var acceptsOlderStore: Bool

  /// The defaults: 5 seconds; 64 MiB; for nil, a logger labelled `coffer`, created on first use; reading and writing; no
  /// checks against declarations; no actor; no meter; no group; creating a missing store; remembering stores in the user's
  /// data folder, and rejecting an older one.
  public init(
    busyTimeout: Duration = .seconds(5), logByteLimit: Int = 64 << 20, logger: Logger? = nil,
    isReadOnly: Bool = false, checksDeclarations: Bool = false, actor: String? = nil,
    meter: (any DatabaseMeter)? = nil, group: String? = nil,
    mode: OpeningMode = .createIfMissing, freshness: Freshness = .automatic, acceptsOlderStore: Bool = false
  ) {
    self.busyTimeout = busyTimeout
    self.logByteLimit = logByteLimit
    chosenLogger = logger
    self.isReadOnly = isReadOnly
    self.checksDeclarations = checksDeclarations
    self.actor = actor
    self.meter = meter
    self.group = group
    self.mode = mode
    self.freshness = freshness
    self.acceptsOlderStore = acceptsOlderStore
  }

  /// What `openOrCreate(at:key:options:)` of ``Database``, and everything based on it, does if there is no store.
  public enum OpeningMode: Sendable {
    /// Creates one.
    case createIfMissing
    /// Throws `CofferError.storeNotFound`: a wrong path in a service's configuration is then an error, not an empty store.
    case existing
  }
}
