import Testing

@testable import Coffer

@Suite("Kinds of changes")
struct ChangeKindTests {
  @Test("combine with a later change of the same key, by one table")
  func table() {
    let table: [[ChangeKind?]] = [
      // inserted, updated, removed, touched; each row is an earlier change, in the same order.
      [.inserted, .inserted, nil, .inserted],
      [.inserted, .updated, .removed, .updated],
      [.updated, .updated, .removed, .removed],
      [.inserted, .updated, .removed, .touched],
    ]
    for (earlier, row) in zip(ChangeKind.allCases, table) {
      for (later, both) in zip(ChangeKind.allCases, row) { #expect(earlier.followed(by: later) == both) }
    }
  }

  @Test("combine in a row of the change log and in an event of a proxy in the same way", arguments: ChangeKind.allCases)
  func everywhere(earlier: ChangeKind) throws {
    for later in ChangeKind.allCases {
      let both = earlier.followed(by: later)
      var changes = ChangeSet()
      changes.record("k", in: 1, .whole(earlier))
      changes.record("k", in: 1, .whole(later))
      #expect(changes.collections[1]?.keys[ByteString("k")]?.kind == both)
      // A listener may have been told of the first, and has to be told of the second.
      let events = try [earlier, later].map { try event($0) }
      #expect(events[0].merged(with: events[1]).changes.map(\.kind) == [both ?? later])
    }
  }

  private func event(_ kind: ChangeKind) throws -> ConnectionProxy.ChangeEvent {
    let database = try Database.inMemory()
    return ConnectionProxy.ChangeEvent(
      origin: .elsewhere,
      changes: [.init(collection: "c", key: "k", kind: kind, before: nil, after: nil, core: database.core)],
      scope: .keys)
  }
}
