import CofferCrypto
import CofferStorage
import Foundation
import Testing

@testable import Coffer

/// Every short sequence of changes, flush phases and others' commits on two keys, run on a real proxy beside a model that
/// defines what must be visible after each step.
@Suite("Every interleaving of a proxy") struct ProxyExplorationTests {
  /// How many steps a sequence has.
  private static let length = ProcessInfo.processInfo.environment["COFFER_SOAK"] == nil ? 4 : 6

  @Test("4.1, 4.3, 4.4, 4.6, 4.8, 4.14 reads its writes, never goes back and loses no change, with others writing")
  func withOthers() throws {
    try explore([
      .set("a"), .set("b"), .replace("a"), .remove("a"), .reset("a"), .resetAll, .foreignSet("a"), .foreignRemove("a"),
      .sweep, .flush, .commit, .fail, .settle,
    ])
  }

  @Test("4.6, 4.7 reads its writes and loses no change, with filters and whole collections removed")
  func withFilters() throws {
    try explore([
      .set("a"), .set("b"), .replace("a"), .reset("a"), .resetAll, .clear, .hide, .show, .sweep, .flush, .commit, .fail,
      .settle,
    ])
  }

  @Test(
    "4.1, 4.4, 4.6, 4.8 reads its writes and loses no change, while the items of a flush are settled one by one",
    arguments: [
      [.set("a"), .set("b"), .flush, .commit], [.set("b"), .replace("a"), .flush, .commit, .foreignSet("a")],
      [.set("b"), .remove("a"), .flush, .set("a"), .commit, .foreignSet("a")],
      [.set("a"), .clear, .set("b"), .flush, .commit, .foreignRemove("b")],
    ] as [[Step]])
  fileprivate func whileSettling(_ beginning: [Step]) throws {
    try explore(
      [
        .set("a"), .replace("a"), .remove("a"), .reset("a"), .resetAll, .clear, .hide, .foreignSet("a"),
        .foreignRemove("a"), .sweep, .settleOne, .settle, .flush,
      ], length: Self.length - 1, after: beginning + [.hear])
  }

  // The exhaustive run found these beginnings.
  @Test(
    "4.1, 4.6 reads its writes and loses no change, where a key is removed that others have removed before",
    arguments: [
      [.replace("a"), .foreignRemove("a"), .flush, .commit],
      [.set("a"), .set("b"), .flush, .commit, .hear, .hide, .foreignRemove("a")], [.remove("a"), .flush, .commit],
    ] as [[Step]])
  fileprivate func removedByOthers(_ beginning: [Step]) throws {
    try explore(
      [
        .set("a"), .remove("a"), .reset("a"), .resetAll, .hide, .foreignSet("a"), .foreignRemove("a"), .sweep, .settle,
        .flush,
      ],
      length: 3, after: beginning)
  }

  /// - Parameter beginning: What each sequence begins with; its length does not count.
  private func explore(_ alphabet: [Step], length: Int = length, after beginning: [Step] = []) throws {
    var explorer = try Explorer()
    var (sequenceCount, stateCount) = (0, 0)
    /// Grows `steps` by all that the model allows next.
    func grow(_ steps: [Step], _ model: ProxyModel, startsWithItem: Bool) throws {
      guard steps.count < beginning.count + length else {
        sequenceCount += 1
        if sequenceCount % 200 == 0 {
          stateCount += explorer.stateCount
          explorer = try Explorer()
        }
        return try explorer.run(steps, startsWithItem: startsWithItem)
      }
      for step in alphabet where model.allows(step) {
        var next = model
        next.apply(step, value: steps.count + 1)
        try grow(steps + [step], next, startsWithItem: startsWithItem)
      }
    }
    for startsWithItem in [true, false] {
      var model = ProxyModel(startsWithItem: startsWithItem)
      for (index, step) in beginning.enumerated() { model.apply(step, value: index + 1) }
      try grow(beginning, model, startsWithItem: startsWithItem)
    }
    stateCount += explorer.stateCount
    print("\(sequenceCount) sequences of \(length) steps, \(stateCount) states checked against the model")
  }
}

private enum Step: Hashable, CustomStringConvertible {
  case set(String)
  case replace(String)
  case remove(String)
  case reset(String)
  case resetAll
  case clear
  case hide
  case show
  case foreignSet(String)
  case foreignRemove(String)
  /// The proxy lets go of all that is not pending.
  case sweep
  /// A flush takes the pending changes, and has written but not committed them.
  case flush
  /// It commits, and the proxy has not heard of it yet.
  case commit
  /// It fails instead.
  case fail
  /// The proxy is notified of the commit, and settles nothing yet.
  case hear
  /// It settles one item.
  case settleOne
  /// It settles the rest, once notified of the commit.
  case settle

  var description: String {
    switch self {
    case .set(let key): "set \(key)"
    case .replace(let key): "replace \(key)"
    case .remove(let key): "remove \(key)"
    case .reset(let key): "reset \(key)"
    case .foreignSet(let key): "foreign set \(key)"
    case .foreignRemove(let key): "foreign remove \(key)"
    case .resetAll: "reset"
    case .clear: "clear"
    case .hide: "hide"
    case .show: "show"
    case .sweep: "sweep"
    case .flush: "flush"
    case .commit: "commit"
    case .fail: "fail"
    case .hear: "hear"
    case .settleOne: "settle one"
    case .settle: "settle"
    }
  }
}

/// What has to show, in the plainest way: lists of changes, replayed.
private struct ProxyModel {
  enum Phase {
    case idle, flushing, committed, settling
  }

  private enum Change {
    case set(String, Int)
    case replace(String, Int)
    case remove(String)
    case clear

    func concerns(_ key: String) -> Bool {
      switch self {
      case .set(let changed, _), .replace(let changed, _), .remove(let changed): changed == key
      case .clear: true
      }
    }
  }

  private(set) var phase = Phase.idle
  private(set) var committed: [String: Int]
  private var pending: [Change] = []
  private var taken: [Change] = []
  /// Committed, and the proxy was not notified yet.
  private var unheard: [Change] = []
  private var isHidden = false

  init(startsWithItem: Bool) {
    committed = startsWithItem ? ["a": 0] : [:]
  }

  var hasPending: Bool { !pending.isEmpty || !taken.isEmpty }

  func visible(_ key: String) -> Int? {
    var items = isHidden ? [:] : committed
    Self.replay(taken + pending, on: &items)
    return items[key]
  }

  func allows(_ step: Step) -> Bool {
    switch step {
    case .flush: phase == .idle && !pending.isEmpty
    case .commit, .fail: phase == .flushing
    case .hear: phase == .committed
    case .settleOne: phase == .settling
    case .settle: phase == .committed || phase == .settling
    // A flush holds the write lock exclusively.
    case .foreignSet, .foreignRemove: phase != .flushing
    default: true
    }
  }

  /// Whether the removal of a key stays pending, and so wins over what others set before the next flush.
  ///
  /// A key known to be absent is not removed again. Of a hidden collection nothing is known, nor perhaps of what was committed
  /// before the proxy is notified: nil, since both are right then.
  private func keepsRemoval(of key: String) -> Bool? {
    if committed[key] != nil || (taken + pending).contains(where: { $0.concerns(key) }) { return true }
    return isHidden || unheard.contains { $0.concerns(key) } ? nil : false
  }

  /// - Parameters:
  ///   - value: What a step that sets something sets.
  ///   - isKept: Whether a removal has stayed pending, where it need not.
  mutating func apply(_ step: Step, value: Int, isKept: Bool = true) {
    switch step {
    case .set(let key): pending.append(.set(key, value))
    case .replace(let key): pending.append(.replace(key, value))
    case .remove(let key):
      if keepsRemoval(of: key) ?? isKept { pending.append(.remove(key)) }
    case .reset(let key):
      pending.removeAll { if case .clear = $0 { false } else { $0.concerns(key) } }
    case .resetAll: pending = []
    case .clear: pending.append(.clear)
    case .hide: isHidden = true
    case .show: isHidden = false
    case .foreignSet(let key): committed[key] = value
    case .foreignRemove(let key): committed[key] = nil
    case .sweep: break
    case .flush:
      phase = .flushing
      (taken, pending) = (pending, [])
    case .commit:
      phase = .committed
      Self.replay(taken, on: &committed)
      (unheard, taken) = (taken, [])
    case .fail:
      phase = .idle
      (pending, taken) = (taken + pending, [])
    case .hear:
      phase = .settling
      unheard = []
    case .settleOne: break
    case .settle:
      phase = .idle
      unheard = []
    }
  }

  private static func replay(_ changes: [Change], on items: inout [String: Int]) {
    for change in changes {
      switch change {
      case .set(let key, let value): items[key] = value
      case .replace(let key, let value): if items[key] != nil { items[key] = value }
      case .remove(let key): items[key] = nil
      case .clear: items = [:]
      }
    }
  }
}

/// Runs sequences on one proxy, each in a collection of its own.
///
/// The steps of a flush's phases run inside of it: those before its commit in an observer, those after it in the proxy's
/// hook.
private final class Explorer: TransactionObserver, @unchecked Sendable {
  // Unchecked: everything runs on the thread of the test.
  private struct Failure: Error {}

  private let database: Database
  private let proxy: ConnectionProxy
  /// Another process, as far as SQLite knows.
  private let foreign: Session
  private let reader: Connection
  private var collection = ""
  private var count = 0
  private var model = ProxyModel(startsWithItem: true)
  private var steps: [Step] = []
  private var position = 0
  private var isFlushing = false
  private(set) var stateCount = 0

  init() throws {
    database = try Database.inMemory()
    proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    reader = try database.makeConnection()
    guard case .memory(let store) = database.backing else { preconditionFailure("a store in memory is in memory") }
    let core = DatabaseCore(
      options: Database.Options(), path: nil, connect: { throw CofferError.closed }, onLogTooLarge: {},
      onUnfinishedRotation: {}, onExpiry: {})
    foreign = Session(connection: try SQLiteConnection(inMemory: store, busyTimeout: .seconds(5)), core: core)
    database.add(transactionObserver: self)
    proxy.state.hooks.onCommit = { [unowned self] in
      guard isFlushing else { return }
      model.apply(.commit, value: 0)
      position += 1
      // The next reader settles the batch. After the last step there is none, and the flush does it itself.
      if position <= steps.count { check() }
      runSteps { $0 == .settle || $0 == .hear }
      guard position < steps.count, steps[position] == .hear else { return }
      model.apply(.hear, value: 0)
      position += 1
    }
    proxy.state.hooks.onSettling = { [unowned self] in
      guard isFlushing, model.phase == .committed || model.phase == .settling else { return }
      if model.phase == .settling {
        check()
        runSteps { $0 == .settle }
      }
      model.apply(.settle, value: 0)
      position += 1
    }
  }

  func run(_ steps: [Step], startsWithItem: Bool) throws {
    self.steps = steps
    count += 1
    collection = "c\(count)"
    position = 0
    model = ProxyModel(startsWithItem: startsWithItem)
    if startsWithItem { try setElsewhere(0, "a") }
    check()
    runSteps { _ in false }
    if proxy.pendingChangeCount > 0 { try flushWithPhases() }
    #expect(proxy.pendingChangeCount == 0, "after \(steps)")
    let committed: [String: Int] = try reader.read { transaction in
      var items: [String: Int] = [:]
      try transaction.enumerateKeysAndObjects(inCollection: collection) { key, object, _ in items[key] = object }
      return items
    }
    #expect(committed == model.committed, "after \(steps)")
    proxy.fetchedCollectionsFilter = nil
  }

  /// Runs steps until one for which `isEnd` holds, which it doesn't run.
  private func runSteps(until isEnd: (Step) -> Bool) {
    while position < steps.count, !isEnd(steps[position]) {
      do {
        try run(steps[position])
      } catch {
        Issue.record(error, "at step \(position + 1) of \(steps)")
        position = steps.count
      }
    }
  }

  private func run(_ step: Step) throws {
    let value = position + 1
    if case .flush = step {
      // A removal that was taken for pending when the sequence was made.
      guard model.allows(step) else { return position = steps.count }
      position += 1
      return try flushWithPhases()
    }
    let pendingCount = proxy.pendingChangeCount
    switch step {
    case .set(let key): try proxy.setObject(value, forKey: key, inCollection: collection)
    case .replace(let key): try proxy.replaceObject(value, forKey: key, inCollection: collection)
    case .remove(let key): try proxy.removeObject(forKey: key, inCollection: collection)
    case .reset(let key): try proxy.discardPendingChanges(forKey: key, inCollection: collection)
    case .resetAll: try proxy.discardPendingChanges()
    case .clear: try proxy.removeAllObjects(inCollection: collection)
    case .hide: proxy.fetchedCollectionsFilter = .except([collection])
    case .show: proxy.fetchedCollectionsFilter = nil
    case .foreignSet(let key): try setElsewhere(value, key)
    case .foreignRemove(let key): try setElsewhere(nil, key)
    case .sweep:
      let limit = proxy.cacheByteLimit
      proxy.cacheByteLimit = 0
      proxy.cacheByteLimit = limit
    case .settleOne: proxy.state.lock.withExclusive { _ = proxy.state.settleSome(1) }
    case .flush, .commit, .fail, .hear, .settle: preconditionFailure("run inside a flush")
    }
    model.apply(step, value: value, isKept: proxy.pendingChangeCount > pendingCount)
    position += 1
    check()
  }

  private func setElsewhere(_ value: Int?, _ key: String) throws {
    try foreign.write(.normal) {
      guard let value else { return _ = try foreign.remove(key, in: collection) }
      try foreign.set(HeldItem(object: .int(Int64(value)), metadata: nil), key, in: collection)
    }
  }

  private func flushWithPhases() throws {
    model.apply(.flush, value: 0)
    isFlushing = true
    defer { isFlushing = false }
    try proxy.writer.perform { session in
      do {
        try proxy.pending.flush(through: proxy.state.pending.lastNumber, session, .normal)
      } catch is Failure {}
    }
    check()
  }

  private func check() {
    stateCount += 1
    checkBatches()
    for key in ["a", "b"] {
      do {
        // Most reads are answered by what can be read without a lock.
        let held = try proxy.state.visible(key, in: collection).item?.object
        let seen: Int? = try proxy.object(forKey: key, inCollection: collection)
        let expected = model.visible(key)
        // Not `#expect`, which would take most of the time.
        guard seen != expected || held != expected.map({ .int(Int64($0)) }) else { continue }
        let (found, due) = (seen.map(String.init) ?? "nothing", expected.map(String.init) ?? "nothing")
        Issue.record("\(key) is \(found) and should be \(due) after \(steps.prefix(position)) of \(steps)")
      } catch {
        Issue.record(error, "reading \(key) after \(steps.prefix(position))")
      }
    }
  }

  /// Batches don't keep their items: each has to be one that the table keeps, with something pending.
  private func checkBatches() {
    let isSound = proxy.state.lock.withExclusive {
      let kept = ["a", "b"].compactMap { proxy.state.items.find($0, collection)?.object }
      return proxy.state.pending.batches.allSatisfy { batch in
        batch.items.allSatisfy { item in
          item.withObject { item in kept.contains { $0 === item } && item.hasPending(in: batch.number) }
        }
      }
    }
    if !isSound { Issue.record("a batch has an item without a change after \(steps.prefix(position)) of \(steps)") }
  }

  // MARK: Inside a flush

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseDidCommit(_ connection: Connection) {}
  func databaseDidRollback(_ connection: Connection) {}

  func databaseWillCommit() throws {
    guard isFlushing else { return }
    check()
    runSteps { $0 == .commit || $0 == .fail }
    // A sequence that ends here continues to the commit.
    guard position < steps.count, steps[position] == .fail else { return }
    model.apply(.fail, value: 0)
    position += 1
    throw Failure()
  }
}
