import CofferCrypto
import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

/// Changes of the keys of a store whose disk is full from some moment on.
@Suite("A change of the keys on a full disk") struct FullDiskKeyTests {
  enum Change: String, CaseIterable {
    case add, change, label, remove
  }

  private struct Place {
    let folder: ScratchFolder
    let recorder = RecordingVFS()
    let key: KeySource
    let database: Database
    var path: String { folder.file("settings.coffer") }

    init() throws {
      folder = try ScratchFolder()
      key = .key(try .random(count: 32))
      database = try Database.create(
        at: folder.file("settings.coffer"), key: key, options: .quiet, vfs: recorder.encrypting())
      try database.addSlot(.key(.random(count: 32)), label: "second")
    }

    func make(_ change: Change) throws {
      switch change {
      case .add: try database.addSlot(.key(.random(count: 32)))
      case .change: try database.changeSlot(1, to: .key(.random(count: 32)))
      case .label: try database.setLabel("other", forSlot: 1)
      case .remove: try database.removeSlot(1)
      }
    }

    /// What the next opening finds.
    func slots() throws -> [Slot] { try Store.peekEnvelope(at: path).slots.map { $0 } }

    /// - Returns: Whether a call failed.
    func filling(
      from number: Int, isLasting: Bool, of suffix: String = "", _ body: () throws -> Void
    ) rethrows -> Bool {
      let injector = FaultInjector(in: recorder, from: number, count: isLasting ? .max : 1) { call in
        let needsRoom: [RecordingVFS.Call.Kind] = [.write, .sync, .truncate, .mapIndex]
        // What is in the log can be written over: a commit that failed is revoked so.
        var status = stat()
        if call.kind == .write, call.path.hasSuffix("-wal"), lstat(call.path, &status) == 0,
          call.offset + Int64(call.byteCount) <= status.st_size
        {
          return nil
        }
        return needsRoom.contains(call.kind) && call.path.hasSuffix(suffix) ? .error(errno: ENOSPC) : nil
      }
      try body()
      injector.stop()
      return !injector.failedCalls.isEmpty
    }
  }

  @Test(
    "is in force if it is reported as done, and changes nothing if it is reported as failed",
    arguments: Change.allCases, [false, true])
  func truth(_ change: Change, isLasting: Bool) throws {
    var results: [String: Int] = [:]
    for number in 1... {
      let place = try Place()
      let before = try place.slots()
      var isDone = false
      let hasFailed = place.filling(from: number, isLasting: isLasting) {
        do {
          try place.make(change)
          isDone = true
        } catch CofferError.diskFull {
        } catch {
          Issue.record("\(error)")
        }
      }
      let after = try place.slots()
      #expect((after != before) == isDone, "call \(number)")
      results[isDone ? "done" : "failed", default: 0] += 1
      // There is room again: the store goes on, with both copies alike, and remembers that they are newer.
      try place.database.makeConnection().readWrite { try $0.setObject(number, forKey: "n") }
      #expect(try place.slots() == after)
      #expect(try place.database.status().damagedEnvelopeCopies.isEmpty)
      #expect(try place.database.verify().problems.isEmpty)
      try place.database.close()
      let again = try Database.open(at: place.path, key: place.key, options: .quiet)
      let isUnrecorded = again.core.hasUnrecordedEnvelope.load(ordering: .relaxed)
      #expect(!isUnrecorded)
      try again.close()
      guard hasFailed else { break }
    }
    #expect(results.count == 2, "\(results)")
  }

  enum Step: String, CaseIterable {
    case rotate, newRootKey, newVaultKey, seal
  }

  @Test(
    "in several steps is reported as unfinished if some were done, as changing nothing if none were, and then completed",
    arguments: Step.allCases)
  func steps(_ step: Step) throws {
    let vaultKey = KeySource.key(try .random(count: 32))
    func make(_ place: Place) throws {
      switch step {
      case .rotate: try place.database.rotate()
      case .newRootKey: try place.database.rotate(newRootKeyFor: [place.key], droppingSlots: [1])
      case .newVaultKey: try place.database.vault.rotate(newKeyFor: [vaultKey], droppingSlots: [1])
      case .seal: try place.database.seal(collection: "web")
      }
    }
    /// What tells whether a step was made.
    func state(_ place: Place) throws -> String {
      let envelope = try Store.peekEnvelope(at: place.path)
      let vault = try place.database.vault.existingRecord()
      return "\(envelope.slots.count) \(envelope.currentEpoch) \(vault.generation) \(vault.sealedCollections)"
    }
    let stride = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil ? 1 : 4
    var results: [String: Int] = [:]
    for number in Swift.stride(from: 1, to: .max, by: stride) {
      let place = try Place()
      try place.database.vault.create(key: vaultKey)
      try place.database.vault.addSlot(.key(.random(count: 32)))
      try place.database.makeConnection().readWrite { try $0.setObject("plain", forKey: "k", inCollection: "web") }
      let before = try state(place)
      var result = "done"
      let hasFailed = place.filling(from: number, isLasting: true) {
        do { try make(place) } catch CofferError.diskFull {
          result = "nothing"
        } catch CofferError.unfinished(_, _, let cause) {
          result = "unfinished"
          #expect(cause == .diskFull(path: place.path))
        } catch {
          Issue.record("call \(number): \(error)")
        }
      }
      let after = try state(place)
      #expect((after == before) == (result == "nothing"), "call \(number): \(result), \(before), then \(after)")
      results[result, default: 0] += 1
      if result == "unfinished" {
        switch step {
        case .rotate, .newRootKey: try place.database.rotate()
        case .newVaultKey: try place.database.makeConnection().vacuum()
        case .seal: try place.database.seal(collection: "web")
        }
      }
      #expect(try place.database.verify().problems.isEmpty)
      try place.database.close()
      guard hasFailed else { break }
    }
    #expect(results.count == 3, "\(results)")
  }

  @Test("is in the log with the next commit if its own failed, and in the pages, which refuse the earlier envelope")
  func recorded() throws {
    let place = try Place()
    let start = try place.database.makeConnection().read { try $0.commitNumber() }
    #expect(try place.filling(from: 1, isLasting: true, of: "-wal") { try place.make(.add) })
    #expect(try place.slots().map(\.id) == [0, 1, 2])
    let connection = try place.database.makeConnection()
    #expect(try connection.read { try $0.commitNumber() } == start)
    try connection.readWrite { try $0.setObject(1, forKey: "n") }
    try connection.readWrite { try $0.setObject(2, forKey: "n") }
    let commits = try #require(try connection.read { try $0.changes(since: start) })
    #expect(commits.map { $0.actions.map(\.description) } == [["slot 2 added"], []])
    try place.database.close()
    let again = try Database.open(at: place.path, key: place.key, options: .quiet)
    let isUnrecorded = again.core.hasUnrecordedEnvelope.load(ordering: .relaxed)
    #expect(!isUnrecorded)
  }

  @Test("and any other change of slots, keys, history, environments and the vault leaves a line that says what it did")
  func lines() throws {
    let place = try Place()
    let database = place.database
    let connection = try database.makeConnection()
    try database.vault.create(key: .key(.random(count: 32)))
    let start = try connection.read { try $0.commitNumber() }
    for change in [Change.add, .change, .label, .remove] { try place.make(change) }
    try database.rotate()
    try database.rotate(newRootKeyFor: [place.key], droppingSlots: [2])
    try database.vault.addSlot(.key(.random(count: 32)))
    try database.vault.removeSlot(1)
    try connection.readWrite { transaction in
      try transaction.setHistoryLimits(HistoryLimits(), forCollection: "web")
      try transaction.makeEnvironment("dev", of: "web")
    }
    try connection.readWrite { try $0.setHistoryLimits(nil, forCollection: "web") }
    try database.seal(collection: "web")
    try database.unseal(collection: "web")
    try connection.readWrite { _ = try $0.removeEnvironment(CollectionEnvironment("dev", of: "web")) }
    try Preferences(database: database, collection: "shop").declare(Settings { Key("port", default: 8080) })
    // What is undone leaves no line.
    try connection.readWrite { transaction in
      try transaction.inSavepoint {
        try transaction.erase(collection: "web")
        return .rollback
      }
      try transaction.setObject(1, forKey: "n")
    }
    let commits = try #require(try connection.read { try $0.changes(since: start) })
    #expect(
      commits.map { $0.actions.map(\.description).joined(separator: "; ") } == [
        "slot 2 added", "slot 1 got another key", "slot 1 got another label", "slot 1 removed",
        "rotation of the keys begun", "keys rotated", "root key replaced, rotation of the keys begun", "keys rotated",
        "slot 1 of the vault added", "slot 1 of the vault removed",
        "history on for web; history on for web@dev; made environment web@dev", "history off for web",
        "sealed web; history off for web@dev; sealed web@dev", "unsealed web; unsealed web@dev",
        "removed environment web@dev", "loaded declarations of shop", "",
      ])
    #expect(commits.allSatisfy { $0.author != nil })
    #expect(try database.verifyChangeLog().problems.isEmpty)
  }
}
