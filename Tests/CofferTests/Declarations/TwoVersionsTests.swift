import Foundation
import TestSupport
import Testing

@testable import Coffer

/// The table of the article on changing settings, with two programs on one store: version 1 has `width` and `delay`, in
/// seconds; version 2 has `window.width` and `delay.ms`.
@Suite("Two versions of a program with renamed settings") struct TwoVersionsTests {
  private let store: TemporaryStore
  private let database: Database

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
  }

  /// A running program.
  private final class Program {
    private let child: RunningChild

    init(_ store: TemporaryStore, _ version: String, mayRunFor seconds: Int = 3600) throws {
      child = try store.startWorker("program", version, "\(seconds)")
      try #require(child.readLine() == "ready")
    }

    @discardableResult
    func ask(_ line: String) throws -> String? {
      try child.write(line)
      return child.readLine()
    }

    func end() { child.kill() }
  }

  /// The answer of a program that starts, which need not be that it is ready.
  private func start(_ version: String, mayRunFor seconds: Int = 3600, dying: String? = nil) throws -> String? {
    let child = try store.startWorker("program", version, "\(seconds)", dying ?? "never")
    defer { child.kill() }
    return child.readLine()
  }

  private func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) throws -> Result {
    try database.makeConnection().read(body)
  }

  private func values() throws -> [String: Value] {
    try read { transaction in
      var values: [String: Value] = [:]
      for key in try transaction.allKeys(inCollection: "shop") {
        values[key] = try transaction.value(forKey: key, inCollection: "shop")
      }
      return values
    }
  }

  private func history(_ key: String) throws -> [Value] {
    try read { try $0.history(forKey: key, inCollection: "shop").map(\.value) }
  }

  // MARK: - Running at the same time

  @Test("6.18 hear what the other sets, converted, and version 1 hears nothing when version 2 starts")
  func rolling() throws {
    let old = try Program(store, "1")
    try old.ask("set width 900")
    try old.ask("set delay 2.5")
    #expect(try old.ask("listen width 900") == "listening")
    #expect(try old.ask("listen delay 2.5") == "listening")
    let new = try Program(store, "2")
    #expect(try new.ask("get width") == "900")
    #expect(try new.ask("get delay") == "2500")
    #expect(try new.ask("listen width 900") == "listening")
    #expect(try new.ask("listen delay 2500") == "listening")
    try new.ask("set width 1000")
    try new.ask("set delay 3500")
    // Never a default, and never milliseconds.
    #expect(try old.ask("wait width 1000") == "900 1000")
    #expect(try old.ask("wait delay 3.5") == "2.5 3.5")
    // A value that is followed by another one at once may not be heard.
    #expect(try new.ask("wait width 1000") == "900 1000")
    #expect(try new.ask("wait delay 3500") == "2500 3500")
    try old.ask("set width 1100")
    try old.ask("set delay 4.5")
    #expect(try new.ask("wait width 1100") == "900 1000 1100")
    #expect(try new.ask("wait delay 4500") == "2500 3500 4500")
    #expect(try values() == ["width": 1100, "window.width": 1100, "delay": 4.5, "delay.ms": 4500])
    #expect(try read { try $0.itemsBehind().isEmpty })
  }

  @Test("see a removal under both names")
  func removal() throws {
    let old = try Program(store, "1")
    try old.ask("set width 900")
    let new = try Program(store, "2")
    #expect(try new.ask("get width") == "900")
    try old.ask("reset width")
    #expect(try new.ask("get width") == "800")
    try old.ask("set width 1000")
    try new.ask("reset width")
    #expect(try old.ask("get width") == "800")
    #expect(try values().isEmpty)
  }

  @Test("keep their last value when the other sets one that they cannot have, and that is recorded")
  func refused() throws {
    let old = try Program(store, "1")
    try old.ask("set width 900")
    try old.ask("set delay 2.5")
    let new = try Program(store, "2")
    // Version 1 allows up to 2000, version 2 up to 5000; version 2 has no negative delays.
    try new.ask("set width 3000")
    try old.ask("set delay -1")
    #expect(try old.ask("get width") == "900")
    #expect(try new.ask("get width") == "3000")
    #expect(try new.ask("get delay") == "2500")
    let behind = try read { try $0.itemsBehind().map { "\($0.place) \($0.source)" } }
    #expect(Set(behind) == ["shop/width shop/window.width", "shop/delay.ms shop/delay"])
    // The next value that both can have is in both.
    try new.ask("set width 1500")
    try old.ask("set delay 1")
    #expect(try new.ask("listen delay 1000") == "listening")
    #expect(try values() == ["width": 1500, "window.width": 1500, "delay": 1.0, "delay.ms": 1000])
    #expect(try read { try $0.itemsBehind().isEmpty })
  }

  // MARK: - One after the other

  @Test("find the last values after a rollback, whichever set them, and again after the next update")
  func rollback() throws {
    var old = try Program(store, "1")
    try old.ask("set width 900")
    try old.ask("set delay 2.5")
    old.end()
    var new = try Program(store, "2")
    try new.ask("set width 1000")
    try new.ask("set delay 3500")
    new.end()
    old = try Program(store, "1")
    #expect(try old.ask("get width") == "1000")
    #expect(try old.ask("get delay") == "3.5")
    try old.ask("set width 1100")
    try old.ask("set delay 4.5")
    old.end()
    // No program that can convert the delay ran meanwhile.
    #expect(try read { try $0.itemsBehind().map(\.place.description) } == ["shop/delay.ms"])
    #expect(try values() == ["width": 1100, "window.width": 1100, "delay": 4.5, "delay.ms": 3500])
    new = try Program(store, "2")
    #expect(try new.ask("get width") == "1100")
    #expect(try new.ask("get delay") == "4500")
  }

  @Test("keep former names that version 1 uses for the first time after version 2")
  func newestFirst() throws {
    let new = try Program(store, "2")
    try new.ask("set width 1000")
    try new.ask("set delay 3500")
    #expect(try values() == ["window.width": 1000, "delay.ms": 3500])
    let old = try Program(store, "1")
    #expect(try old.ask("get width") == "1000")
    #expect(try old.ask("listen delay 3.5") == "listening")
    try old.ask("set width 1100")
    #expect(try new.ask("get width") == "1100")
  }

  @Test("are kept in step by any other writer: a transaction, a proxy, a program that knows neither name")
  func otherWriters() throws {
    let old = try Program(store, "1")
    try old.ask("set width 900")
    let new = try Program(store, "2")
    #expect(try new.ask("listen delay 1500") == "listening")
    let connection = try database.makeConnection()
    try connection.readWrite { try $0.setObject(1000, forKey: "width", inCollection: "shop") }
    #expect(try values()["window.width"] == 1000)
    try connection.readWrite { try $0.setObject(2000, forKey: "delay.ms", inCollection: "shop") }
    // Version 2 converts it.
    #expect(try old.ask("listen delay 2.0") == "listening")
    let proxy = try ConnectionProxy(database: database)
    // In the proxy's memory.
    #expect(try proxy.object(forKey: "width", inCollection: "shop") == 1000)
    try proxy.setObject(1100, forKey: "window.width", inCollection: "shop")
    try proxy.flushAndWait()
    #expect(try proxy.object(forKey: "width", inCollection: "shop") == 1100)
    #expect(try old.ask("get width") == "1100")
    try proxy.removeAllObjects(inCollection: "shop")
    try proxy.flushAndWait()
    #expect(try values().isEmpty)
  }

  @Test("have both names in each suite's part of a collection, and in environments, also in those that are made later")
  func suitesAndEnvironments() throws {
    let preferences = try Preferences(database: database, collection: "shop")
    try preferences.declare(Settings(version: "1") { Key("rate", in: "billing", default: 1) })
    let connection = try database.makeConnection()
    try connection.readWrite { transaction in
      try transaction.makeEnvironment("staging", of: "billing")
      try transaction.setObject(2, forKey: "rate", inCollection: "acme/billing")
      try transaction.setObject(3, forKey: "rate", inCollection: "billing@staging")
      try transaction.setObject(4, forKey: "rate", inCollection: "mybilling")
    }
    try preferences.declare(
      Settings(version: "2") { Key("price", in: "prices", default: 1, formerly: .named("rate", in: "billing")) })
    try connection.readWrite { try $0.setObject(5, forKey: "price", inCollection: "new/prices@test") }
    func get(_ key: String, _ collection: String) throws -> Int? {
      try connection.read { try $0.object(forKey: key, inCollection: collection) }
    }
    #expect(try get("price", "acme/prices") == 2)
    #expect(try get("price", "prices@staging") == 3)
    #expect(try get("rate", "new/billing@test") == 5)
    #expect(try get("price", "prices") == nil)
    #expect(try get("price", "mybilling") == nil && get("price", "myprices") == nil)
    try connection.readWrite { try $0.removeAllObjects(inCollection: "acme/billing") }
    #expect(try get("price", "acme/prices") == nil)
  }

  @Test("follow each other within a sealed collection, and a sealed value is never copied to one that is not")
  func sealed() throws {
    try database.vault.create(key: store.key)
    let preferences = try Preferences(database: database, collection: "shop")
    try preferences.declare(
      Settings(version: "1") {
        Key<String?>("old", in: "safe")
        Key<String?>("pin", in: "safe")
      })
    let connection = try database.makeConnection()
    func set(_ old: String, _ pin: String) throws {
      try connection.readWrite { transaction in
        try transaction.setObject(old, forKey: "old", inCollection: "safe")
        try transaction.setObject(pin, forKey: "pin", inCollection: "safe")
      }
    }
    func expect(_ new: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
      let (found, kind, isCopied, behind) = try connection.read { transaction in
        (
          try transaction.object(forKey: "new", inCollection: "safe", as: String.self),
          try transaction.info(forKey: "new", inCollection: "safe")?.kind,
          try transaction.hasObject(forKey: "pin", inCollection: "open"),
          try transaction.itemsBehind().map(\.place.description)
        )
      }
      #expect(found == new && kind == .sealed && !isCopied, sourceLocation: sourceLocation)
      #expect(behind == ["open/pin"], sourceLocation: sourceLocation)
    }
    try set("abc", "1234")
    try database.seal(collection: "safe")
    let new = Settings(version: "2") {
      Key<String?>("new", in: "safe", formerly: .named("old"))
      Key<String?>("pin", in: "open", formerly: .named("pin", in: "safe"))
    }
    try preferences.declare(new)
    try expect("abc")
    try set("def", "5678")
    try expect("def")
    // Nor is it once version 1 may no longer run.
    let other = try Preferences(database: database, collection: "other")
    try other.declare(Settings { Key<String?>("code", in: "open", formerly: .named("new", in: "safe")) })
    #expect(try connection.read { try !$0.hasObject(forKey: "code", inCollection: "open") })
  }

  // MARK: - The end

  @Test("keep both names until version 1 may no longer run, and then the history has the former value")
  func contraction() throws {
    let old = try Program(store, "1")
    try old.ask("set width 900")
    try old.ask("set delay 2.5")
    old.end()
    let new = try Program(store, "2")
    try new.ask("set width 1000")
    // Version 3 says that the former names may end, but version 1 may run for an hour.
    #expect(try start("3") == "ready")
    #expect(try values() == ["width": 1000, "window.width": 1000, "delay": 2.5, "delay.ms": 2500])
    let outcomes = try database.makeConnection().readWrite { try $0.contract { _ in true } }
    #expect(outcomes.count == 2)
    for case .contracted in outcomes.map(\.outcome) { Issue.record("It must not be ended.") }
    // As if the hour had passed.
    let connection = try database.makeConnection()
    try connection.setTime(Int64(Date().timeIntervalSince1970) + 2 * 3600)
    let ended = try connection.readWrite { try $0.contract { $0.former.key == ByteString("width") } }
    guard ended.count == 1, case .contracted = ended[0].outcome else {
      Issue.record("\(ended)")
      return
    }
    #expect(try values() == ["window.width": 1000, "delay": 2.5, "delay.ms": 2500])
    #expect(try history("width").contains(1000))
    // A version 1 that comes back anyway finds the value, not its default.
    #expect(try Program(store, "1").ask("get width") == "1000")
  }

  @Test("end the former names when version 3 says so and version 1 may no longer run, once all values are converted")
  func contractionByVersion() throws {
    var old = try Program(store, "1", mayRunFor: 0)
    try old.ask("set width 900")
    old.end()
    // What version 1 sets after version 2 has declared is not lost.
    _ = try start("2")
    old = try Program(store, "1", mayRunFor: 0)
    try old.ask("set delay 4.5")
    old.end()
    #expect(try values()["delay.ms"] == nil)
    let connection = try database.makeConnection()
    let outcomes = try connection.readWrite { try $0.contract { $0.isConverted } }
    guard outcomes.count == 1, case .behind = outcomes[0].outcome else {
      Issue.record("\(outcomes)")
      return
    }
    #expect(try start("3") == "ready")
    #expect(try values() == ["window.width": 900, "delay.ms": 4500])
    #expect(try history("delay") == [4.5])
    #expect(try read { try $0.renames().isEmpty })
  }

  @Test("refuse to start with another type under the same name, and the error says what to do")
  func retyped() throws {
    let old = try Program(store, "1", mayRunFor: 3600)
    try old.ask("set delay 2.5")
    let answer = try start("retyped")
    #expect(
      answer?.hasPrefix("shop/delay is declared as int, but shop 1, which may run until ") == true, "\(answer ?? "")")
    #expect(answer?.contains("under another name that was formerly shop/delay") == true)
    #expect(try values() == ["delay": 2.5])
    #expect(try read { try $0.declaredSettings().map(\.version) } == ["1", "1"])
    old.end()
    // Once version 1 may no longer run, the type may change, and version 1 is what does not start.
    let connection = try database.makeConnection()
    try connection.perform { try $0.connection.execute("UPDATE versions SET until = 0") }
    #expect(try start("retyped") == "ready")
    #expect(try values() == ["delay": 2500])
    #expect(try start("1")?.hasPrefix("shop/delay is declared as double, but shop 2") == true)
  }

  // MARK: - Killed

  @Test(
    "lose nothing, wherever one is killed: before or after the commit of each step", arguments: ["before", "after"])
  func killed(_ moment: String) throws {
    let isDone = moment == "after"
    let before = try Program(store, "1")
    try before.ask("set width 900")
    try before.ask("set delay 2.5")
    before.end()
    // Expanding.
    #expect(try start("2", dying: moment) == nil)
    let old: [String: Value] = ["width": 900, "delay": 2.5]
    #expect(try values() == (isDone ? ["width": 900, "delay": 2.5, "window.width": 900, "delay.ms": 2500] : old))
    #expect(try read { try $0.renames().count } == (isDone ? 2 : 0))
    // Setting, in the version that converts.
    var new = try Program(store, "2")
    try new.ask("die \(moment)")
    #expect(try new.ask("set delay 3500") == nil)
    #expect(try values()["delay"] == (isDone ? 3.5 : 2.5))
    #expect(try values()["delay.ms"] == (isDone ? 3500 : 2500))
    // Setting, in the version that cannot convert.
    let first = try Program(store, "1")
    try first.ask("die \(moment)")
    #expect(try first.ask("set width 1000") == nil)
    #expect(try values()["width"] == (isDone ? 1000 : 900))
    #expect(try values()["window.width"] == values()["width"])
    // Converting what the old version has set.
    let second = try Program(store, "1")
    try second.ask("set delay 5.5")
    second.end()
    #expect(try start("2", dying: moment) == nil)
    #expect(try values()["delay.ms"] == (isDone ? 5500 : 2500))
    #expect(try read { try $0.itemsBehind().count } == (isDone ? 0 : 1))
    new = try Program(store, "2")
    #expect(try new.ask("get delay") == "5500")
    #expect(try new.ask("get width") == (isDone ? "1000" : "900"))
    new.end()
    // Contracting.
    try database.makeConnection().perform { try $0.connection.execute("UPDATE renames SET until = 0") }
    try database.makeConnection().perform {
      try $0.connection.execute("UPDATE versions SET until = 0 WHERE version = '1'")
    }
    #expect(try start("3", dying: moment) == nil)
    #expect(try values().count == (isDone ? 2 : 4))
    #expect(try values()["delay.ms"] == 5500)
    #expect(try start("3") == "ready")
    #expect(try values() == ["window.width": isDone ? 1000 : 900, "delay.ms": 5500])
    #expect(try history("delay").contains(5.5))
  }

  // MARK: - Without another version

  @Test("write nothing when the same one opens the store again, until its last recorded opening is old")
  func opened() throws {
    #expect(try start("1", mayRunFor: 86_400) == "ready")
    let snapshot = try read { try $0.commitNumber() }
    #expect(try start("1", mayRunFor: 86_400) == "ready")
    #expect(try read { try $0.commitNumber() } == snapshot)
    try database.makeConnection().perform { try $0.connection.execute("UPDATE versions SET until = until - 9000000") }
    #expect(try start("1", mayRunFor: 86_400) == "ready")
    #expect(try read { try $0.commitNumber() } == snapshot + 1)
    let versions = try read { try $0.programVersions() }
    #expect(versions.map(\.name) == ["shop 1"])
    #expect(versions[0].until - versions[0].opened == 86_400_000 * 11 / 10)
  }
}
