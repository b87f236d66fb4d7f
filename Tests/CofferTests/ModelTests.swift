import CSQLite
import CofferCompat
import CofferCrypto
import CofferStorage
import Foundation
import Logging
import TestSupport
import Testing

@testable import Coffer

/// Random sequences of transactions beside a plain model in memory.
///
/// A mismatch prints the shortest sequence that still shows it. `make soak` runs some 900,000 steps.
@Suite("A store beside its model") struct ModelTests {
  private static let isSoaking = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil

  @Test("agrees after any sequence of transactions, in memory")
  func inMemory() throws {
    try search(seeds: Self.isSoaking ? 15_000 : 30, stepCount: 60, kinds: 0..<9) { steps in
      let database = try Database.inMemory()
      return try ModelRun(database: database).run(steps)
    }
  }

  @Test("agrees after any sequence of transactions, on disk, with a second process and a disk that fills")
  func onDisk() throws {
    try search(seeds: Self.isSoaking ? 400 : 4, stepCount: 40, kinds: 0..<12) { steps in
      let store = try TemporaryStore()
      let recorder = RecordingVFS()
      let options = Database.Options(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
      let vfs = EncryptingVFS(name: "coffer-on-\(recorder.name)", below: recorder.name)
      let database = try Database.create(at: store.path, key: store.key, options: options, vfs: vfs)
      let process = try store.startWorker("model")
      defer {
        try? process.input.close()
        process.end()
      }
      return try ModelRun(database: database, recorder: recorder) { transaction in
        let line = String(decoding: try JSONEncoder().encode(transaction), as: UTF8.self)
        try process.write(line)
        try #require(process.readLine() == "done")
      }.run(steps)
    }
  }

  /// Runs sequences of steps until one shows a mismatch, and makes that one shorter.
  private func search(
    seeds: Int, stepCount: Int, kinds: Range<Int>, _ run: ([ModelStep]) throws -> String?
  ) throws {
    for seed in 1...UInt64(seeds) {
      var generator = SplitMix64(state: seed)
      var steps = (0..<stepCount).map { _ in ModelStep.random(kinds, using: &generator) }
      guard var mismatch = try run(steps) else {
        if Self.isSoaking, seed % 500 == 0 { print("\(Int(seed) * stepCount) steps so far") }
        continue
      }
      var index = 0
      while index < steps.count {
        var shorter = steps
        shorter.remove(at: index)
        if let found = try run(shorter) {
          (steps, mismatch) = (shorter, found)
        } else {
          index += 1
        }
      }
      Issue.record("seed \(seed): \(mismatch)\n\(steps.map { "\($0)" }.joined(separator: "\n"))")
      return
    }
    print("\(seeds * stepCount) steps, each checked against the model")
  }
}

enum ModelStep {
  case transaction(connection: Int, ModelTransaction)
  case otherProcess(ModelTransaction)
  case fullDisk(ModelTransaction)
  case pin
  case unpin

  static func random(_ kinds: Range<Int>, using generator: inout SplitMix64) -> ModelStep {
    switch Int.random(in: kinds, using: &generator) {
    case 0: .pin
    case 1: .unpin
    case 9, 10: .otherProcess(.random(using: &generator))
    case 11: .fullDisk(.random(using: &generator))
    case let number: .transaction(connection: number % 2, .random(using: &generator))
    }
  }
}

/// Maintains its own copy of a store from notifications.
private final class Mirror: TransactionObserver {
  private struct State {
    var model = Model()
    var changes: [DatabasePreUpdateEvent] = []
    var endCount = 0
  }

  private let state = Lock(State())

  var model: Model { state.withLock { $0.model } }
  var endCount: Int { state.withLock { $0.endCount } }

  func reset(_ model: Model) { state.withLock { $0.model = model } }

  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { true }

  func databaseWillChange(with event: DatabasePreUpdateEvent) {
    state.withLock { $0.changes.append(event) }
  }

  func databaseDidCommit(_ connection: Connection) {
    state.withLock { state in
      for change in state.changes {
        let (collection, key) = (change.event.collection, change.event.key)
        precondition(state.model[collection, key]?.object == number(try? change.oldObject), "an old value is wrong")
        state.model[collection, key] = number(try? change.newObject).map { object in
          Model.Item(object: object, metadata: number(try? change.newMetadata))
        }
      }
      state.changes = []
      state.endCount += 1
    }
  }

  func databaseDidRollback(_ connection: Connection) {
    state.withLock { state in
      state.changes = []
      state.endCount += 1
    }
  }

  private func number(_ value: Value??) -> Int? {
    if case .int(let number)?? = value { Int(number) } else { nil }
  }
}

/// One store under one sequence of steps.
private struct ModelRun {
  let database: Database
  var recorder: RecordingVFS?
  var otherProcess: ((ModelTransaction) throws -> Void)?

  private struct Mismatch: Error {
    let what: String
  }

  /// - Returns: What was wrong, nil when nothing was.
  func run(_ steps: [ModelStep]) throws -> String? {
    let connections = [try database.makeConnection(), try database.makeConnection()]
    let pinning = try database.makeConnection()
    let mirror = Mirror()
    database.add(transactionObserver: mirror)
    var model = Model()
    var pinned: (model: Model, number: CommitNumber)?
    do {
      for (index, step) in steps.enumerated() {
        let number = try connections[0].read { try $0.commitNumber() }
        var next = model
        let endCount = mirror.endCount
        switch step {
        case .transaction(let connection, let transaction):
          try transaction.run(on: connections[connection], model) { transaction, expected in
            try check(transaction, expected, "step \(index), inside")
          }
          next = transaction.result(model)
          guard mirror.endCount == endCount + 1 else {
            throw Mismatch(what: "step \(index): the end was reported \(mirror.endCount - endCount) times")
          }
        case .otherProcess(let transaction):
          try otherProcess?(transaction)
          next = transaction.result(model)
          mirror.reset(next)
        case .fullDisk(let transaction):
          recorder?.failWrites { _, _ in SQLITE_FULL }
          // Fails, but for one without effect.
          do { try transaction.run(on: connections[0], model) { _, _ in } } catch CofferError.diskFull {}
          recorder?.failWrites { _, _ in nil }
        case .pin:
          let notifications = try pinning.beginLongLivedReadTransaction()
          try check(notifications, since: pinned, model, number)
          pinned = (model, number)
        case .unpin:
          let notifications = try pinning.endLongLivedReadTransaction()
          try check(notifications, since: pinned, model, number)
          pinned = nil
        }
        for connection in connections { try check(connection, next, "step \(index)") }
        try check(pinning, pinned?.model ?? next, "step \(index), pinned")
        try expect(mirror.model, next, "step \(index), what was reported to the observer")
        let steps = try connections[1].read { try $0.commitNumber() } - number
        guard next == model ? steps <= 1 : steps == 1 else { throw Mismatch(what: "step \(index): \(steps) commits") }
        model = next
      }
      try database.close()
      return nil
    } catch let mismatch as Mismatch {
      try? database.close()
      return mismatch.what
    }
  }

  private func expect(_ found: Model, _ expected: Model, _ place: String) throws {
    guard found != expected else { return }
    throw Mismatch(what: "\(place): found \(found.collections), expected \(expected.collections)")
  }

  private func check(_ connection: Connection, _ expected: Model, _ place: String) throws {
    try connection.read { try check($0, expected, place) }
  }

  /// Reads everything in both ways: as a list, and key by key, from the cache if present.
  private func check(
    _ transaction: borrowing some Reading & ~Copyable, _ expected: Model, _ place: String
  ) throws {
    try expect(Model(transaction), expected, place)
    for collection in ModelOperation.collections {
      for key in ModelOperation.keys {
        let object: Int? = try transaction.object(forKey: key, inCollection: collection)
        let metadata: Int? = try transaction.metadata(forKey: key, inCollection: collection)
        guard expected[collection, key]?.object == object, expected[collection, key]?.metadata == metadata else {
          throw Mismatch(what: "\(place): \(collection).\(key) reads as \(String(describing: object))")
        }
      }
    }
  }

  /// Whether notifications speak of everything that changed since a commit.
  private func check(
    _ notifications: [Commit], since pinned: (model: Model, number: CommitNumber)?, _ model: Model,
    _ number: CommitNumber
  ) throws {
    guard let pinned else {
      guard notifications.isEmpty else { throw Mismatch(what: "notifications without a pinned snapshot") }
      return
    }
    guard notifications.count == Int(number - pinned.number) else {
      throw Mismatch(what: "\(notifications.count) notifications for \(number - pinned.number) commits")
    }
    for collection in ModelOperation.collections {
      for key in ModelOperation.keys where pinned.model[collection, key] != model[collection, key] {
        guard notifications.hasChange(forKey: key, inCollection: collection) else {
          throw Mismatch(what: "no notification of \(collection).\(key)")
        }
      }
    }
  }
}
