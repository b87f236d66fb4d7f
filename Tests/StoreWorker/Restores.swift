import Coffer
import CofferStorage
import Foundation
import Synchronization

/// What processes do while a store is restored again and again.
enum Restores {
  /// A layer that counts the system calls of a restore, and calls `body` before each of them.
  private static func vfs(_ name: String, _ body: @escaping @Sendable (Int, FileCall) -> Void) -> EncryptingVFS {
    let count = Counter()
    return EncryptingVFS(name: name, below: nil) { call in
      body(count.next(), call)
      return nil
    }
  }

  private final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    func next() -> Int { count.add(1, ordering: .relaxed).newValue }
  }

  /// Restores once, and kills itself before the call with this number.
  ///
  /// - Returns: The path of the copy of the old store, if there is no such call.
  static func cutOff(_ store: String, _ key: KeySource, _ backup: String, force: Bool, before last: Int) throws
    -> String
  {
    let vfs = vfs("cut") { number, _ in
      if number == last { kill(getpid(), SIGKILL) }
    }
    return try Database.restore(
      at: store, from: backup, key: key, force: force, options: .init(busyTimeout: .seconds(60)), vfs: vfs
    ) { _ in } ?? ""
  }

  /// Restores this often, with a disk that takes up to so many milliseconds for each sync, and prints the keys of each
  /// store that was replaced.
  static func run(
    _ store: String, _ key: KeySource, _ backup: String, force: Bool, count: Int, delay: UInt32,
    say: (String) -> Void
  ) throws {
    let slow = vfs("slow") { _, call in
      switch call {
      case .sync, .syncFolder: if delay > 0 { usleep(.random(in: 0...delay) * 1000) }
      default: break
      }
    }
    var done = 0
    while done < count {
      let earlier: String?
      do {
        earlier = try Database.restore(
          at: store, from: backup, key: key, force: force, options: .init(busyTimeout: .seconds(60)), vfs: slow
        ) { _ in }
      } catch CofferError.busy where !force {
        usleep(1000)
        continue
      }
      done += 1
      guard let earlier else { continue }
      var status = stat()
      guard lstat(earlier, &status) == 0, status.st_nlink == 1 else { return say("\(earlier) is a second name") }
      try look(at: earlier, key, say: say)
      for suffix in ["", "-wal", "-shm"] { unlink(earlier + suffix) }
    }
    say("done")
  }

  /// Prints all keys of a store, and what is wrong with it.
  static func look(at path: String, _ key: KeySource, say: (String) -> Void) throws {
    let database = try Database.open(at: path, key: key)
    for problem in try database.verify().problems { say("damaged: \(problem)") }
    try database.makeConnection().read { transaction in
      for key in try transaction.allKeys(inCollection: "kept") { say("has \(key)") }
    }
    try database.close()
  }

  /// Commits one key after another until the input ends, and prints each that was committed.
  ///
  /// - Parameter isShort: Whether the store is opened and closed for each.
  static func write(
    _ store: String, _ key: KeySource, prefix: String, isShort: Bool, isEnded: () -> Bool, say: (String) -> Void
  ) throws {
    func open() throws -> Database {
      try Database.open(at: store, key: key, options: .init(busyTimeout: .seconds(60)))
    }
    var database = try open()
    var connection = try database.makeConnection()
    var number = 0
    while !isEnded() {
      number += 1
      if isShort {
        try database.close()
        // Long enough for moments in which no process has it open.
        usleep(.random(in: 0...60_000))
        database = try open()
        connection = try database.makeConnection()
      }
      let name = "\(prefix)\(number)"
      try connection.readWrite {
        try $0.setObject(String(repeating: "x", count: 500), forKey: name, inCollection: "kept")
      }
      say("wrote \(name)")
    }
    try database.close()
  }

  /// Holds one snapshot after another until the input ends, and checks that it does not change.
  static func hold(_ store: String, _ key: KeySource, isEnded: () -> Bool, say: (String) -> Void) throws {
    let database = try Database.open(at: store, key: key, options: .init(busyTimeout: .seconds(60)))
    let connection = try database.makeConnection()
    while !isEnded() {
      try connection.beginLongLivedReadTransaction()
      let first = try connection.read { try $0.allKeys(inCollection: "kept") }
      usleep(.random(in: 0...30_000))
      let second = try connection.read { try $0.allKeys(inCollection: "kept") }
      try connection.endLongLivedReadTransaction()
      if first != second { say("the snapshot went from \(first.count) keys to \(second.count)") }
    }
    try database.close()
  }
}
