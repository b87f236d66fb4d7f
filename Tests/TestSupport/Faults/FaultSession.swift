import Coffer
import CofferCrypto
import CofferStorage
import Foundation

/// A store on which each step may fail, and is then retried.
package final class FaultSession {
  /// The steps, in order.
  package enum Step: String, CaseIterable, Sendable {
    case create, set, read, commit, setSynced, checkpoint, setAfterCheckpoint, addSlot, changeSlot, removeSlot, rotate
    case setAfterRotation, replaceRootKey, vacuum, backup, close, open, readAgain, end
  }

  package let path: String
  package let backupPath: String
  package let keys: [KeySource]
  /// The contents of the store after each started commit.
  package private(set) var states: [StoreValues] = [[:]]
  /// The index of the last state that was promised to be durable.
  package private(set) var durableState = 0
  package let vfs: EncryptingVFS
  private var database: Database?
  private var connection: Connection?
  private var proxy: ConnectionProxy?

  /// A store not created yet, in `folder`, with four keys.
  package init(in folder: String, vfs: EncryptingVFS, keys: [KeySource]) {
    path = "\(folder)/settings.coffer"
    backupPath = "\(folder)/backup.coffer"
    self.vfs = vfs
    self.keys = keys
  }

  private struct NotOpen: Error {}

  private func openDatabase() throws -> Database {
    if let database { return database }
    let opened = try Database.open(at: path, key: keys[0], options: options, vfs: vfs)
    database = opened
    return opened
  }

  private func openConnection() throws -> Connection {
    if let connection { return connection }
    let opened = try openDatabase().makeConnection()
    connection = opened
    return opened
  }

  private var options: Database.Options {
    var options = Database.Options.quiet
    options.busyTimeout = .seconds(2)
    return options
  }

  /// Performs a step, or retries it after a failure.
  package func perform(_ step: Step) throws {
    switch step {
    case .create: try create()
    case .set: try set(["a": .int(1), "b": .data(Data(repeating: 7, count: 6000))])
    case .read: try expectContents()
    case .commit: try commit(["a": .int(2), "c": .string("committed")])
    case .setSynced: try set(["d": .data(Data(repeating: 9, count: 5000))])
    case .checkpoint: try checkpoint()
    case .setAfterCheckpoint: try set(["a": .int(3), "b": nil])
    case .addSlot: try addSlot()
    case .changeSlot: try changeSlot()
    case .removeSlot: try removeSlot()
    case .rotate: try openDatabase().rotate()
    case .setAfterRotation: try set(["a": .int(4)])
    case .replaceRootKey: try openDatabase().rotate(newRootKeyFor: [keys[0]])
    case .vacuum: try openConnection().vacuum()
    case .backup: try backUp()
    case .close, .end: try close()
    case .open: _ = try openDatabase()
    case .readAgain: try expectContents()
    }
  }

  private func create() throws {
    do {
      database = try Database.create(at: path, key: keys[0], options: options, vfs: vfs)
    } catch CofferError.storeExists {
      // The previous attempt created it, and failed afterwards.
      _ = try openDatabase()
    }
  }

  /// - Returns: The values after the step; recorded once, also if it is retried.
  private func note(_ values: [String: Value?]) {
    var state = states.last ?? [:]
    for (key, value) in values { state["", default: [:]][key] = value }
    if states.last != state { states.append(state) }
  }

  private func set(_ values: [String: Value?]) throws {
    note(values)
    try openConnection().readWrite { transaction in
      for (key, value) in values { try transaction.setObject(value, forKey: key) }
      // A retried step may find its values written, and would have nothing to sync.
      try transaction.setObject(UUID(), forKey: "try", inCollection: FaultSession.scratch)
    }
    durableState = states.count - 1
  }

  /// A collection that differs between attempts, and is not part of the states.
  package static let scratch = "tries"

  private func commit(_ values: [String: Value?]) throws {
    note(values)
    let proxy = try proxy ?? ConnectionProxy(database: openDatabase(), flushPolicy: .manually)
    self.proxy = proxy
    do {
      try proxy.performBatch(durability: .committed) { batch in
        for (key, value) in values { try batch.setObject(value, forKey: key) }
      }
    } catch {
      // The next flush would write it; here the step is retried.
      try? proxy.reset()
      throw error
    }
  }

  private func checkpoint() throws {
    let store = try Store.open(at: path, key: keys[0], vfs: vfs)
    let connection = try SQLiteConnection(store: store, busyTimeout: .seconds(1))
    try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try connection.close()
    durableState = states.count - 1
  }

  private func slot(_ label: String) throws -> Int? {
    try openDatabase().slots().first { $0.label == label }?.id
  }

  private func addSlot() throws {
    // A failed attempt may still have added it.
    guard try slot("second") == nil else { return }
    try openDatabase().addSlot(keys[1], label: "second")
  }

  private func changeSlot() throws {
    guard let id = try slot("second") else { return }
    try openDatabase().changeSlot(id, to: keys[2], label: "third")
  }

  private func removeSlot() throws {
    guard let id = try slot("third") else { return }
    try openDatabase().removeSlot(id)
  }

  private func backUp() throws {
    do {
      try openDatabase().backup(to: backupPath, key: keys[3])
    } catch CofferError.storeExists {
      // The previous attempt created it, and failed afterwards.
    }
  }

  /// A value was read that differs from the one set.
  package struct WrongContents: Error {
    let found: StoreValues
  }

  private func expectContents() throws {
    let found = try openConnection().read { try $0.contents() }
    guard found.withoutScratch == states.last else { throw WrongContents(found: found) }
  }

  /// Closes what is open; a store that cannot be closed is released.
  package func close() throws {
    defer { (proxy, connection, database) = (nil, nil, nil) }
    try proxy?.close()
    try database?.close()
  }
}

extension StoreValues {
  package var withoutScratch: StoreValues {
    var contents = self
    contents[FaultSession.scratch] = nil
    return contents
  }
}
