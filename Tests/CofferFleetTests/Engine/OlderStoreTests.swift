import Foundation
import Testing

@testable import Coffer
@testable import CofferFleet

@Suite("A host whose store was put back to an earlier state")
struct OlderStoreTests {
  let carrier = MemoryCarrier()

  /// Two hosts in step, and the store of the first one from before it pushed changes of `x`, `y` and `z`.
  private func pair() async throws -> (a: Host, b: Host, older: Data) {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (a, b) = (hosts[0], hosts[1])
    for key in ["x", "z"] { try a.set("old", key) }
    try await a.sync()
    let older = try a.restart(carrier)
    try a.set("new", "x")
    try a.set("added", "y")
    try a.set(nil, "z")
    #expect(try await a.sync().recoveredCount == 0)
    #expect(try await b.sync().recoveredCount == 0)
    return (a, b, older)
  }

  @Test("recovers what it had pushed, reports it, and loses only what it had not pushed")
  func pushed() async throws {
    let (a, b, older) = try await pair()
    try a.set("not pushed", "u")
    try a.restart(carrier, with: older)
    #expect(try a.contents() == ["x": "old", "z": "old"])
    #expect(try await a.sync().recoveredCount == 3)
    #expect(try a.contents() == ["x": "new", "y": "added"])
    #expect(try await a.sync() == SyncReport())
    #expect(try await b.sync().pulledCount == 0)
    #expect(try b.contents() == a.contents())
    #expect(try await a.fleet.conflicts() == [])
  }

  @Test("pushes later changes, and keeps what it had pushed in the history")
  func changedSince() async throws {
    let (a, b, older) = try await pair()
    try a.restart(carrier, with: older)
    try a.set("newer", "x")
    try a.set("newer", "y")
    #expect(try await a.sync().recoveredCount == 1)
    try await b.sync()
    for host in [a, b] { #expect(try host.contents() == ["x": "newer", "y": "newer"]) }
    #expect(try a.history("x").first == "new")
    #expect(try a.history("y").first == "added")
  }

  @Test("reports what the other pushed if two hosts use copies of one store")
  func twoHosts() async throws {
    let (a, _, _) = try await pair()
    let folder = a.folder + ".copy"
    try a.restart(carrier)
    try FileManager.default.copyItem(atPath: a.folder, toPath: folder)
    let copy = try Host("a", store: folder)
    try copy.restart(carrier)
    try copy.set("of the copy", "x")
    try await copy.sync()
    #expect(try await a.sync().recoveredCount == 1)
    #expect(try a.get("x") == "of the copy")
  }

  /// A host with a copy of another one's store, whose programs say that they run on `name`.
  private func copy(of host: Host, on name: String) throws -> Host {
    let folder = host.folder + ".copy"
    let author = Author(text: host.database.core.authorText)
    try host.restart(carrier)
    try FileManager.default.copyItem(atPath: host.folder, toPath: folder)
    let copy = try Host(host.name, store: folder)
    try copy.restart(carrier)
    for (host, name) in [(host, author?.host ?? ""), (copy, name)] {
      host.database.core.setAuthor(Author(program: "test", user: "test", host: name, actor: nil))
    }
    return copy
  }

  @Test("is distinguished from one with a copy of its store on another host: both name that host until they have left")
  func twins() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (a, b) = (hosts[0], hosts[1])
    let copy = try copy(of: b, on: "the copy")
    #expect(try await b.fleet.status().twin == nil)
    try copy.set("1", "x")
    try await copy.sync()
    #expect(try await copy.fleet.status().twin == nil)
    // It may as well have been put back.
    try await b.sync()
    let sign = try #require(try await b.fleet.status().twin)
    #expect(!sign.isCertain && sign.host == "the copy")
    try b.set("2", "x")
    try await b.sync()
    try await copy.sync()
    try copy.set("3", "y")
    try await copy.sync()
    for host in [b, copy] { try await host.sync() }
    let proof = try #require(try await b.fleet.status().twin)
    #expect(proof.isCertain && proof.host == "the copy" && proof.firstFound == sign.firstFound)
    try b.set("4", "y")
    try await b.sync()
    try await copy.sync()
    #expect(try await copy.fleet.status().twin?.isCertain == true)
    #expect(try await a.fleet.status().twin == nil)
    // The way out: each gets an identity of its own.
    try await a.fleet.remove("b")
    for (host, name) in [(b, "b-1"), (copy, "b-2")] {
      await #expect(throws: FleetError.removed) { try await host.sync() }
      try await host.fleet.leave()
      try await host.join(try await a.fleet.invite(name, role: .writer), carrier)
      try await a.sync()
      try await host.sync()
      #expect(try await host.fleet.status().twin == nil)
    }
    for (number, host) in [b, copy, b, copy].enumerated() {
      try host.set("\(number)", "z")
      for host in [b, copy, b] { try await host.sync() }
    }
    for host in [b, copy] { #expect(try await host.fleet.status().twin == nil) }
  }

  @Test("is not taken for another host, however often its store is put back")
  func noTwin() async throws {
    let a = try await fleet(of: "a", on: carrier)[0]
    for number in 0..<4 {
      let older = try a.restart(carrier)
      try a.set("\(number)", "x")
      try await a.sync()
      try a.restart(carrier, with: older)
      #expect(try await a.sync().recoveredCount == 1)
      try a.set("since", "y\(number)")
      try await a.sync()
      #expect(try await a.fleet.status().twin?.isCertain == false)
    }
    a.setTime(Int64(Date().timeIntervalSince1970) + 91 * 86_400)
    #expect(try await a.fleet.status().twin == nil)
  }

  @Test("loses no change of two hosts that use copies of one store: the later one wins, and both are on record")
  func clones() async throws {
    let hosts = try await fleet(of: "a", "b", on: carrier)
    let (a, b) = (hosts[0], hosts[1])
    let start: Int64 = 1_000_000
    for host in hosts { host.setTime(start) }
    for key in ["x", "y"] { try a.set("old", key) }
    for host in hosts { try await host.sync() }
    try b.restart(carrier)
    let folder = b.folder + ".copy"
    try FileManager.default.copyItem(atPath: b.folder, toPath: folder)
    let copy = try Host("b", store: folder)
    try copy.restart(carrier)
    copy.setTime(start + 10)
    try copy.set("earlier", "x")
    try copy.set(nil, "y")
    b.setTime(start + 20)
    for key in ["x", "y"] { try b.set("later", key) }
    try await b.sync()
    copy.setTime(start + 30)
    let report = try await copy.sync()
    #expect(report.recoveredCount == 2 && report.conflictCount == 1)
    for host in [a, b, copy] {
      try await host.sync()
      #expect(try host.contents() == ["x": "later", "y": "later"])
    }
    #expect(try copy.history("x").first == "earlier")
    let conflict = try #require(try await copy.fleet.conflicts().first)
    #expect(conflict.key == "x" && conflict.winner == "b" && conflict.loser == "b")
  }
}
