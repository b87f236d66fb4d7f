import CofferCrypto
import CofferStorage
import Synchronization

/// What all connections of one database share.
package final class DatabaseCore: Sendable {
  let options: Database.Options
  /// Whether somebody counts: asked where looking for the meter would cost more than what is counted.
  let isMetered: Bool
  /// Tells the commits of this database from those of others in the change log.
  let writer: Int64
  let gate = WriterGate()
  /// How often the store was replaced by another while this database was open.
  let generation = Atomic<Int>(0)
  let observers = ObserverRegistry()
  package let clock = DatabaseClock()
  package let expiries: Expiries
  let commits: CommitLog
  let feed: CommitFeed
  /// What layers above keep for this database.
  let attachments = Attachments()
  /// Whether the store had the tables of declarations when it was opened.
  let hasDeclarations = Atomic<Bool>(false)
  /// Whether the change log is known to be chained.
  let hasChain = Atomic<Bool>(false)
  /// How many connections of this database have a snapshot pinned.
  let longLivedReadCount = Atomic<Int>(0)

  /// Remembers the newest state of the store outside of it; nil where nothing does.
  let witness: StoreWitness?

  /// What opens sealed values.
  package let vault = VaultKeys()

  private let rules = Lock(Rules())

  /// A structure, as in `CommitFeed`.
  private struct Rules {
    var byCollection: [ByteString: CollectionRules] = [:]
    /// Those of collections that have none of their own.
    var standard: CollectionRules?
    var serializers: [ObjectIdentifier: Serializer] = [:]
  }

  private let hasRules = Atomic<Bool>(false)
  /// See ``takesDetour``.
  private let isDetour: Atomic<Bool>
  private let onLogTooLarge: @Sendable () -> Void
  /// Goes on with a rotation that was cut short.
  let onUnfinishedRotation: @Sendable () -> Void
  private let hasWarned = Atomic<Bool>(false)

  /// - Parameters:
  ///   - path: The store file; nil for a store in memory.
  ///   - witness: Remembers the newest state of the store; nil for nobody.
  ///   - connect: Makes a connection to read the change log with.
  ///   - onReplacement: Goes over to a store that was put in the place of the one it gets.
  ///   - onLogTooLarge: Ends the long-lived reads of this database.
  ///   - onUnfinishedRotation: Called after each commit to a store that has keys of more than one epoch.
  ///   - onExpiry: Called when something has expired.
  init(
    options: Database.Options, path: String?, witness: StoreWitness? = nil, connect: @escaping CommitFeed.Connect,
    onReplacement: @escaping CommitFeed.Follow = { _ in }, onLogTooLarge: @escaping @Sendable () -> Void,
    onUnfinishedRotation: @escaping @Sendable () -> Void, onExpiry: @escaping @Sendable () -> Void
  ) {
    self.options = options
    self.witness = witness
    isMetered = options.meter != nil
    self.onLogTooLarge = onLogTooLarge
    self.onUnfinishedRotation = onUnfinishedRotation
    isDetour = Atomic(isMetered)
    writer = Int64.random(in: .min ... .max)
    commits = CommitLog(writer: writer)
    expiries = Expiries(clock: clock, isReadOnly: options.isReadOnly, onExpiry: onExpiry)
    feed = CommitFeed(path: path, commits: commits, expiries: expiries, connect: connect, follow: onReplacement)
  }

  /// Started now; nil where nobody counts.
  func stopwatch() -> Stopwatch? { isMetered ? options.meter.map { Stopwatch($0) } : nil }

  /// Who makes the transactions that do not say it themselves, as the tables have it.
  var authorText: String {
    ownAuthorText.withLock { known in
      if let known { return known }
      let text = Author(actor: options.actor).text
      known = text
      return text
    }
  }

  /// Has commits say that somebody else made them; for a store that is to be the same wherever it is made.
  package func setAuthor(_ author: Author) { ownAuthorText.withLock { $0 = author.text } }

  /// Made with the first commit: a program that only reads asks for no names.
  private let ownAuthorText = Lock<String?>(nil)

  /// Sees to it that the log can be folded in, where a long-lived read has kept it from that for too long.
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

  /// - Parameter collection: nil for all that have no rules of their own.
  func setRules(_ newRules: CollectionRules?, _ collection: String?) {
    changeRules { rules in
      if let collection { rules.byCollection[ByteString(collection)] = newRules } else { rules.standard = newRules }
    }
  }

  func setSerializer(_ serializer: Serializer?, for type: any Any.Type) {
    changeRules { $0.serializers[ObjectIdentifier(type)] = serializer }
  }

  /// Whether values may be written and read otherwise than the standard way.
  var hasAnyRules: Bool { hasRules.load(ordering: .acquiring) }

  /// Whether reads must leave the shortest way: values may be read otherwise than the standard way, or reads are counted.
  var takesDetour: Bool { isDetour.load(ordering: .acquiring) }

  func rules(of collection: String) -> CollectionRules? {
    guard hasRules.load(ordering: .acquiring) else { return nil }
    return rules.withLock { $0.byCollection[ByteString(collection)] ?? $0.standard }
  }

  /// What the rules of the collection name, else what the type has, else what the default rules name.
  private func serializer(_ part: ItemPart, of type: any Any.Type, in collection: String) -> Serializer {
    rules.withLock { rules in
      let own = rules.byCollection[ByteString(collection)]
      if let serializer = own?.serializer(part), !serializer.isStandard { return serializer }
      return rules.serializers[ObjectIdentifier(type)] ?? (own ?? rules.standard)?.serializer(part) ?? .standard
    }
  }

  /// - Throws: `CofferError.notEncodable`, naming collection and key; what a sanitizer throws.
  func encode<Object: Encodable>(
    _ part: ItemPart, _ value: Object, _ key: String, in collection: String
  ) throws -> StoredValue {
    guard hasAnyRules else { return try StoredValue(encoding: value, key, in: collection) }
    return try sanitize(part, serialized(part, value, key, in: collection), key, in: collection)
  }

  /// A value as it lies in the store, which no sanitizer sees: what something stored is compared with.
  ///
  /// - Throws: `CofferError.notEncodable`, naming collection and key.
  func serialized<Object: Encodable>(
    _ part: ItemPart, _ value: Object, _ key: String, in collection: String
  ) throws -> StoredValue {
    let serializer = serializer(part, of: Object.self, in: collection)
    return try StoredValue.encoding(key, in: collection) { try serializer.stored(value) }
  }

  /// What the sanitizers make of a value that is serialized.
  func sanitize(_ part: ItemPart, _ stored: StoredValue, _ key: String, in collection: String) throws -> StoredValue {
    guard let rules = rules(of: collection),
      let sanitizer = part == .object ? rules.objectSanitizer : rules.metadataSanitizer
    else { return stored }
    let original = try stored.decoded(as: Value.self, key, in: collection)
    let value = try sanitizing { try sanitizer(collection, key, original) }
    return try StoredValue.encoding(key, in: collection) { try value.stored }
  }

  /// The few threads that are inside a sanitizer: a proxy calls it outside of any transaction.
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

  /// Whether the calling thread is inside a sanitizer, from which nothing may be written.
  var isSanitizing: Bool {
    hasRules.load(ordering: .acquiring) && sanitizingThreads.withLock { $0.contains(currentThread()) }
  }

  /// A value in clear.
  ///
  /// - Throws: `CofferError.locked`; `.damaged` where it was not sealed for this place.
  @inline(__always)
  func opened(_ part: ItemPart, _ stored: StoredValue, _ key: String, in collection: String) throws -> StoredValue {
    stored.kind == .sealed ? try vault.open(stored, part, key, in: collection) : stored
  }

  /// An object in clear, as it lies in the store.
  func opened(_ object: HeldValue, _ key: String, in collection: String) throws -> StoredValue {
    try opened(.object, object.stored, key, in: collection)
  }

  /// An object as it describes itself.
  ///
  /// - Throws: As `decode`.
  package func value(_ object: HeldValue, _ key: String, in collection: String) throws -> Value {
    try object.value ?? value(.object, object.stored, key, in: collection)
  }

  /// An object as it describes itself, and whether it is sealed in the store.
  ///
  /// - Throws: As `decode`.
  func openedValue(_ item: HeldItem, _ key: String, in collection: String) throws -> (value: Value, isSealed: Bool) {
    (try value(item.object, key, in: collection), item.object.kind == .sealed)
  }

  /// A value as it describes itself.
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

  /// - Throws: `CofferError.notDecodable`, naming collection, key and both types; `.locked`, `.damaged`.
  package func decode<Object: Decodable>(
    _ part: ItemPart, _ stored: StoredValue, as type: Object.Type, _ key: String, in collection: String
  ) throws -> Object {
    let stored = try opened(part, stored, key, in: collection)
    guard hasAnyRules else { return try stored.decoded(as: type, key, in: collection) }
    let serializer = serializer(part, of: type, in: collection)
    return try stored.decoding(type, key, in: collection) { try serializer.object(stored, as: type) }
  }

  /// Metadata, nil where there is none.
  ///
  /// - Throws: As `decode`.
  package func metadata<Metadata: Decodable>(
    _ stored: StoredValue?, as type: Metadata.Type, _ key: String, in collection: String
  ) throws -> Metadata? {
    try stored.map { try decode(.metadata, $0, as: type, key, in: collection) }
  }
}

extension Database {
  /// Says how the values of a collection are written and read from now on; nil means the standard way.
  ///
  /// Holds for all connections and proxies of this database, not for other processes. Values that are stored already stay
  /// as they are.
  public func setRules(_ rules: CollectionRules?, forCollection collection: String) {
    core.setRules(rules, collection)
  }

  /// Says how the values of all collections that have no rules of their own are written and read from now on; nil means the
  /// standard way.
  ///
  /// Holds where the rules of a collection do.
  public func setDefaultRules(_ rules: CollectionRules?) {
    core.setRules(rules, nil)
  }

  /// Says how objects and metadata of a type are serialized from now on; nil means as those of other types.
  ///
  /// ```swift
  /// database.setSerializer(propertyLists, for: Theme.self)
  /// ```
  ///
  /// The serializer that the rules of a collection name goes before this one, this one before that of the default rules.
  /// A value of the type inside another value is written with that value. Holds where the rules of a collection do.
  public func setSerializer<Object: Codable>(_ serializer: Serializer?, for type: Object.Type) {
    core.setSerializer(serializer, for: type)
  }
}
