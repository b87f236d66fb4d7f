import CofferCrypto
import CofferStorage
import Synchronization

/// The state that all connections of one database share.
package final class DatabaseCore: Sendable {
  let options: DatabaseOptions
  /// Whether there is a meter: checked where loading the meter would cost more than the work it measures.
  let isMetered: Bool
  /// Identifies the commits of this database in the change log.
  let writer: Int64
  let gate = WriterGate()
  /// How often the store was replaced while this database was open.
  let generation = Atomic<Int>(0)
  package let clock = DatabaseClock()
  package let expiries: Expiries
  let commits: CommitLog
  let feed: CommitFeed
  /// State that higher layers keep for this database.
  let attachments = Attachments()
  /// Whether former names of settings were ever kept while this database was open.
  let hasRenames = Atomic<Bool>(false)
  /// The conversions between settings and their former names that this program has.
  let converters = RenameConverters()
  /// Whether the envelope in the file is newer than the pages say.
  let hasUnrecordedEnvelope = Atomic<Bool>(false)
  /// What changed it, in this process.
  let unrecordedActions = Lock<[CommitAction]>([])
  /// How many connections of this database have a pinned snapshot.
  let longLivedReadCount = Atomic<Int>(0)

  /// Remembers the newest state of the store outside of it; nil if nothing does.
  let witness: StoreWitness?

  /// Failures that a test asks for; nil in a program.
  let faults: StoreFaults?

  /// The keys that open sealed values.
  package let vault: VaultKeys

  private let rules = Lock(Rules())

  /// A structure, as in `CommitFeed`.
  private struct Rules {
    var byCollection: [ByteString: CollectionRules] = [:]
    /// The rules of collections that have none of their own.
    var standard: CollectionRules?
    var serializers: [ObjectIdentifier: Serializer] = [:]
  }

  private let hasRules = Atomic<Bool>(false)
  /// See ``takesDetour``.
  private let isDetour: Atomic<Bool>
  private let onLogTooLarge: @Sendable () -> Void
  /// Resumes an interrupted rotation.
  let onUnfinishedRotation: @Sendable () -> Void
  private let hasWarned = Atomic<Bool>(false)

  /// - Parameters:
  ///   - path: The path by which the store was opened; nil for a store in memory.
  ///   - vault: The keys that open sealed values.
  ///   - witness: Remembers the newest state of the store; nil for none.
  ///   - faults: Failures that a test asks for.
  ///   - connect: Makes a connection for reading the change log.
  ///   - onReplacement: Switches to the store that replaced the one it is given.
  ///   - onTrouble: Receives why commits by others cannot be followed.
  ///   - onLogTooLarge: Ends the long-lived reads of this database.
  ///   - onUnfinishedRotation: Called after each commit to a store with keys of more than one epoch.
  ///   - onExpiry: Called when something has expired.
  init(
    options: DatabaseOptions, path: String?, vault: VaultKeys = VaultKeys(),
    witness: StoreWitness? = nil, faults: StoreFaults? = nil,
    connect: @escaping CommitFeed.Connect,
    onReplacement: @escaping CommitFeed.Follow = { _ in },
    onTrouble: @escaping @Sendable (CofferError) -> Void = { _ in },
    onLogTooLarge: @escaping @Sendable () -> Void,
    onUnfinishedRotation: @escaping @Sendable () -> Void, onExpiry: @escaping @Sendable () -> Void
  ) {
    self.options = options
    self.witness = witness
    self.faults = faults
    self.vault = vault
    isMetered = options.meter != nil
    self.onLogTooLarge = onLogTooLarge
    self.onUnfinishedRotation = onUnfinishedRotation
    isDetour = Atomic(isMetered)
    writer = Int64.random(in: .min ... .max)
    commits = CommitLog(writer: writer)
    expiries = Expiries(clock: clock, isReadOnly: options.isReadOnly, onExpiry: onExpiry)
    feed = CommitFeed(
      path: path, commits: commits, expiries: expiries, connect: connect, follow: onReplacement,
      report: onTrouble, warn: { options.logger.warning("\($0)") })
  }

  /// A stopwatch, started now; nil without a meter.
  func stopwatch() -> Stopwatch? { isMetered ? options.meter.map { Stopwatch($0) } : nil }

  /// The author of transactions that name none, as stored in the tables.
  var authorText: String {
    ownAuthorText.withLock { known in
      if let known { return known }
      let text = Author(actor: options.actor).text
      known = text
      return text
    }
  }

  /// Sets the author of later commits; for a store that has to be identical wherever it is made.
  package func setAuthor(_ author: Author) { ownAuthorText.withLock { $0 = author.text } }

  /// Created with the first commit: a program that only reads need not look up names.
  private let ownAuthorText = Lock<String?>(nil)

  /// Makes sure that the log can be checkpointed, if a long-lived read has prevented that for too long.
  func checkLog(byteCount: Int) {
    guard byteCount > options.logByteLimit else { return hasWarned.store(false, ordering: .relaxed) }
    if longLivedReadCount.load(ordering: .relaxed) > 0 { return onLogTooLarge() }
    guard !hasWarned.exchange(true, ordering: .relaxed) else { return }
    options.logger.warning("The log has grown to \(byteCount) bytes: another process reads an old snapshot.")
  }

  // MARK: Values

  private func changeRules(_ change: (inout Rules) -> Void) {
    rules.withLock { change(&$0) }
    hasRules.store(true, ordering: .releasing)
    isDetour.store(true, ordering: .releasing)
  }

  /// - Parameter collection: nil for all collections without rules of their own.
  func setRules(_ newRules: CollectionRules?, _ collection: String?) {
    changeRules { rules in
      if let collection { rules.byCollection[ByteString(collection)] = newRules } else { rules.standard = newRules }
    }
  }

  func setSerializer(_ serializer: Serializer?, for type: any Any.Type) {
    changeRules { $0.serializers[ObjectIdentifier(type)] = serializer }
  }

  /// Whether values may be written and read in other ways than the standard one.
  var hasAnyRules: Bool { hasRules.load(ordering: .acquiring) }

  /// Whether reads must leave the fastest path: because of rules for values, or because reads are counted.
  var takesDetour: Bool { isDetour.load(ordering: .acquiring) }

  func rules(of collection: String) -> CollectionRules? {
    guard hasRules.load(ordering: .acquiring) else { return nil }
    return rules.withLock { $0.byCollection[ByteString(collection)] ?? $0.standard }
  }

  /// The serializer of the collection's rules, or else of the type, or else of the default rules.
  private func serializer(_ part: ItemPart, of type: any Any.Type, in collection: String) -> Serializer {
    rules.withLock { rules in
      let own = rules.byCollection[ByteString(collection)]
      if let serializer = own?.serializer(part), !serializer.isStandard { return serializer }
      return rules.serializers[ObjectIdentifier(type)] ?? (own ?? rules.standard)?.serializer(part) ?? .standard
    }
  }

  /// - Throws: `CofferError.notEncodable`, naming collection and key; the errors of a sanitizer.
  func encode<Object: Encodable>(
    _ part: ItemPart, _ value: Object, _ key: String, in collection: String
  ) throws -> StoredValue {
    guard hasAnyRules else { return try StoredValue(encoding: value, key, in: collection) }
    return try sanitize(part, serialized(part, value, key, in: collection), key, in: collection)
  }

  /// A value in its stored form, without sanitizers: for comparison with a stored value.
  ///
  /// - Throws: `CofferError.notEncodable`, naming collection and key.
  func serialized<Object: Encodable>(
    _ part: ItemPart, _ value: Object, _ key: String, in collection: String
  ) throws -> StoredValue {
    let serializer = serializer(part, of: Object.self, in: collection)
    return try StoredValue.encoding(key, in: collection) { try serializer.stored(value) }
  }

  /// Passes a serialized value through the sanitizers.
  func sanitize(_ part: ItemPart, _ stored: StoredValue, _ key: String, in collection: String) throws -> StoredValue {
    guard let rules = rules(of: collection),
      let sanitizer = part == .object ? rules.objectSanitizer : rules.metadataSanitizer
    else { return stored }
    let original = try stored.decoded(as: Value.self, key, in: collection)
    let value = try sanitizing { try sanitizer(collection, key, original) }
    return try StoredValue.encoding(key, in: collection) { try value.stored }
  }

  /// The few threads inside a sanitizer, which a proxy calls outside of any transaction.
  private let sanitizingThreads = Lock<[UInt]>([])

  private func sanitizing<Result>(_ body: () throws -> Result) rethrows -> Result {
    let thread = currentThread()
    sanitizingThreads.withLock { $0.append(thread) }
    defer {
      sanitizingThreads.withLock { threads in
        if let index = threads.lastIndex(of: thread) { threads.remove(at: index) }
      }
    }
    return try body()
  }

  /// Whether the calling thread is inside a sanitizer, which may not write.
  var isSanitizing: Bool {
    hasRules.load(ordering: .acquiring) && sanitizingThreads.withLock { $0.contains(currentThread()) }
  }

  /// A value as plaintext.
  ///
  /// - Throws: `CofferError.vaultLocked`; `.damaged` if it was not sealed for this place.
  @inline(__always)
  package func opened(_ part: ItemPart, _ stored: StoredValue, _ key: String, in collection: String) throws
    -> StoredValue
  {
    stored.kind == .sealed ? try vault.open(stored, part, key, in: collection) : stored
  }

  /// An object as plaintext, in its stored form.
  package func opened(_ object: HeldValue, _ key: String, in collection: String) throws -> StoredValue {
    try opened(.object, object.stored, key, in: collection)
  }

  /// An object as a ``Value``.
  ///
  /// - Throws: As `decode`.
  package func value(_ object: HeldValue, _ key: String, in collection: String) throws -> Value {
    try object.value ?? value(.object, object.stored, key, in: collection)
  }

  /// An object as a ``Value``, and whether it is sealed in the store.
  ///
  /// - Throws: As `decode`.
  func openedValue(_ item: HeldItem, _ key: String, in collection: String) throws -> (value: Value, isSealed: Bool) {
    (try value(item.object, key, in: collection), item.object.kind == .sealed)
  }

  /// A stored value as a ``Value``.
  ///
  /// - Throws: As `decode`.
  package func value(_ part: ItemPart, _ stored: StoredValue, _ key: String, in collection: String) throws -> Value {
    try opened(part, stored, key, in: collection).decoded(as: Value.self, key, in: collection)
  }

  /// - Throws: As the one below.
  @inline(__always)
  package func decode<Object: Decodable>(
    _ object: HeldValue, as type: Object.Type, _ key: String, in collection: String
  ) throws -> Object {
    if hasAnyRules { return try decode(.object, object.stored, as: type, key, in: collection) }
    return try object.decoded(as: type) { try decode(.object, $0, as: type, key, in: collection) }
  }

  /// - Throws: `CofferError.notDecodable`, naming collection, key and both types; `.vaultLocked`, `.damaged`.
  package func decode<Object: Decodable>(
    _ part: ItemPart, _ stored: StoredValue, as type: Object.Type, _ key: String, in collection: String
  ) throws -> Object {
    let stored = try opened(part, stored, key, in: collection)
    guard hasAnyRules else { return try stored.decoded(as: type, key, in: collection) }
    let serializer = serializer(part, of: type, in: collection)
    return try stored.decoding(type, key, in: collection) { try serializer.object(stored, as: type) }
  }

  /// Metadata, or nil.
  ///
  /// - Throws: As `decode`.
  package func metadata<Metadata: Decodable>(
    _ stored: StoredValue?, as type: Metadata.Type, _ key: String, in collection: String
  ) throws -> Metadata? {
    try stored.map { try decode(.metadata, $0, as: type, key, in: collection) }
  }
}
