import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

/// One file with two names, each with a program of its own: every name has a log of its own.
@Suite("Two names of one store", .serialized) struct SecondNameTests {
  private let store: TemporaryStore
  private let other: String

  init() throws {
    store = try TemporaryStore()
    try store.open().close()
    other = store.path + "-other"
  }

  @Test("A store that was moved with its log keeps no trace of its former name once that log is gone")
  func moved() throws {
    let worker = try start(store.path)
    #expect(worker.readLine() == "open")
    try worker.write("first")
    #expect(worker.readLine() == "done")
    for suffix in ["", "-wal", "-shm"] { try #require(rename(store.path + suffix, other + suffix) == 0) }
    try close(worker)
    for key in ["second", "third"] {
      let next = try start(other)
      #expect(next.readLine() == "open")
      // The first one only looks, and so removes the log.
      if key == "third" {
        try next.write(key)
        #expect(next.readLine() == "done")
      }
      try close(next)
    }
    let database = try Database.open(at: other, key: store.key, options: .quiet)
    #expect(try database.makeConnection().read { try $0.allKeys(inCollection: "").sorted() } == ["first", "third"])
  }

  /// A program that sets each key that it is given; see `set-lines`.
  private func start(_ path: String) throws -> RunningChild {
    try Child.start(TemporaryStore.worker, ["set-lines", path, store.keyFile])
  }

  /// The same where the store's file alone is mounted at the other name.
  private func startMounted() throws -> RunningChild {
    try Child.start(
      "/usr/bin/unshare",
      [
        "-m", "sh", "-c", "mount --bind \"$1\" \"$2\" && exec \"$3\" set-lines \"$2\" \"$4\"", "sh", store.path, other,
        TemporaryStore.worker, store.keyFile,
      ])
  }

  /// Lets a program close the store.
  private func close(_ worker: RunningChild) throws {
    try worker.input.close()
    worker.end()
  }

  /// Sets keys through one of two programs at a time, ends or kills them in between, and expects every acknowledged key.
  private func take(turns count: Int, _ starts: [() throws -> RunningChild]) throws {
    var random = SplitMix64(state: 8)
    var workers: [RunningChild?] = [nil, nil]
    var acknowledged: Set<String> = []
    var refusedCount = 0
    for turn in 0..<count {
      let index = Int.random(in: 0..<2, using: &random)
      let worker = try workers[index] ?? starts[index]()
      if workers[index] == nil {
        let line = try #require(worker.readLine())
        guard line == "open" else {
          #expect(line.contains("is in use under another name"))
          refusedCount += 1
          _ = worker.end()
          // The one with the log may end, so that it is checkpointed, or be killed and started again.
          if let holder = workers[1 - index], Bool.random(using: &random) {
            holder.kill()
            workers[1 - index] = nil
          }
          continue
        }
        workers[index] = worker
      }
      try worker.write("key \(turn)")
      let answer = try #require(worker.readLine())
      if answer == "done" { acknowledged.insert("key \(turn)") } else { refusedCount += 1 }
      #expect(answer == "done" || answer.contains("is in use under another name"), "\(answer)")
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        worker.kill()
        workers[index] = nil
      case 1:
        try close(worker)
        workers[index] = nil
      default: break
      }
    }
    for worker in workers { try worker.map(close) }
    // Whichever name has the log; after that, both have none.
    for start in starts + starts { try close(start()) }
    let database = try store.open()
    let found = try database.makeConnection().read { Set(try $0.allKeys()) }
    #expect(acknowledged.subtracting(found).isEmpty)
    #expect(try database.verify().problems.isEmpty)
    #expect(refusedCount > 0 && acknowledged.count > count / 4)
    try database.close()
    print("two names: \(acknowledged.count) of \(count) acknowledged, \(refusedCount) refused")
  }

  @Test("lose no acknowledged commit, with programs that are ended and killed in between: a hard link")
  func hardLink() throws {
    try #require(link(store.path, other) == 0)
    try take(turns: 60, [{ try start(store.path) }, { try start(other) }])
  }

  @Test(
    "lose no acknowledged commit: a file that is mounted by itself",
    .enabled(if: Child.canMount, "needs root, and a mount namespace of its own"))
  func mount() throws {
    #expect(FileManager.default.createFile(atPath: other, contents: nil))
    try take(turns: 40, [{ try start(store.path) }, startMounted])
  }

  @Test("are refused by a restore, which changes nothing, forced or not")
  func restore() throws {
    let backup = store.path + "-backup"
    do {
      let database = try store.open()
      try database.backup(to: backup, key: store.key)
      try database.makeConnection().readWrite { try $0.setObject("newer", forKey: "k") }
      try database.close()
    }
    // What a killed program left of its making is no other name.
    let leftover = store.folder + "/.\(FilePath.lastComponent(of: store.path)).0123456789abcdef.tmp"
    try #require(link(store.path, leftover) == 0 && link(store.path, other) == 0)
    let before = try FileManager.default.contentsOfDirectory(atPath: store.folder).filter { !$0.hasSuffix(".tmp") }
    for isForced in [false, true] {
      let error = #expect(throws: CofferError.self) {
        try Database.restore(at: store.path, from: backup, key: store.key, force: isForced)
      }
      let text = error.map { "\($0)" } ?? ""
      #expect(text.contains("has 2 names (hard links)") && text.contains("nothing was changed"), "\(text)")
      #expect(Set(try FileManager.default.contentsOfDirectory(atPath: store.folder)) == Set(before))
    }
    unlink(other)
    try Database.restore(at: store.path, from: backup, key: store.key)
    let restored = try store.open()
    #expect(try restored.makeConnection().read { try $0.allKeys() } == [])
    try restored.close()
  }

  @Test("are an error with what to do, after a crash as well, and a note while no log has changes")
  func messages() throws {
    try #require(link(store.path, other) == 0)
    let worker = try start(store.path)
    #expect(worker.readLine() == "open")
    try worker.write("a")
    #expect(worker.readLine() == "done")
    worker.kill()
    #expect(throws: CofferError.usedUnderAnotherName(path: other)) {
      try Database.open(at: other, key: .keyFile(store.keyFile))
    }
    let error = "\(CofferError.usedUnderAnotherName(path: other))"
    #expect(error.contains("mount its folder") && error.contains("copy the file"))
    let database = try store.open()
    #expect(try database.status().notes.contains { $0.contains("has 2 names") })
    try database.close()
    #expect(
      try Database.open(at: other, key: .keyFile(store.keyFile)).makeConnection().read { try $0.allKeys() } == ["a"])
  }
}
