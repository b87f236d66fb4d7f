import Coffer
import Dispatch
import PrefsCommands
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The watches of one client: turns what happens to the store into notices.
final class ClientWatches: Sendable {
  private struct Watch {
    let filter: WatchFilter
    let values: Bool
    let reveals: Bool
    /// Whether it gets everything where anything may have changed.
    let snapshots: Bool
    /// The last commit that it knows.
    var last = CommitPosition.beginning
    /// Whether a snapshot is to be made: it will have all commits until then.
    var awaitsSnapshot = false
    /// Why the last one could not be made, as JSON.
    var problem: String?
    /// Whether it is tried again each second.
    var isRetrying = false
    /// Whether the answer that has its number was sent.
    var isStarted = false
  }

  private struct State {
    var watches: [Int64: Watch] = [:]
    var lastNumber: Int64 = 0
    /// How often the store was replaced or rolled back, and which one it is.
    var generation = 0
    var storeID: String
    /// Why the store cannot be read at present, as JSON.
    var trouble: String?

    var started: [(number: Int64, watch: Watch)] {
      watches.filter { $0.value.isStarted }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
  }

  private typealias Member = (name: String, json: String)

  private let store: ServedStore
  private let outbox: Outbox
  /// Reads for notices, with the state locked.
  private let follower: Connection
  private let state: Mutex<State>
  private let sources = Mutex<(commits: CommitRegistration, vault: Task<Void, Never>, expiries: Expiries)?>(nil)
  private let files = Mutex<(collections: Set<ByteString>, task: Task<Void, Never>)?>(nil)
  private let queue = DispatchQueue(label: "prefs-serve.watches")

  init(_ store: ServedStore, _ outbox: Outbox) throws {
    (self.store, self.outbox) = (store, outbox)
    follower = try store.database.makeConnection()
    state = Mutex(State(storeID: try follower.read { $0.session.storeID }))
  }

  // MARK: - Watches

  /// Adds a watch, which does nothing before it is started.
  ///
  /// - Returns: Its number.
  func add(_ filter: WatchFilter, values: Bool, reveals: Bool, snapshots: Bool) throws -> Int64 {
    if sources.withLock({ $0 == nil }) { try follow() }
    return state.withLock { state in
      state.lastNumber += 1
      state.watches[state.lastNumber] = Watch(
        filter: filter, values: values, reveals: reveals, snapshots: snapshots)
      return state.lastNumber
    }
  }

  /// Sends what was committed after a position, or a snapshot, and then every commit.
  func start(_ number: Int64, since position: CommitPosition) {
    state.withLock { state in
      guard let watch = state.watches[number] else { return }
      state.watches[number]?.isStarted = true
      if watch.snapshots { return sendEverything(number, &state) }
      do {
        let (commits, last) = try follower.read { transaction in
          expect(try transaction.nextExpiry())
          return (try transaction.changes(since: position), try transaction.position())
        }
        state.watches[number]?.last = last
        guard let commits else { return sendEverything(number, &state) }
        for commit in commits { send(commit, number, &state) }
      } catch {
        state.watches[number]?.last = position
        sendEverything(number, &state)
      }
      if let trouble = state.trouble { send(number, [("unavailable", trouble)]) }
    }
    followFiles()
  }

  /// - Throws: ``Failure`` if there is no such watch.
  func remove(_ number: Int64?) throws {
    let isThere = state.withLock { state in number.flatMap { state.watches.removeValue(forKey: $0) } != nil }
    guard isThere else { throw Failure(.notFound, "there is no such watch.") }
  }

  /// Returns once the client has the notices of all commits so far, as far as it reads them.
  func deliver() {
    guard state.withLock({ !$0.watches.isEmpty }) else { return }
    store.database.deliverCommits()
    queue.sync {}
  }

  /// Ends all watches.
  func end() {
    state.withLock { $0.watches = [:] }
    sources.withLock { sources in
      sources?.commits.cancel()
      sources?.vault.cancel()
    }
    files.withLock { $0?.task.cancel() }
  }

  // MARK: - What happens

  private func follow() throws {
    // Notices wait for reads, and another client's must not wait for them.
    let commits = try store.database.onCommit(
      { [weak self, queue] commit in queue.async { [weak self] in self?.note(commit) } },
      onTrouble: { [weak self, queue] error in queue.async { [weak self] in self?.note(trouble: error) } })
    let events = store.database.vault.events
    let vault = Task { [weak self] in
      for await event in events {
        // A read must not block a thread that runs tasks.
        self?.queue.async { [weak self] in self?.note(event) }
      }
    }
    let expiries = Expiries(clock: store.database.core.clock, isReadOnly: false) { [weak self] in
      // The commit comes first, where it can be made.
      self?.queue.asyncAfter(deadline: .now() + .milliseconds(250)) { [weak self] in self?.noteExpiry() }
    }
    sources.withLock { $0 = (commits, vault, expiries) }
  }

  private func note(_ commit: Commit) {
    state.withLock { state in
      if commit.generation != state.generation {
        let id = (try? follower.read { $0.session.storeID }) ?? state.storeID
        let what: (name: String, json: String) =
          id == state.storeID ? ("everything", "true") : ("replaced", JSONText.quoted(id))
        (state.generation, state.storeID) = (commit.generation, id)
        for (number, _) in state.started {
          state.watches[number]?.last = commit.position
          sendEverything(number, &state, as: what)
        }
        return
      }
      for (number, watch) in state.started where commit.number > watch.last.number && !watch.awaitsSnapshot {
        // Until its trouble has ended, which this commit shows, such a watch has the last state; then it gets everything.
        if watch.snapshots, state.trouble != nil { continue }
        state.watches[number]?.last = commit.position
        send(commit, number, &state)
      }
    }
    if mayConcernOtherFiles(commit) { followFiles() }
  }

  private func note(trouble error: CofferError?) {
    state.withLock { state in
      state.trouble = error.map { store.json(of: $0.whileFollowing) }
      for (number, _) in state.started {
        if let trouble = state.trouble {
          send(number, [("unavailable", trouble)])
        } else {
          sendEverything(number, &state, as: ("available", "true"))
        }
      }
    }
  }

  private func note(_ event: VaultEvent) {
    switch event {
    case .unlocked: sendToAll(("vault", JSONText.quoted("unlocked")))
    case .locked: sendToAll(("vault", JSONText.quoted("locked")))
    default: break
    }
  }

  private func sendToAll(_ member: Member) {
    state.withLock { state in
      for (number, watch) in state.started {
        if watch.snapshots { sendEverything(number, &state) } else { send(number, [member]) }
      }
    }
  }

  // MARK: - Expiries

  /// Awaits an expiry that a client has to hear of, even if its commit is not made: the disk may be full, or the store read-only.
  func expect(_ date: Date?) {
    guard let date else { return }
    sources.withLock { $0?.expiries }?.expect(at: date.milliseconds)
  }

  private func noteExpiry() {
    state.withLock { state in
      guard
        let isLeft = try? follower.read({ transaction in
          expect(try transaction.nextExpiry())
          return try transaction.hasExpiredItems()
        }), isLeft
      else { return }
      for (number, _) in state.started { sendEverything(number, &state) }
    }
  }

  // MARK: - Administrators

  /// Follows the administrators' files of the watched collections.
  private func followFiles() {
    guard let collections = try? watchedCollections(), collections != files.withLock({ $0?.collections }),
      let followed = try? FollowedSettings(of: collections.sorted().map(\.string), in: store.database)
    else { return }
    let changes = followed.changes()
    let task = Task { [weak self] in
      for await _ in changes {
        self?.queue.async { [weak self] in
          self?.store.session.files.forget()
          self?.sendToAll(("administered", "true"))
        }
      }
    }
    files.withLock { files in
      files?.task.cancel()
      files = (collections, task)
    }
  }

  private func watchedCollections() throws -> Set<ByteString> {
    let named = state.withLock { state in state.watches.values.map(\.filter.collections) }
    if !named.contains(where: { $0 == nil }) { return Set(named.compactMap(\.self).joined().map { ByteString($0) }) }
    return try follower.read { transaction in
      let declared = try DeclaredKeys(transaction).settings.map(\.declaration.collection)
      return Set((try transaction.allCollections() + declared).map { ByteString($0) })
    }
  }

  /// Whether the files of other applications may be asked after a commit.
  private func mayConcernOtherFiles(_ commit: Commit) -> Bool {
    guard let known = files.withLock({ $0?.collections }) else { return false }
    return !commit.actions.isEmpty || commit.scope == .everything
      || commit.changedCollections.contains { !known.contains(ByteString($0)) }
  }

  // MARK: - Notices

  /// Sends a commit, which is the last one that the watch knows.
  private func send(_ commit: Commit, _ number: Int64, _ state: inout State) {
    guard let watch = state.watches[number] else { return }
    switch watch.filter.changes(in: commit) {
    case .nothing: return
    case .everything: sendEverything(number, &state)
    case .keys(let changes):
      // What cannot be read now is read with a snapshot.
      guard let changes = try? read(changes, watch) else { return sendEverything(number, &state) }
      var members = [Self.position(commit.position)]
      if let time = commit.time { members.append(("time", JSONText.quoted(Timestamp.text(time)))) }
      if let author = commit.author { members.append(("author", ChangeText.json(author))) }
      send(number, members + [("changes", JSONText.array(changes))])
    }
  }

  private func read(_ changes: [WatchFilter.Change], _ watch: Watch) throws -> [String] {
    let reader = ItemReader(
      values: watch.values, reveals: watch.reveals, isUnlocked: store.database.vault.isUnlocked)
    store.session.files.forget()
    return try follower.read { transaction in
      var known: [ByteString: EffectiveSettings] = [:]
      var read: [String] = []
      expect(try transaction.nextExpiry())
      for change in changes {
        let name = ByteString(change.collection)
        let settings =
          try known[name]
          ?? transaction.settings(in: NamedCollection(change.collection, environment: nil, isVariable: false))
        known[name] = settings
        let item = try reader.json(change.key, settings, transaction)
        read.append(JSONText.object([("change", JSONText.quoted(change.what)), ("item", item)]))
      }
      return read
    }
  }

  private static func position(_ position: CommitPosition) -> (name: String, json: String) {
    ("position", JSONText.quoted(position.description))
  }

  private static func line(_ number: Int64, _ members: [Member]) -> String {
    JSONText.object([("watch", "\(number)")] + members)
  }

  /// A line that says what is stored, and, while the store's file is away, why that is the last that could be read.
  private static func lines(_ number: Int64, _ members: [Member], _ state: State) -> [String] {
    [members, state.trouble.map { [("unavailable", $0)] }].compactMap(\.self).map { line(number, $0) }
  }

  private func send(_ number: Int64, _ members: [Member]) {
    outbox.notify(Self.line(number, members)) { [weak self] in self?.everything() ?? [] }
  }

  // MARK: - Everything

  /// Says that anything may have changed since the last commit that a watch knows, or sends it.
  ///
  /// - Parameter cause: What it is called for those that take their snapshots themselves.
  private func sendEverything(_ number: Int64, _ state: inout State, as cause: Member = ("everything", "true")) {
    guard let watch = state.watches[number] else { return }
    guard watch.snapshots else { return send(number, [cause, Self.position(watch.last)]) }
    if watch.awaitsSnapshot { return }
    state.watches[number]?.awaitsSnapshot = true
    // Made when all before it is written: a slow client gets one for all that happens meanwhile.
    outbox.add { [weak self] in
      guard let self else { return [] }
      return self.state.withLock { self.snapshot(number, &$0) }
    }
  }

  /// The snapshot that a watch awaits, if it still does.
  private func snapshot(_ number: Int64, _ state: inout State) -> [String] {
    guard let watch = state.watches[number], watch.awaitsSnapshot, let collections = watch.filter.wholeCollections
    else { return [] }
    state.watches[number]?.awaitsSnapshot = false
    do {
      store.session.files.forget()
      let reader = ItemReader(values: true, reveals: watch.reveals, isUnlocked: store.database.vault.isUnlocked)
      let snapshot = try store.unlocking { try follower.read { try StoreSnapshot(of: collections, reader, $0) } }
      expect(snapshot.nextExpiry)
      state.watches[number]?.last = snapshot.position
      state.watches[number]?.problem = nil
      return Self.lines(number, snapshot.members, state)
    } catch {
      let problem = store.json(of: error)
      state.watches[number]?.problem = problem
      if !watch.isRetrying { trySnapshotLater(number, &state) }
      return watch.problem == problem ? [] : [Self.line(number, [("unavailable", problem)])]
    }
  }

  private func trySnapshotLater(_ number: Int64, _ state: inout State) {
    state.watches[number]?.isRetrying = true
    queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
      guard let self else { return }
      self.state.withLock { state in
        state.watches[number]?.isRetrying = false
        guard state.watches[number]?.problem != nil else { return }
        self.sendEverything(number, &state)
        self.trySnapshotLater(number, &state)
      }
    }
  }

  /// What stands for notices that the client was too slow for.
  private func everything() -> [String] {
    state.withLock { state in
      outbox.endDropping()
      return state.started.flatMap { number, watch in
        guard watch.snapshots else {
          return Self.lines(number, [("everything", "true"), Self.position(watch.last)], state)
        }
        state.watches[number]?.awaitsSnapshot = true
        return snapshot(number, &state)
      }
    }
  }
}
