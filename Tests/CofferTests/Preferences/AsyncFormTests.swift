import CofferCrypto
import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer

extension Keys {
  fileprivate static let count = Key("count", default: 0)
  fileprivate static let limited = Key("limited", in: "other", default: 1, limits: .range(0...9))
  fileprivate static let names = Key("names", default: [String]())
}

/// A thread that holds the write lock of a database until it is let go.
private final class LockHolder: Sendable {
  private let end = DispatchSemaphore(value: 0)

  init(_ database: Database) throws {
    let connection = try database.makeConnection()
    let begun = DispatchSemaphore(value: 0)
    let end = end
    Thread.detachNewThread {
      try? connection.readWrite { _ in
        begun.signal()
        end.wait()
      }
    }
    begun.wait()
  }

  func letGo() { end.signal() }
}

/// How many calls have begun.
private final class Count: Sendable {
  private let number = Atomic(0)
  var value: Int { number.load(ordering: .relaxed) }
  func increase() { number.add(1, ordering: .relaxed) }
}

@Suite("Asynchronous forms") struct AsyncFormTests {
  private let preferences: Preferences

  init() throws {
    let database = try Database.inMemory(options: .init(busyTimeout: .seconds(120)))
    preferences = try Preferences(database: database, collection: "app")
  }

  /// More than there are threads for tasks.
  private static let taskCount = 4 * ProcessInfo.processInfo.activeProcessorCount

  @Test("of calls that wait for a commit leave the threads of tasks to others, however many wait")
  func sets() async throws {
    let holder = try LockHolder(preferences.database)
    let preferences = preferences
    let keys = (0..<Self.taskCount).map { Key("k\($0)", default: -1) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, key) in keys.enumerated() {
        group.addTask { try await preferences.set(number, for: key, durability: .synced) }
      }
      // Seen only while a thread is left to look.
      while preferences.proxy.pendingChangeCount < keys.count { await Task.yield() }
      holder.letGo()
      try await group.waitForAll()
    }
    let stored = try await preferences.database.makeConnection().read { transaction in
      try transaction.allKeys(inCollection: "app").count
    }
    #expect(stored == keys.count)
  }

  @Test("of rare calls run on threads of their own")
  func rareCalls() async throws {
    let begun = Count()
    let end = DispatchSemaphore(value: 0)
    let count = Self.taskCount
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<count {
        group.addTask {
          try await withoutBlocking {
            begun.increase()
            end.wait()
          }
        }
      }
      while begun.value < count { await Task.yield() }
      for _ in 0..<count { end.signal() }
      try await group.waitForAll()
    }
  }

  @Test("do what the synchronous ones do")
  func results() async throws {
    let proxy = preferences.proxy
    try await preferences.set(3, for: .count, durability: .committed)
    #expect(proxy.pendingChangeCount == 0)
    #expect(try await preferences.update(.count) { $0 += 1 } == 4)
    #expect(try await preferences.update(.count, durability: .synced) { $0 * 2 } == 8)
    #expect(try await preferences.update(.names) { $0.append("a") } == ["a"])
    await #expect(throws: CofferError.self) { try await preferences.update(.limited) { $0 = 10 } }
    await #expect(throws: CofferError.self) { try await preferences.set(10, for: .limited, durability: .committed) }
    #expect(preferences[.limited] == 1)
    try await preferences.performBatch(durability: .committed) { batch in
      try batch.set(5, for: .limited)
      try batch.set("x", forKey: "text")
    }
    #expect(preferences[.limited] == 5 && preferences.string(forKey: "text") == "x")
    try await preferences.set(6, for: .limited, expires: Date(timeIntervalSinceNow: -1), durability: .committed)
    #expect(preferences[.limited] == 1)
    try await preferences.reset(.count, durability: .committed)
    #expect(preferences[.count] == 0)

    try await proxy.setObject("a", forKey: "k", withMetadata: 1, durability: .committed)
    #expect(try await proxy.update("k", as: String.self) { ($0 ?? "") + "b" } == "ab")
    #expect(try proxy.metadata(forKey: "k", as: Int.self) == 1)
    #expect(try await !proxy.compareAndSet("k", expected: "a", new: "c"))
    #expect(try await proxy.compareAndSet("k", expected: "ab", new: "c", durability: .synced))
    try await proxy.replaceObject("d", forKey: "k", durability: .committed)
    try await proxy.replaceMetadata(2, forKey: "k", durability: .committed)
    #expect(try proxy.object(forKey: "k") == "d" && proxy.metadata(forKey: "k", as: Int.self) == 2)
    try await proxy.removeObject(forKey: "k", durability: .committed)
    try await proxy.setObject(1, forKey: "l", durability: .committed)
    try await proxy.removeObjects(forKeys: ["l"], durability: .committed)
    try await proxy.setObject(1, forKey: "m", durability: .committed)
    try await proxy.removeAllObjects(inCollection: "", durability: .committed)
    #expect(try proxy.allKeys(inCollection: "").isEmpty)
    try await preferences.close()
    #expect(throws: CofferError.closed) { try preferences.value(of: .count) }
  }

  @Test("of a cancelled task change nothing, except that closing closes")
  func cancelled() async throws {
    let preferences = preferences
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await #expect(throws: CancellationError.self) {
        try await preferences.set(3, for: .count, durability: .committed)
      }
      await #expect(throws: CancellationError.self) { try await preferences.update(.count) { $0 += 1 } }
      await #expect(throws: CancellationError.self) { try await preferences.database.seal(collection: "app") }
      #expect(preferences[.count] == 0)
      try await preferences.database.close()
    }
    try await task.value
    #expect(throws: CofferError.closed) { try preferences.value(of: .count) }
  }

  @Test("roll back an update that waits for another's lock, when their task is cancelled")
  func cancelledWhileWaiting() async throws {
    let holder = try LockHolder(preferences.database)
    let preferences = preferences
    let (waiting, continuation) = AsyncStream<Void>.makeStream()
    let task = Cancellation.$onWait.withValue({ continuation.yield() }) {
      Task { try await preferences.update(.count) { $0 += 1 } }
    }
    _ = await waiting.first { true }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    holder.letGo()
    #expect(try await preferences.update(.count) { $0 += 1 } == 1)
  }

  @Test("of a failed flush throw its error, and the change stays pending")
  func failed() async throws {
    let faults = StoreFaults()
    let preferences = try Preferences.inMemory(faults: faults)
    faults.setWriting(.diskFull(path: "settings.coffer"))
    await #expect(throws: CofferError.diskFull(path: "settings.coffer")) {
      try await preferences.set(3, for: .count, durability: .committed)
    }
    #expect(preferences[.count] == 3)
    faults.setWriting(nil)
    try await preferences.flush()
    #expect(preferences.proxy.pendingChangeCount == 0)
  }

  @Test("open, seal, unlock and rotate a store")
  func stores() async throws {
    let store = try TemporaryStore()
    let path = store.path
    let key = store.key
    let stretching = PasswordHash.scrypt(log2N: 14, r: 8, p: 1)
    await #expect(throws: CofferError.storeNotFound(path: path)) { try await Database.open(at: path, key: key) }
    let created = try await Database.create(at: path, key: key)
    try await created.close()
    let preferences = try await Preferences.open(
      application: "org.example.app", at: path, key: key, declaring: Settings { Keys.count })
    let database = preferences.database
    try await database.vault.create(key: .passphrase(SecretBytes(copying: "secret")), stretching: stretching)
    try await database.seal(collection: "tokens")
    try preferences.proxy.setObject("t", forKey: "t", inCollection: "tokens")
    database.vault.lock()
    await #expect(throws: CofferError.wrongKey) {
      try await database.vault.unlock(.passphrase(SecretBytes(copying: "other")))
    }
    try await database.vault.unlock(.passphrase(SecretBytes(copying: "secret")))
    try await database.vault.rotate(newKeyFor: [.passphrase(SecretBytes(copying: "secret"))])
    try await database.unseal(collection: "tokens")
    try await preferences.declare(Settings { Keys.limited })
    try await database.rotate()
    try await database.rotate(newRootKeyFor: [key])
    #expect(try preferences.proxy.object(forKey: "t", inCollection: "tokens") == "t")
    try await preferences.close()
    try await database.close()
    let again = try await Database.openOrCreate(at: path, key: key)
    #expect(try await again.makeConnection().read { try $0.object(forKey: "t", inCollection: "tokens") } == "t")
    #expect(
      try await again.makeConnection().read { try $0.declaration(forKey: "limited", inCollection: "other") } != nil)
    try await again.backup(to: "\(path)-backup", key: key)
    try await again.close()
    #expect(try await Database.restore(at: path, from: "\(path)-backup", key: key, force: true) != nil)
  }

  @Test("change the slots of a store and of its vault")
  func slots() async throws {
    let store = try TemporaryStore()
    let key = store.key
    let database = try await Database.create(at: store.path, key: key)
    let vault = database.vault
    let stretching = PasswordHash.scrypt(log2N: 14, r: 8, p: 1)
    let passphrases = (0..<2).map { KeySource.passphrase(SecretBytes(copying: "secret \($0)")) }
    try await vault.create(key: key)
    #expect(try await database.addSlot(passphrases[0], label: "a", stretching: stretching).id == 1)
    #expect(try await vault.addSlot(passphrases[0], label: "a", stretching: stretching).id == 1)
    try await database.changeSlot(1, to: passphrases[1], stretching: stretching)
    try await vault.changeSlot(1, to: passphrases[1], stretching: stretching)
    try await database.setLabel("b", forSlot: 1)
    try await vault.setLabel("b", forSlot: 1)
    for recoveryKey in [try await database.addRecoveryKey(), try await vault.addRecoveryKey()] {
      #expect(recoveryKey.text.count > 0)
    }
    try await database.removeSlot(2)
    try await vault.removeSlot(2)
    await #expect(throws: CofferError.slotNotFound(id: 2)) { try await database.removeSlot(2) }
    #expect(try database.slots().map(\.label) == ["", "b"] && vault.slots().map(\.label) == ["", "b"])
  }
}
