import Foundation
import TestSupport
import Testing

@testable import Coffer

@Suite("The names of one setting") struct RenameRulesTests {
  private static let day: Int64 = 86_400
  private let store: TemporaryStore
  private let database: Database
  private let connection: Connection

  init() throws {
    store = try TemporaryStore()
    database = try store.open()
    connection = try database.makeConnection()
    try connection.setTime(2_000_000_000)
  }

  private func setDay(_ day: Int64) throws { try connection.setTime(2_000_000_000 + day * Self.day) }

  private func setting(_ name: String, formerly former: String..., type: SettingType = .int) -> Declaration {
    var declaration = Declaration(name, in: "net", type: type)
    declaration.formerNames = former.map { Declaration.FormerName(place: SettingPlace($0, in: "net")) }
    return declaration
  }

  private func declare(_ application: String = "a", _ version: String? = nil, _ settings: Declaration...) throws {
    try connection.readWrite { try $0.declare(settings, by: application, version: version) }
  }

  private func set(_ values: [(String, Int?)]) throws {
    try connection.readWrite {
      for (key, value) in values { try $0.setObject(value, forKey: key, inCollection: "net") }
    }
  }

  private func values() throws -> [String: Value] {
    try connection.read { transaction in
      var values: [String: Value] = [:]
      for key in try transaction.allKeys(inCollection: "net") {
        values[key] = try transaction.value(forKey: key, inCollection: "net")
      }
      return values
    }
  }

  private func history(_ key: String) throws -> [Value] {
    try connection.read { try $0.history(forKey: key, inCollection: "net").map(\.value) }
  }

  /// The names that ended, and for whom others are kept.
  private func contract() throws -> (ended: [String], users: [String]) {
    let contractions = try connection.readWrite { try $0.contract { _ in true } }
    var (ended, users): ([String], [String]) = ([], [])
    for contraction in contractions {
      #expect(!contraction.isInFleet)
      switch contraction.outcome {
      case .contracted: ended.append(contraction.name.key.string)
      case .inUse(let user, _): users.append(user)
      case .inFleet: users.append("a fleet")
      case .behind(let item): users.append("\(item.place)")
      case .managed(let file, _, _): users.append("\(file)")
      }
    }
    return (ended, users)
  }

  // MARK: - One transaction

  @Test("follow at the end of a transaction: what it changed last, and not what it set again to an equal value")
  func transactions() throws {
    try declare("a", "1", setting("w"))
    try set([("w", 1)])
    try declare("a", "2", setting("ww", formerly: "w"))
    #expect(try values() == ["w": 1, "ww": 1])
    // Each case: what is set, and the value of both afterwards.
    let cases: [([(String, Int?)], Value?)] = [
      ([("w", 2)], 2), ([("ww", 3)], 3), ([("w", 4), ("ww", 3)], 4), ([("ww", 5), ("w", 4)], 5),
      ([("w", 6), ("ww", 7)], 7), ([("ww", 8), ("w", 9)], 9),
      ([("w", 10), ("ww", nil)], 10), ([("w", nil), ("ww", 11)], 11),
      ([("w", 11), ("ww", nil)], 11), ([("w", nil), ("ww", 11)], 11), ([("w", nil), ("w", 11), ("ww", nil)], 11),
      ([("w", nil)], nil), ([("w", 12)], 12), ([("w", nil), ("ww", nil)], nil), ([("w", 1), ("w", nil)], nil),
    ]
    for (changes, value) in cases {
      try set(changes)
      let expected: [String: Value] = value.map { ["w": $0, "ww": $0] } ?? [:]
      #expect(try values() == expected, "\(changes)")
    }
  }

  @Test("have the versions that were read until the transaction ends, and savepoints undo what follows from them")
  func versions() throws {
    try declare("a", "1", setting("w"))
    try set([("w", 1)])
    try declare("a", "2", setting("ww", formerly: "w"))
    let versions = try connection.read { transaction in
      try ["w", "ww"].map { try transaction.version(forKey: $0, inCollection: "net") }
    }
    struct Undone: Error {}
    try connection.readWrite { transaction in
      try transaction.setObject(2, forKey: "w", inCollection: "net", ifVersion: versions[0])
      try transaction.setObject(2, forKey: "ww", inCollection: "net", ifVersion: versions[1])
      try? transaction.inSavepoint {
        try transaction.setObject(3, forKey: "ww", inCollection: "net")
        throw Undone()
      }
    }
    #expect(try values() == ["w": 2, "ww": 2])
    try connection.readWrite { transaction in
      try transaction.removeAllObjects(inCollection: "net")
      try transaction.setObject(4, forKey: "w", inCollection: "net")
    }
    #expect(try values() == ["w": 4, "ww": 4])
  }

  @Test("keep the last value of the one that an import removes while only a program can convert the other")
  func waiting() throws {
    var converted = setting("ms", formerly: "s")
    converted.formerNames[0].isConverted = true
    try declare("a", "1", setting("s", type: .double))
    try connection.readWrite { try $0.setObject(1.5, forKey: "s", inCollection: "net") }
    try declare("a", "2", converted)
    try connection.readWrite { transaction in
      try transaction.setObject(1500, forKey: "ms", inCollection: "net")
      try transaction.setObject(1.5, forKey: "s", inCollection: "net")
    }
    try connection.readWrite { transaction in
      try transaction.setObject(2.5, forKey: "s", inCollection: "net")
      try transaction.removeObject(forKey: "ms", inCollection: "net")
    }
    #expect(try values() == ["s": 2.5, "ms": 1500])
    #expect(try connection.read { try $0.itemsBehind().map(\.place.description) } == ["net/ms"])
  }

  // MARK: - Expanding

  @Test("take the value of the version that runs, not one that was left under the new name, which the history keeps")
  func leftover() throws {
    try declare("a", "1", setting("w"))
    try set([("w", 1), ("ww", 5000)])
    try declare("a", "2", setting("ww", formerly: "w"))
    #expect(try values() == ["w": 1, "ww": 1])
    #expect(try history("ww") == [5000])
  }

  @Test("are never another type's without a conversion")
  func types() throws {
    try declare("a", "1", setting("s", type: .double))
    try connection.readWrite { try $0.setObject(1.5, forKey: "s", inCollection: "net") }
    try declare("a", "2", setting("ms", formerly: "s"))
    try set([("ms", 3)])
    #expect(try values() == ["s": 1.5, "ms": 3])
  }

  @Test("move where no version uses the former one, and stay where another application does")
  func unused() throws {
    try set([("w", 5), ("v", 6)])
    try declare("b", "1", setting("v"))
    try declare("a", "1", setting("ww", formerly: "w"), setting("vv", formerly: "v"))
    #expect(try values() == ["ww": 5, "v": 6, "vv": 6])
    #expect(try history("w") == [5])
  }

  @Test("may be three, after two renames, each known to the newest version")
  func twice() throws {
    try declare("a", "1", setting("u"))
    try set([("u", 1)])
    try declare("a", "2", setting("v", formerly: "u"))
    try declare("a", "3", setting("w", formerly: "v", "u"))
    #expect(try values() == ["u": 1, "v": 1, "w": 1])
    try set([("v", 2)])
    #expect(try values() == ["u": 2, "v": 2, "w": 2])
    // Version 1 is opened again, version 2 is not.
    try setDay(30)
    try declare("a", "1", setting("u"))
    try setDay(40)
    let contracted = try contract()
    #expect(contracted.ended == ["v"] && contracted.users == ["a 1"])
    try set([("u", 3)])
    #expect(try values() == ["u": 3, "w": 3])
    let kept = try connection.read { try $0.declaredSettings().compactMap(\.declaration.renamed) }
    #expect(kept == [SettingPlace("w", in: "net")])
  }

  @Test("of a setting in between are kept while two versions follow each other through it")
  func between() throws {
    try declare("a", "1", setting("u"))
    try set([("u", 1)])
    try declare("a", "2", setting("v", formerly: "u"))
    try declare("a", "3", setting("w", formerly: "v"))
    try setDay(30)
    try declare("a", "1", setting("u"))
    try setDay(40)
    #expect(try contract().ended == [])
    try set([("u", 2)])
    #expect(try values() == ["u": 2, "v": 2, "w": 2])
  }

  @Test("that cannot be meant are refused with a sentence, and nothing is changed")
  func refused() throws {
    try set([("a", 1), ("b", 2)])
    let cases: [([Declaration], String)] = [
      ([setting("a", formerly: "a")], "net/a is declared as formerly net/a, its own name"),
      ([setting("a", formerly: "b"), setting("b", formerly: "a")], "net/a is declared as formerly net/b, which is"),
      ([setting("b", formerly: "a"), setting("c", formerly: "b")], "net/c is declared as formerly net/b, which is"),
      (
        [setting("c", formerly: "a"), setting("d", formerly: "a")],
        "net/c and net/d are both declared as formerly net/a"
      ),
    ]
    for (settings, text) in cases {
      let error = #expect(throws: CofferError.self) {
        try connection.readWrite { try $0.declare(settings, by: "a", version: "2") }
      }
      #expect(error?.description.contains(text) == true, "\(error?.description ?? "")")
      #expect(try connection.read { try $0.declaredSettings().isEmpty })
    }
    #expect(try values() == ["a": 1, "b": 2])
  }

  private func refusal(_ application: String, _ version: String, _ settings: Declaration...) throws -> String {
    let (before, declared) = (try values(), try connection.read { try $0.declaredSettings() })
    let error = #expect(throws: CofferError.self) {
      try connection.readWrite { try $0.declare(settings, by: application, version: version) }
    }
    #expect(try values() == before)
    #expect(try connection.read { try $0.declaredSettings() } == declared)
    return error?.description ?? ""
  }

  @Test("that are kept are not declared as other settings until they have ended, and the error says when that is")
  func reused() throws {
    try declare("a", "1", setting("a"), setting("b"))
    try set([("a", 1), ("b", 2)])
    try declare("a", "2", setting("t", formerly: "a"), setting("b"))
    let shifted = try refusal("a", "3", setting("t"), setting("a", formerly: "b"))
    #expect(shifted.contains("net/a is declared as formerly net/b, but to a 1, net/a and net/b are two settings"))
    #expect(shifted.contains("it may run until 2033-"), "\(shifted)")
    let plain = try refusal("a", "3", setting("t"), setting("a"), setting("b"))
    #expect(plain.contains("net/a and net/t are names of one setting, which are kept until 2033-"), "\(plain)")
    // What it was is free once it has ended.
    try setDay(40)
    try declare("a", "2", setting("t", formerly: "a"), setting("b"))
    #expect(try contract().ended == ["a"])
    try declare("a", "3", setting("t"), setting("a"), setting("b"))
    try set([("a", 7)])
    #expect(try values() == ["a": 7, "b": 2, "t": 1])
  }

  @Test("of two settings are never those of one: by one version, by an earlier one, or by another application")
  func merged() throws {
    try declare("a", "1", setting("w"), setting("x"))
    try declare("b", "1", setting("w"))
    try set([("w", 5), ("x", 9)])
    // The new name is another application's setting.
    let taken = try refusal("b", "2", setting("x", formerly: "w"))
    #expect(taken.contains("a 1 declares net/x as a setting of its own"), "\(taken)")
    try declare("a", "2", setting("ww", formerly: "w"), setting("x"))
    let joined = try refusal("a", "3", setting("ww", formerly: "w", "x"))
    #expect(joined.contains("net/w and net/x are two settings"), "\(joined)")
    // A name that another application has renamed has one new name.
    let other = try refusal("b", "2", setting("wb", formerly: "w"))
    #expect(other.contains("net/w, which a has renamed to net/ww; declare it under that name"), "\(other)")
    try declare("b", "2", setting("ww", formerly: "w"))
    #expect(try values() == ["w": 5, "ww": 5, "x": 9])
  }

  @Test("keep their type while any version of any application reads it, also one that is not the newest")
  func retyped() throws {
    try declare("a", "1", setting("x", type: .double))
    try declare("a", "2")
    let error = try refusal("b", "1", setting("x"))
    #expect(error.contains("a 1, which may run until") && error.contains("reads it as double"), "\(error)")
    try setDay(40)
    try declare("b", "1", setting("x"))
    // The older version comes back.
    let back = try refusal("a", "1", setting("x", type: .double))
    #expect(back.contains("b 1") && back.contains("reads it as int"), "\(back)")
  }

  // MARK: - The end

  @Test("stay while another application declares them, however old the rename is")
  func otherApplication() throws {
    try declare("a", "1", setting("w"))
    try declare("b", "1", setting("w"))
    try set([("w", 5)])
    try declare("a", "2", setting("ww", formerly: "w"))
    try setDay(39)
    try declare("b", "1", setting("w"))
    try setDay(80)
    #expect(try contract() == ([], ["b 1"]))
    #expect(try values() == ["w": 5, "ww": 5])
  }

  @Test(
    "end as the version in force says, where a rename was taken back", arguments: [["1", "2", "3"], [nil, nil, nil]])
  func takenBack(_ versions: [String?]) throws {
    try declare("a", versions[0], setting("w"))
    try set([("w", 5)])
    try declare("a", versions[1], setting("ww", formerly: "w"))
    try declare("a", versions[2], setting("w"))
    #expect(try contract().ended == [])
    try setDay(80)
    #expect(try contract().ended == ["ww"])
    #expect(try values() == ["w": 5])
    #expect(try history("ww") == [5])
    #expect(try connection.read { try $0.renames().isEmpty })
    guard versions[1] != nil else { return }
    // The version in between is started again.
    try set([("w", 7)])
    try declare("a", versions[1], setting("ww", formerly: "w"))
    #expect(try values() == ["w": 7, "ww": 7])
    try set([("ww", 8)])
    #expect(try values() == ["w": 8, "ww": 8])
  }

  @Test("end one after another in a chain, also where a collection keeps no history")
  func chain() throws {
    try declare("a", "1", setting("w"))
    try set([("w", 5)])
    try declare("a", "2", setting("ww", formerly: "w"))
    try declare("a", "3", setting("www", formerly: "ww"))
    try setDay(80)
    #expect(try contract().ended.sorted() == ["w", "ww"])
    #expect(try values() == ["www": 5])
    #expect(try history("w") == [5] && history("ww") == [5])
  }

  @Test("end once where a rename was reversed by another one")
  func reversed() throws {
    try declare("a", "1", setting("w"))
    try set([("w", 5)])
    try declare("a", "2", setting("ww", formerly: "w"))
    try declare("a", "3", setting("w", formerly: "ww"))
    try setDay(80)
    #expect(try contract() == (["ww"], []))
    #expect(try values() == ["w": 5])
  }
}
