import Coffer
import CofferCrypto
import CofferStorage
import Foundation

/// A store used through a recorder, with the promises made at each step.
package final class PowerCutScript {
  package let recorder = RecordingVFS()
  package let folder: ScratchFolder
  package let path: String
  package let backupPath: String
  /// Where a restore keeps the store that it replaces.
  package var replacedPath: String { path + "-replaced-1" }
  package let keys: [KeySource]
  package let vaultKey: KeySource
  /// The contents of the store after each commit, the empty store first.
  package private(set) var states: [StoreValues] = [[:]]
  /// The promises from each mark in the record on, by store.
  package private(set) var expectations: [[String: StoreExpectation]] = [[:]]
  private let vfs: EncryptingVFS
  private let options: Database.Options
  private var open: Opened?
  /// The contents of the copy of the file.
  private var copiedState: StoreValues = [:]
  /// The same store, as opened by another process.
  private var waiting: Opened?

  private struct Opened {
    let database: Database
    let connection: Connection
    let proxy: ConnectionProxy
  }

  private struct NotOpen: Error {}

  package init() throws {
    folder = try ScratchFolder()
    path = folder.file("settings.coffer")
    backupPath = folder.file("backup.coffer")
    vfs = recorder.encrypting()
    options = .quiet.anchored(RecordedAnchor { [recorder] in recorder.record(.witness($0)) })
    vaultKey = .key(try SecretBytes.random(count: 32))
    keys = try (0..<4).map { _ in .key(try SecretBytes.random(count: 32)) }
  }

  private var opened: Opened {
    get throws {
      guard let open else { throw NotOpen() }
      return open
    }
  }

  // MARK: Promises

  private func promise(_ path: String? = nil, _ change: (inout StoreExpectation) -> Void) {
    var next = expectations.last ?? [:]
    var expectation = next[path ?? self.path] ?? StoreExpectation(mayBeAbsent: true, states: 0...0, opening: [])
    change(&expectation)
    next[path ?? self.path] = expectation
    recorder.record(.mark(expectations.count))
    expectations.append(next)
  }

  private var newest: Int { states.count - 1 }

  /// Everything committed is on the disk, and this as well.
  private func promiseAll(_ change: (inout StoreExpectation) -> Void = { _ in }) {
    promise { [newest] in
      $0.states = newest...newest
      change(&$0)
    }
  }

  // MARK: Steps

  /// Creates the store, which key 0 opens.
  package func create() throws {
    promise {
      $0.opening = [0]
      $0.refused = [1, 2, 3]
    }
    let database = try Database.create(at: path, key: keys[0], options: options, vfs: vfs)
    promise { $0.mayBeAbsent = false }
    try use(database)
  }

  package func reopen() throws {
    try close()
    try use(Database.open(at: path, key: keys[0], options: options, vfs: vfs))
  }

  private func use(_ database: Database) throws {
    let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
    open = Opened(database: database, connection: try database.makeConnection(), proxy: proxy)
  }

  /// Continues with the other process's connection, which shares only the files with this one.
  package func takeTurns() throws {
    let next = waiting
    waiting = open
    if let next {
      open = next
    } else {
      try use(Database.open(at: path, key: keys[0], options: options, vfs: vfs))
    }
  }

  /// Closes the store, which checkpoints the log.
  package func close() throws {
    guard let open else { return }
    for one in [open, waiting].compactMap(\.self) {
      try one.proxy.close()
      try one.database.close()
    }
    (self.open, waiting) = (nil, nil)
    promiseAll()
  }

  /// Sets values in one transaction: synced when it returns, or only committed.
  package func set(_ values: [String: Value?], in collection: String = "", isSynced: Bool = true) throws {
    var state = states[newest]
    for (key, value) in values { state[collection, default: [:]][key] = value }
    if state[collection]?.isEmpty ?? false { state[collection] = nil }
    states.append(state)
    promise { [newest] in $0.states = $0.states.lowerBound...newest }
    if isSynced {
      try opened.connection.readWrite { transaction in
        for (key, value) in values { try transaction.setObject(value, forKey: key, inCollection: collection) }
      }
      promiseAll()
    } else {
      try opened.proxy.performBatch(durability: .committed) { batch in
        for (key, value) in values { try batch.setObject(value, forKey: key, inCollection: collection) }
      }
    }
  }

  /// Declares settings under new names, with values under the old ones: all of them move, or none does.
  package func declareRenamed(_ names: [(old: String, new: String)], in collection: String) throws {
    var state = states[newest]
    for (old, new) in names {
      let value = state[collection]?.removeValue(forKey: old)
      state[collection]?[new] = value
    }
    states.append(state)
    promise { [newest] in $0.states = $0.states.lowerBound...newest }
    let preferences = try Preferences(database: opened.database, collection: collection)
    try preferences.declare(Settings { for (old, new) in names { Key(new, default: -1, formerly: .named(old)) } })
    try preferences.proxy.close()
  }

  /// Checkpoints the log: PASSIVE, FULL, RESTART or TRUNCATE, https://www.sqlite.org/pragma.html#pragma_wal_checkpoint.
  package func checkpoint(_ mode: String) throws {
    let store = try Store.open(at: path, key: keys[0], vfs: vfs)
    let connection = try SQLiteConnection(store: store, busyTimeout: .zero)
    try connection.execute("PRAGMA wal_checkpoint(\(mode))")
    promiseAll()
    try connection.close()
  }

  /// Adds a key that opens the store.
  package func add(_ key: Int) throws {
    promise { $0.refused.remove(key) }
    try opened.database.addSlot(keys[key], label: "key \(key)")
    promiseAll { $0.opening.insert(key) }
  }

  /// Replaces a key by another one.
  package func change(_ key: Int, to other: Int) throws {
    let slot = try slot(of: key)
    promise {
      $0.opening.remove(key)
      $0.refused.remove(other)
      $0.exactlyOne = [key, other]
    }
    try opened.database.changeSlot(slot, to: keys[other], label: "key \(other)")
    promiseAll {
      $0.exactlyOne = []
      $0.opening.insert(other)
      $0.refused.insert(key)
    }
  }

  /// Removes a key.
  package func remove(_ key: Int) throws {
    let slot = try slot(of: key)
    promise { $0.opening.remove(key) }
    try opened.database.removeSlot(slot)
    promiseAll { $0.refused.insert(key) }
  }

  private func slot(of key: Int) throws -> Int {
    try opened.database.slots().first { $0.label == "key \(key)" }?.id ?? -1
  }

  /// Runs what changes no value and is synced when it returns: rotating, vacuuming, sealing.
  package func keepingAll(_ body: (Database, Connection) throws -> Void) throws {
    try body(opened.database, opened.connection)
    promiseAll()
  }

  /// Gives the store new keys, and drops the slot of one.
  package func rotate(dropping key: Int, keeping kept: [Int]) throws {
    let slot = try slot(of: key)
    promise { $0.opening.remove(key) }
    try opened.database.rotate(newRootKeyFor: kept.map { keys[$0] }, droppingSlots: [slot])
    promiseAll { $0.refused.insert(key) }
  }

  /// Copies the store to another one, which key 3 opens.
  package func backUp() throws {
    promise(backupPath) { [newest] in
      $0.states = newest...newest
      $0.opening = [3]
      $0.refused = [0, 1, 2]
    }
    try opened.database.backup(to: backupPath, key: keys[3])
    promise(backupPath) { $0.mayBeAbsent = false }
  }

  /// Copies the file of the store, closed, beside it.
  package func copyFile() throws {
    try close()
    try FileManager.default.copyItem(atPath: path, toPath: folder.file("copy.coffer"))
    copiedState = states[newest]
    try use(Database.open(at: path, key: keys[0], options: options, vfs: vfs))
  }

  /// Restores that copy while the store is open, and goes on with the restored store.
  package func restore() throws {
    promise(replacedPath) { [newest] in
      $0.states = newest...newest
      $0.opening = [0]
    }
    states.append(copiedState)
    promise { [newest] in $0.states = $0.states.lowerBound...newest }
    try Database.restore(
      at: path, from: folder.file("copy.coffer"), key: keys[0], force: true, options: options, vfs: vfs
    ) { _ in }
    promise(replacedPath) { $0.mayBeAbsent = false }
    promiseAll()
  }
}
