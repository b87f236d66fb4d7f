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
