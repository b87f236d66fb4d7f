// A process for the tests: opens a store and does one thing with it.
//
//   StoreWorker COMMAND STORE KEYFILE [ARGUMENT…]

import Coffer
import CofferMaintenance
import CofferStorage
import Foundation
import Synchronization
import TestSupport

let arguments = CommandLine.arguments
guard arguments.count >= 4 else {
  FileHandle.standardError.write(Data("usage: StoreWorker COMMAND STORE KEYFILE [ARGUMENT…]\n".utf8))
  exit(2)
}
let (command, store, keyFile) = (arguments[1], arguments[2], arguments[3])
let rest = Array(arguments.dropFirst(4))

func say(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

func open() throws -> Database {
  try Database.open(at: store, key: .keyFile(keyFile), options: .init(busyTimeout: .seconds(60)))
}

/// With the records of stores in a folder, if one is given.
func open(recordsIn folder: String?) throws -> Database {
  guard let folder else { return try open() }
  return try Database.open(
    at: store, key: .keyFile(keyFile),
    options: .init(busyTimeout: .seconds(60), freshness: .anchored(FileAnchor(folder: folder))))
}

/// With the vault unlocked by the key file in the next argument.
func openUnlocked() throws -> Database {
  let database = try open()
  try database.vault.unlock(.keyFile(rest[0]))
  return database
}

/// Root may do everything.
func becomeNobody() {
  guard getuid() == 0 else { return }
  guard setgid(65534) == 0, setuid(65534) == 0 else { fatalError("cannot change the user") }
}

/// The user that this process becomes at its start, for tests run by root, as USER:GROUP:FURTHERGROUP.
if let numbers = ProcessInfo.processInfo.environment["COFFER_WORKER_USER"]?.split(separator: ":").compactMap({
  UInt32($0)
}) {
  guard setgroups(1, [numbers[2]]) == 0, setgid(numbers[1]) == 0, setuid(numbers[0]) == 0 else {
    fatalError("cannot change the user")
  }
}

/// What an exit handler writes through; only the main thread touches it.
nonisolated(unsafe) var lateConnection: Connection?

switch command {
case "create":
  // If several are started concurrently, all end with the same store open.
  try KeyFile.create(at: keyFile)
  let connection = try Database.openOrCreate(at: store, key: .keyFile(keyFile)).makeConnection()
  try connection.readWrite { try $0.setObject(true, forKey: "creator \(getpid())") }

case "create-for-group":
  // create-for-group … GROUP
  do {
    try Database.create(at: store, key: .keyFile(keyFile), options: .init(group: rest[0])).close()
  } catch let error as CofferError {
    say("\(error)")
    exit(1)
  }

case "restore":
  // restore … BACKUP force|: prints what it kept.
  do {
    say(try Database.restore(at: store, from: rest[0], key: .keyFile(keyFile), force: rest.count > 1) ?? "nothing")
  } catch let error as CofferError {
    say("\(error)")
    exit(1)
  }

case "cut-restore":
  // cut-restore … BACKUP force|- NUMBER: is killed before this system call of the restore; otherwise prints what it kept.
  say(
    try Restores.cutOff(
      store, .keyFile(keyFile), rest[0], force: rest[1] == "force", before: Int(rest[2])!))

case "restore-often":
  // restore-often … BACKUP force|- COUNT DELAY: prints the keys of each store that it replaced, and at last "done".
  try Restores.run(
    store, .keyFile(keyFile), rest[0], force: rest[1] == "force", count: Int(rest[2])!, delay: UInt32(rest[3])!,
    say: say)

case "look-at":
  // Prints the keys of a store, and what is wrong with it.
  try Restores.look(at: store, .keyFile(keyFile), say: say)

case "write-shortly", "write-long", "hold-snapshots":
  // write-shortly … PREFIX: until the input ends; see `Restores`.
  let isEnded = Atomic(false)
  Thread.detachNewThread {
    while readLine() != nil {}
    isEnded.store(true, ordering: .relaxed)
  }
  let ends = { isEnded.load(ordering: .relaxed) }
  do {
    if command == "hold-snapshots" {
      try Restores.hold(store, .keyFile(keyFile), isEnded: ends, say: say)
    } else {
      try Restores.write(
        store, .keyFile(keyFile), prefix: rest[0], isShort: command == "write-shortly", isEnded: ends, say: say)
    }
  } catch {
    say("failed: \(error)")
    exit(1)
  }

case "insert":
  // insert … PREFIX COUNT: each key in its own transaction.
  let connection = try open().makeConnection()
  for number in 0..<Int(rest[1])! {
    try connection.readWrite { try $0.setObject(number, forKey: "\(rest[0])\(number)", inCollection: "numbers") }
  }

case "set":
  // set … KEY TEXT
  try open().makeConnection().readWrite { try $0.setObject(rest[1], forKey: rest[0]) }

case "set-lines":
  // Sets the key on each line of input to true, in a transaction of its own, and prints "done", or why not.
  do {
    let database = try open()
    let connection = try database.makeConnection()
    say("open")
    while let line = readLine() {
      do {
        try connection.readWrite { try $0.setObject(true, forKey: line) }
        say("done")
      } catch let error as CofferError {
        say("\(error)")
      }
    }
    try database.close()
    say("closed")
  } catch let error as CofferError {
    say("\(error)")
  }

case "clear":
  // clear … COLLECTION
  try open().makeConnection().readWrite { try $0.removeAllObjects(inCollection: rest[0]) }

case "increment":
  // increment … KEY COUNT: reads, and writes if the version is unchanged, until it has succeeded this often.
  let connection = try open().makeConnection()
  var successCount = 0
  while successCount < Int(rest[1])! {
    let (number, version) = try connection.read { transaction in
      (
        try transaction.object(forKey: rest[0], inCollection: "counters", as: Int.self) ?? 0,
        try transaction.version(forKey: rest[0], inCollection: "counters")
      )
    }
    do {
      try connection.readWrite {
        try $0.setObject(number + 1, forKey: rest[0], inCollection: "counters", ifVersion: version)
      }
      successCount += 1
    } catch CofferError.versionMismatch {}
  }

case "record":
  // record … FORM SEED COUNT: runs this many random operations after a line of input, and prints each as JSON.
  let recorder = try Recorder(open(), form: rest[0], seed: Int(rest[1])!)
  say("ready")
  _ = readLine()
  for operation in try recorder.run(Int(rest[2])!) {
    say(String(decoding: try JSONEncoder().encode(operation), as: UTF8.self))
  }

case "keep-history":
  // keep-history … COLLECTION COUNT: sets one key this often, removes it, and sets another; the collection keeps all.
  let connection = try open().makeConnection()
  try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: rest[0]) }
  for number in 0..<Int(rest[1])! {
    try connection.readWrite {
      try $0.setObject(number, forKey: "gone", inCollection: rest[0], withMetadata: "metadata \(number)")
    }
  }
  try connection.readWrite { transaction in
    try transaction.removeObject(forKey: "gone", inCollection: rest[0])
    try transaction.setObject("first", forKey: "there", inCollection: rest[0])
  }
  try connection.readWrite { try $0.setObject("second", forKey: "there", inCollection: rest[0]) }

case "model":
  // Runs each transaction given as a line of JSON, until the input ends.
  let connection = try open().makeConnection()
  while let line = readLine() {
    let transaction = try JSONDecoder().decode(ModelTransaction.self, from: Data(line.utf8))
    try transaction.run(on: connection, Model()) { _, _ in }
    say("done")
  }

case "rename":
  // rename … COUNT: opens settings formerly named "old" and a number, now named "new" and that number.
  let settings = Settings(version: "2") {
    for number in 0..<Int(rest[0])! { Key("new\(number)", default: -1, formerly: .named("old\(number)")) }
  }
  let preferences = try Preferences(database: open(), collection: "shop")
  say("begins")
  try preferences.declare(settings)
  say("ends")

case "program":
  // program … VERSION SECONDS [before|after]: see `Program`.
  try Program.run(open(), version: rest[0], seconds: Int64(rest[1])!, dying: rest.dropFirst(2).first)

case "acknowledge":
  // acknowledge … PREFIX: prints each number once its commit has returned, until killed.
  let connection = try open().makeConnection()
  let text = String(repeating: "acknowledged value ", count: 20)
  for number in 0... {
    try connection.readWrite {
      try $0.setObject("\(text)\(number)", forKey: "\(rest[0])\(number)", inCollection: "kept")
      // In the same transaction: neither exists without the other.
      try $0.setObject(number, forKey: rest[0], inCollection: "last")
    }
    say("\(number)")
  }

case "look":
  // look … PREFIX…: reads what the `acknowledge` processes write, until killed; ends if it sees a partial transaction.
  let connection = try open().makeConnection()
  say("begins")
  var seen = [Int](repeating: -1, count: rest.count)
  while true {
    let last = try connection.read { transaction in
      try rest.map { prefix in
        let last = try transaction.object(forKey: prefix, inCollection: "last", as: Int.self) ?? -1
        let hasLast = try transaction.hasObject(forKey: "\(prefix)\(last)", inCollection: "kept")
        let hasNext = try transaction.hasObject(forKey: "\(prefix)\(last + 1)", inCollection: "kept")
        return (hasLast || last < 0) && !hasNext ? last : -2
      }
    }
    guard zip(last, seen).allSatisfy(>=) else {
      say("saw \(last) after \(seen)")
      exit(1)
    }
    seen = last
  }

case "checkpoint":
  // Checkpoints repeatedly, until killed.
  let connection = try SQLiteConnection(
    store: Store.open(at: store, key: .keyFile(keyFile)), busyTimeout: .milliseconds(100))
  say("begins")
  while true { try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") }

case "read":
  // read … COUNT: each snapshot has all keys of the previous one, until there are this many.
  let connection = try open().makeConnection()
  var seen = 0
  while seen < Int(rest[0])! {
    let (count, keys) = try connection.read { transaction in
      (
        try transaction.numberOfKeys(inCollection: "numbers"),
        try transaction.allKeys(inCollection: "numbers").count
      )
    }
    guard count == keys, count >= seen else {
      say("went from \(seen) keys to \(count), listing \(keys)")
      exit(1)
    }
    seen = count
  }

case "set-samples":
  // Through the proxy, without flushing: close() does that.
  let proxy = try ConnectionProxy(database: open())
  try Samples.set(through: proxy)
  try proxy.close()

case "check-samples":
  let problems = try Samples.problems(in: ConnectionProxy(database: open()))
  for problem in problems { say(problem) }
  exit(problems.isEmpty ? 0 : 1)

case "exit-without-flush":
  // Normal exit: nothing is lost.
  let proxy = try ConnectionProxy(database: open())
  for number in 0..<500 { try proxy.setObject(number, forKey: "key \(number)", inCollection: "exit") }
  exit(0)

case "make-vector":
  // make-vector FOLDER -: recreates the store in Tests/Interop/vectors, and prints the SHA-256 of its files.
  let digests = try StoreVector.make(in: store)
  say("store-1.hex \(digests.store)")
  say("store-1-wal.hex \(digests.log)")

case "make-golden":
  // make-golden FOLDER -: creates stores of every kind, as in Tests/Formats, where none is ever recreated.
  try GoldenStore.make(in: store)

case "release-without-flush":
  // The proxy is released long before its batch is written; the exit follows immediately.
  try {
    let proxy = try ConnectionProxy(database: open())
    for number in 0..<500 { try proxy.setObject(number, forKey: "key \(number)", inCollection: "exit") }
  }()
  exit(0)

case "set-preference":
  // set-preference … APPLICATION KEY TEXT: in the user's folders.
  do {
    let preferences = try Preferences.open(application: rest[0])
    try preferences.set(rest[2], forKey: rest[1])
    try preferences.close()
  } catch let error as CofferError {
    say("\(error)")
    exit(1)
  }

case "get-preference":
  // get-preference … APPLICATION KEY: from the user's folders; prints what is wrong.
  do {
    say(try Preferences.open(application: rest[0]).throwing.object(forKey: rest[1], as: String.self) ?? "nothing")
  } catch let error as CofferError {
    say("\(error)")
    exit(1)
  }

case "add-slot":
  // add-slot … KEYFILE: also creates the key file.
  try KeyFile.create(at: rest[0])
  try open().addSlot(.keyFile(rest[0]), label: "worker")

case "lock-out":
  // lock-out … [SLOT]: replaces the root key, without this slot.
  try open().rotate(newRootKeyFor: [.keyFile(keyFile)], droppingSlots: Set(rest.map { Int($0)! }))

case "change-keys":
  // change-keys … LABEL: adds slots, replaces the root key, and prints the recovery key.
  let database = try open()
  try database.setLabel(rest[0], forSlot: 0)
  let recoveryKey = try database.addRecoveryKey(label: "paper")
  let printed = keyFile + "-for-command"
  try KeyFile.create(at: printed)
  let command = KeySource.keyCommand("cat '\(printed)'")
  try database.addSlot(command)
  try database.rotate(newRootKeyFor: [.keyFile(keyFile), .recoveryKey(recoveryKey.text), command])
  try database.close()
  say(recoveryKey.text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })

case "rotate":
  // rotate … [FRACTION]: prints when it begins, and, when so much is done, "there", and then waits to be killed.
  let fraction = rest.first.map { Double($0)! } ?? .infinity
  let database = try open()
  say("begins")
  try database.rotate { done in
    guard done >= fraction else { return }
    say("there")
    while true { pause() }
  }

case "expire":
  // expire … : runs each line, with a clock that the lines set, and prints "ok" or what is wrong; see `ExpiringWorker`.
  let worker = try ExpiringWorker(open())
  say("ready")
  while let line = readLine() { say(worker.perform(line)) }

case "follow":
  // follow … [FOLDER]: writes for each line of input, and prints the outcome; with records in a folder.
  let connection = try open(recordsIn: rest.first).makeConnection()
  say("ready")
  while readLine() != nil {
    do {
      try connection.readWrite { transaction in
        let count = Int(try transaction.object(forKey: "follower", as: String.self) ?? "0") ?? 0
        try transaction.setObject("\(count + 1)", forKey: "follower")
      }
      say("wrote")
    } catch {
      say("\(error)")
    }
  }

case "follow-sealed":
  // follow-sealed … VAULTKEYFILE FOLDER: the same, with a secret in the collection "tokens".
  let database = try open(recordsIn: rest[1])
  try database.vault.unlock(.keyFile(rest[0]))
  let connection = try database.makeConnection()
  say("ready")
  while readLine() != nil {
    do {
      try connection.readWrite { try $0.setObject("new", forKey: "follower", inCollection: "tokens") }
      say("wrote")
    } catch {
      say("\(error)")
    }
  }

case "churn":
  // Writes and reads until the input "end"; for each "check" prints whether everything it ever wrote is there.
  let connection = try open().makeConnection()
  let counts = DispatchQueue(label: "counts")
  nonisolated(unsafe) var (isEnded, committed, problem) = (false, 0, "")
  let writer = Thread {
    do {
      while !counts.sync(execute: { isEnded }) {
        let number = counts.sync { committed }
        try connection.readWrite {
          try $0.setObject("churn \(number)", forKey: "\(number % 500)", inCollection: "churn")
          try $0.setObject(number, forKey: "last", inCollection: "churn")
        }
        counts.sync { committed = number + 1 }
        Thread.sleep(forTimeInterval: 0.001)
      }
    } catch {
      counts.sync { problem = "\(error)" }
    }
  }
  writer.start()
  let reader = try open().makeConnection()
  while let line = readLine(), line != "end" {
    let (committed, problem) = counts.sync { (committed, problem) }
    let isWhole = try reader.read { transaction in
      let last = try transaction.object(forKey: "last", inCollection: "churn", as: Int.self) ?? -1
      return try last >= committed - 1
        && (max(0, last - 499)...max(0, last)).allSatisfy { number in
          let value: String? = try transaction.object(forKey: "\(number % 500)", inCollection: "churn")
          return last < 0 || value == "churn \(number)"
        }
    }
    say(problem.isEmpty && isWhole ? "whole \(committed)" : "not whole after \(committed): \(problem)")
  }
  counts.sync { isEnded = true }
  say("ended")

case "make-vault":
  // make-vault … VAULTKEYFILE COLLECTION: creates a vault, and seals a collection.
  let database = try open()
  try database.vault.create(key: .keyFile(rest[0]))
  try database.seal(collection: rest[1])

case "seal":
  // seal … VAULTKEYFILE COLLECTION
  try openUnlocked().seal(collection: rest[1])

case "add-vault-passphrase":
  // add-vault-passphrase … VAULTKEYFILE PASSPHRASE: at a low cost.
  try openUnlocked().vault.addSlot(
    .passphrase(Secret(rest[1]).bytes), label: "passphrase", stretching: .scrypt(log2N: 14, r: 8, p: 1))

case "rotate-vault":
  // rotate-vault … VAULTKEYFILE [PASSPHRASE]: gives the vault a new key.
  let passphrases = rest.dropFirst().map { KeySource.passphrase(Secret($0).bytes) }
  try openUnlocked().vault.rotate(newKeyFor: [.keyFile(rest[0])] + passphrases)

case "keep-sealed":
  // keep-sealed … VAULTKEYFILE COLLECTION KEY COUNT: sets a secret this often, and the collection keeps all values.
  let connection = try openUnlocked().makeConnection()
  try connection.readWrite { try $0.setHistoryLimits(HistoryLimits(), forCollection: rest[1]) }
  for number in 0..<Int(rest[3])! {
    try connection.readWrite {
      try $0.setObject(Secret("secret \(number)"), forKey: rest[2], inCollection: rest[1], withMetadata: number)
    }
  }

case "set-sealed":
  // set-sealed … VAULTKEYFILE COLLECTION KEY TEXT
  try openUnlocked().makeConnection().readWrite {
    try $0.setObject(Secret(rest[3]), forKey: rest[2], inCollection: rest[1])
  }

case "get-sealed", "get-locked":
  // get-sealed … VAULTKEYFILE COLLECTION KEY: prints a text or a secret; the other one, without unlocking, the error.
  let database = try command == "get-sealed" ? openUnlocked() : open()
  do {
    switch try database.makeConnection().read({ try $0.value(forKey: rest[2], inCollection: rest[1]) }) {
    case .string(let text): say(text)
    case .secret(let secret): say(secret.revealed() ?? "bytes")
    default: say("nothing")
    }
  } catch let error as CofferError {
    say("\(error)")
  }

case "hold-snapshot":
  // Until its standard input ends.
  let connection = try open().makeConnection()
  try connection.beginLongLivedReadTransaction()
  say("pinned")
  _ = FileHandle.standardInput.readDataToEndOfFile()
  try connection.endLongLivedReadTransaction()

case "hold-write-lock":
  // Until its standard input ends.
  try open().makeConnection().readWrite { transaction in
    try transaction.setObject("held", forKey: "lock")
    say("locked")
    _ = FileHandle.standardInput.readDataToEndOfFile()
  }

case "write-at-exit":
  // In a handler registered before OpenSSL was used, which therefore runs after OpenSSL's.
  atexit {
    guard let connection = lateConnection, (try? connection.readWrite { try $0.setObject(1, forKey: "late") }) != nil
    else { return }
    say("written")
  }
  lateConnection = try open().makeConnection()
  exit(0)

case "fork":
  // In a child of fork(), the parent's database throws, and the parent continues.
  let connection = try open().makeConnection()
  try connection.readWrite { try $0.setObject(1, forKey: "before") }
  typealias Fork = @convention(c) () -> Int32
  let fork = unsafeBitCast(dlsym(nil, "fork"), to: Fork.self)
  let child = fork()
  if child == 0 {
    do {
      _ = try connection.read { try $0.hasObject(forKey: "before") }
      _exit(1)
    } catch CofferError.usedAfterFork {
      _exit(42)
    } catch {
      _exit(2)
    }
  }
  var status: Int32 = 0
  waitpid(child, &status, 0)
  say("child \((status >> 8) & 0xff)")
  try connection.readWrite { try $0.setObject(2, forKey: "after") }
  say("parent \(try connection.read { try $0.allKeys() })")

case "hammer":
  // hammer … COUNT: prints each number it has committed, and checks each one from standard input.
  let hammer = Hammer(try ConnectionProxy(database: open()), name: "child", partner: "parent")
  let isRead = DispatchSemaphore(value: 0)
  DispatchQueue.global().async {
    while let line = readLine() {
      do { try hammer.expect(Int(line)!) } catch { fatalError("\(error)") }
    }
    isRead.signal()
  }
  try hammer.run(Int(rest[0])!) { say("\($0)") }
  isRead.wait()

case "full-disk":
  // full-disk … COUNT: sets this many values while files must not grow, then flushes once they may again.
  let proxy = try ConnectionProxy(database: open(), flushPolicy: .manually)
  try proxy.setObject("before", forKey: "before", durability: .synced)
  signal(SIGXFSZ, SIG_IGN)
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
  let unlimited = limit
  limit.rlim_cur = 200_000
  setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
  let values = (0..<Int(rest[0])!).map { number in String(repeating: "\(number) ", count: 2000) }
  for (number, value) in values.enumerated() { try proxy.setObject(value, forKey: "\(number)") }
  for _ in 0..<2 {
    do {
      try proxy.flushAndWait()
      say("flushed beyond the limit")
    } catch let error as CofferError {
      say("refused: \(error)")
    }
    let isReadable = try values.indices.allSatisfy { try proxy.object(forKey: "\($0)") == values[$0] }
    say(isReadable && proxy.pendingChangeCount == values.count ? "all readable and pending" : "something is lost")
  }
  limit = unlimited
  setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
  try proxy.flushAndWait()
  say("flushed, \(proxy.pendingChangeCount) pending")

case "open-as-other-user", "open-as-is":
  // Prints the error.
  if command == "open-as-other-user" { becomeNobody() }
  do {
    _ = try open().makeConnection().read { try $0.allCollections() }
    say("opened")
  } catch let error as CofferError {
    say("\(error)")
    exit(1)
  }

case "read-as-other-user":
  // Read-only: prints the outcome of opening, and the value or error of each key named on standard input.
  becomeNobody()
  do {
    let database = try Database.open(at: store, key: .keyFile(keyFile), options: .init(isReadOnly: true))
    let connection = try database.makeConnection()
    say(try database.status().logProblem == nil ? "opened" : "opened without the end of the log")
    while let key = readLine() {
      do {
        say(try connection.read { try $0.object(forKey: key, as: String.self) }.map { "\($0.prefix(20))" } ?? "nothing")
      } catch let error as CofferError {
        say("\(error)")
      }
    }
    try database.close()
  } catch let error as CofferError {
    say("\(error)")
    exit(1)
  }

case "disable-core-dumps":
  // Prints whether the process can be dumped, before and after, and the limit it then has.
  #if os(Linux)
    let getDumpable: CInt = 3  // PR_GET_DUMPABLE in <linux/prctl.h>
    say("\(processControl(getDumpable, 0, 0, 0, 0))")
    try CoreDumps.disable()
    say("\(processControl(getDumpable, 0, 0, 0, 0))")
    let limits = try String(contentsOfFile: "/proc/self/limits", encoding: .utf8)
    say(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }.map(String.init) ?? "")
  #else
    try CoreDumps.disable()
  #endif

#if os(Linux)
  case "fail-allocations":
    // fail-allocations - - LIBRARY once|lasting FROM STEP COUNT: prints the outcome of each session.
    guard let library = AllocationFaults.Library(rawValue: rest[0]), let first = Int(rest[2]), let step = Int(rest[3]),
      let count = Int(rest[4])
    else { fatalError("these are no allocations: \(rest)") }
    let numbers = (0..<count).lazy.map { first + $0 * step }
    try AllocationRun.runInProcesses(library, numbers: numbers, isLasting: rest[1] == "lasting") { number, outcome in
      say("\(number) \(outcome)")
    }

  case "allocation-session":
    // allocation-session FOLDER - LIBRARY once|lasting NUMBER: one of the sessions of fail-allocations.
    guard let library = AllocationFaults.Library(rawValue: rest[0]), let number = Int(rest[2]) else {
      fatalError("this is no allocation: \(rest)")
    }
    say(
      AllocationRun.describe {
        try AllocationRun.run(library, in: store, number: number, isLasting: rest[1] == "lasting")
      })
    // The rest of the session would end with failing allocations.
    _exit(0)

  case "inspect-session":
    // inspect-session FOLDER -: the remains of such a session.
    say(AllocationRun.describe { AllocationRun.inspect(store) })

  case "interrupt-calls":
    // interrupt-calls - -: runs the session with each call interrupted, and prints how many were.
    let folder = try ScratchFolder()
    let keys = try (0..<4).map { _ in KeySource.key(try .random(count: 32)) }
    let session = FaultSession(in: folder.path, vfs: .standard, keys: keys)
    InterruptedCalls.start()
    for step in FaultSession.Step.allCases { try session.perform(step) }
    say("\(InterruptedCalls.interruptedCount)")

  case "without-keyring":
    // without-keyring - - PROGRAM [ARGUMENT…]: runs a program without the kernel's keyrings, as in a container.
    refuseKeyrings()
    execv(rest[0], rest.map { strdup($0) } + [nil])
    fatalError("\(rest[0]) could not be run")

  case "ask-as-other-user":
    // ask-as-other-user - - SOCKET: prints how many bytes an agent answers.
    becomeNobody()
    // The agent may have closed the connection first.
    signal(SIGPIPE, SIG_IGN)
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: rest[0].utf8) }
    let result = withUnsafeBytes(of: &address) {
      connect(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, socklen_t($0.count))
    }
    guard result == 0 else { fatalError("cannot connect to \(rest[0])") }
    var request = UInt8(ascii: "k")
    write(descriptor, &request, 1)
    var answer = [UInt8](repeating: 0, count: 64)
    say("\(max(0, read(descriptor, &answer, answer.count)))")
#endif

default:
  FileHandle.standardError.write(Data("there is no command \(command)\n".utf8))
  exit(2)
}
