import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

/// One store, made once, and many kinds of damage to copies of it.
///
/// Items on intact pages must be saved completely: value, metadata, version, time, history. Nothing else may.
@Suite("Salvage") struct SalvageTests {
  private static let fixture = Result { try SalvageFixture() }

  private func expectSaved(
    allBut lost: Set<StoreContents.Name>, _ fixture: SalvageFixture, _ saved: StoreContents, _ comment: Comment,
    _ location: SourceLocation = #_sourceLocation
  ) {
    let expected = fixture.contents.without(lost)
    let missing = expected.items.filter { saved.items[$0.key] != $0.value }
    let false_ = saved.items.filter { expected.items[$0.key] != $0.value }
    #expect(missing.isEmpty, "\(comment): \(missing.count) missing", sourceLocation: location)
    #expect(false_.isEmpty, "\(comment): \(false_.count) false", sourceLocation: location)
  }

  @Test("of an intact store saves everything, and finds nothing damaged")
  func intact() throws {
    let fixture = try Self.fixture.get()
    let (report, saved) = try fixture.salvage { _ in }
    #expect(report.isComplete && report.damagedPages.isEmpty && report.lostItems.isEmpty)
    #expect(report.pageCount == fixture.pageCount && report.itemCount == fixture.contents.items.count)
    #expect(saved == fixture.contents)
    #expect(report.historicItemCount == fixture.contents.history.values.reduce(0) { $0 + $1.count })
    #expect(report.historicItemCount > 0)
  }

  @Test("saves an older version of a page that was put back: a limit that SECURITY.md names")
  func olderPage() throws {
    let store = try TemporaryStore()
    func commit(_ text: String) throws -> (bytes: Data, page: Int) {
      let database = try store.open()
      let connection = try database.makeConnection()
      try connection.readWrite { try $0.setObject(text, forKey: "k") }
      let page = try connection.perform { session in
        try session.connection.statement("SELECT rootpage FROM sqlite_schema WHERE name = 'items'").first {
          Int($0.integer(0))
        }
      }
      try database.close()
      return (try store.bytes(), try #require(page))
    }
    let older = try commit("older")
    var mixed = try commit("newer").bytes
    let range = SalvageFixture.offset(ofPage: older.page)..<SalvageFixture.offset(ofPage: older.page + 1)
    mixed.replaceSubrange(range, with: older.bytes[range])
    let (report, saved) = try SalvageFixture.salvage(mixed, key: store.key)
    #expect(report.isComplete && saved.items.values.map(\.value) == ["older"])
  }

  @Test("opens an older envelope with its revoked secret, which opening refuses: a limit that SECURITY.md names")
  func olderEnvelope() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject("value", forKey: "k") }
    let revoked = try KeySource.key(.random(count: 32))
    try database.addSlot(revoked)
    try database.close()
    let older = try store.bytes().prefix(Layout.envelopeByteCount)
    let reopened = try store.open()
    try reopened.removeSlot(1)
    try reopened.close()
    let mixed = try older + store.bytes().dropFirst(Layout.envelopeByteCount)
    let (report, saved) = try SalvageFixture.salvage(mixed, key: revoked)
    #expect(report.isComplete && saved.items.values.map(\.value) == ["value"])
  }

  @Test("refuses a log that is a pipe, a link or a folder, and waits for none")
  func strangeLog() throws {
    for make in [{ mkfifo($0, 0o600) }, { symlink("/etc/passwd", $0) }, { mkdir($0, 0o700) }] as [(String) -> Int32] {
      let store = try TemporaryStore()
      try store.open().close()
      let log = store.path + "-wal"
      try #require(make(log) == 0)
      #expect(throws: CofferError.permissionDenied(path: log, reason: "it is not a regular file; remove it")) {
        try Database.salvage(at: store.path, key: store.key, to: store.path + ".new", newKey: store.key)
      }
    }
  }

  @Test("with a damaged leaf loses the items on it, and names them")
  func leaf() throws {
    let fixture = try Self.fixture.get()
    for page in [fixture.leaves[0], fixture.leaves[fixture.leaves.count / 2], try #require(fixture.leaves.last)] {
      let (report, saved) = try fixture.salvage { $0.flipBit(ofPage: page) }
      let lost = fixture.names(onPages: [page])
      expectSaved(allBut: lost, fixture, saved, "leaf \(page)")
      #expect(!report.isComplete)
      #expect(report.damagedPages.map(\.numbers) == [page...page] && report.damagedPages[0].contents == .items)
      // Each of its items stands in the change log.
      #expect(Set(report.lostItems.map { StoreContents.Name(collection: $0.collection, key: $0.key) }) == lost)
    }
  }

  @Test("with a damaged interior page loses only the items on that page")
  func interior() throws {
    let fixture = try Self.fixture.get()
    #expect(fixture.interiors.count > 3)
    let root = try #require(fixture.roots["items"])
    for page in fixture.interiors.prefix(4) + [root] {
      let (report, saved) = try fixture.salvage { $0.flipBit(ofPage: page) }
      expectSaved(allBut: fixture.names(onPages: [page]), fixture, saved, "interior page \(page)")
      #expect(report.damagedPages.map(\.contents) == [.items])
    }
    let (_, saved) = try fixture.salvage { data in
      for page in fixture.interiors + [root] { data.flipBit(ofPage: page) }
    }
    expectSaved(allBut: fixture.names(onPages: fixture.interiors + [root]), fixture, saved, "all interior pages")
  }

  @Test("with a damaged overflow page loses that item, and names it")
  func overflow() throws {
    let fixture = try Self.fixture.get()
    for page in [fixture.overflows[0], fixture.overflows[fixture.overflows.count / 2]] {
      let (report, saved) = try fixture.salvage { $0.flipBit(ofPage: page) }
      let lost = try #require(fixture.names[page])
      #expect(lost.count == 1)
      expectSaved(allBut: lost, fixture, saved, "overflow page \(page)")
      #expect(report.lostItems.map(\.key) == lost.map(\.key) && report.damagedPages[0].contents == .items)
    }
  }

  @Test("without page 1 saves everything, but cannot know whether there were more pages")
  func firstPage() throws {
    let fixture = try Self.fixture.get()
    let (report, saved) = try fixture.salvage { $0.flipBit(ofPage: 1, at: 50) }
    #expect(saved == fixture.contents)
    #expect(!report.isComplete && !report.isPageCountKnown && report.damagedPages.map(\.contents) == [.structure])
    // And one more, whose contents are known from its parent page.
    let leaf = fixture.leaves[3]
    let (second, savedWithout) = try fixture.salvage {
      $0.flipBit(ofPage: 1)
      $0.flipBit(ofPage: leaf)
    }
    let lost = fixture.names(onPages: [leaf])
    expectSaved(allBut: lost, fixture, savedWithout, "page 1 and leaf \(leaf)")
    #expect(!second.isComplete && second.damagedPages.map(\.contents) == [.structure, .items])
    #expect(Set(second.lostItems.map { StoreContents.Name(collection: $0.collection, key: $0.key) }) == lost)
  }

  @Test("invents names for collections whose names are lost")
  func names() throws {
    let fixture = try Self.fixture.get()
    let page = try #require(fixture.roots["collections"])
    let (report, saved) = try fixture.salvage { $0.flipBit(ofPage: page) }
    #expect(report.renamedCollections == ["lost-1", "lost-2", "lost-3", "lost-4"] && !report.isComplete)
    #expect(saved.items.count == fixture.contents.items.count)
    #expect(Set(saved.items.keys.map(\.key)) == Set(fixture.contents.items.keys.map(\.key)))
    #expect(saved.history.values.reduce(0) { $0 + $1.count } == report.historicItemCount)
    #expect(report.historicItemCount > 0)
  }

  @Test("without tables that can be recreated saves everything")
  func dispensable() throws {
    let fixture = try Self.fixture.get()
    for table in ["meta", "changes", "history_by_time", "sqlite_sequence", "sqlite_autoindex_collections_1"] {
      let page = try #require(fixture.roots[table], "\(table)")
      let (report, saved) = try fixture.salvage { $0.flipBit(ofPage: page) }
      #expect(saved == fixture.contents && report.isComplete, "\(table)")
      #expect(report.damagedPageCount == 1)
    }
  }

  @Test("of a truncated store saves what comes before", arguments: [0.1, 0.5, 0.9])
  func cut(_ share: Double) throws {
    let fixture = try Self.fixture.get()
    let kept = Int(Double(fixture.pageCount) * share)
    let (report, saved) = try fixture.salvage { $0 = $0.prefix(SalvageFixture.offset(ofPage: kept + 1) - 100) }
    let lost = fixture.names(onPages: kept...fixture.pageCount)
    expectSaved(allBut: lost, fixture, saved, "cut to \(kept) pages")
    #expect(!report.isComplete && report.pageCount == fixture.pageCount)
    #expect(report.damagedPageCount == fixture.pageCount - kept + 1)
  }

  @Test("of an envelope alone creates an empty store, and reports it")
  func envelopeAlone() throws {
    let fixture = try Self.fixture.get()
    let (report, saved) = try fixture.salvage { $0 = $0.prefix(Layout.envelopeByteCount) }
    #expect(saved.items.isEmpty && !report.isComplete)
  }

  @Test("saves everything on intact pages, whichever others are damaged", arguments: 0..<10)
  func random(_ seed: UInt64) throws {
    let fixture = try Self.fixture.get()
    var random = SplitMix64(state: seed)
    let keeping = try Set([1, #require(fixture.roots["collections"])])
    let pages = Set((0..<(1 << seed)).map { _ in Int.random(in: 1...fixture.pageCount, using: &random) })
      .subtracting(keeping)
    let (report, saved) = try fixture.salvage { data in
      for page in pages { data.flipBit(ofPage: page, at: Int.random(in: 0..<4096, using: &random)) }
    }
    expectSaved(allBut: fixture.names(onPages: pages), fixture, saved, "pages \(pages)")
    #expect(report.damagedPageCount == pages.count)
    for item in report.lostItems where item.part == .item {
      #expect(saved.items[StoreContents.Name(collection: item.collection, key: item.key)] == nil)
    }
  }

  @Test("takes either copy of the envelope, and needs one of them")
  func envelope() throws {
    let fixture = try Self.fixture.get()
    for copy in [0, 1] {
      let (report, saved) = try fixture.salvage { $0[copy * Layout.envelopeCopyByteCount + 100] ^= 1 }
      #expect(report.isComplete && report.damagedEnvelopeCopies == [copy])
      #expect(saved == fixture.contents)
    }
    #expect(throws: CofferError.damaged(part: "envelope", reason: "both of its copies are damaged")) {
      try fixture.salvage { data in
        for copy in [0, 1] { data[copy * Layout.envelopeCopyByteCount + 100] ^= 1 }
      }
    }
  }

  @Test("uses the older copy of the envelope if the key does not open a newer one, which takes no key to write")
  func foreignEnvelope() throws {
    let fixture = try Self.fixture.get()
    let other = try TemporaryStore()
    let database = try other.open()
    for _ in 0..<4 { try database.addSlot(.key(.random(count: 32))) }
    try database.close()
    let copy = Layout.envelopeCopyByteCount..<Layout.envelopeByteCount
    let foreign = try other.bytes()[copy]
    let (report, saved) = try fixture.salvage { $0.replaceSubrange(copy, with: foreign) }
    #expect(report.isComplete && report.damagedEnvelopeCopies == [1])
    #expect(saved == fixture.contents)
  }

  @Test(
    "of a file that ends before its first page does not say that everything was saved", arguments: [1, 100, 3616, 4000])
  func cutInFirstPage(_ kept: Int) throws {
    let fixture = try Self.fixture.get()
    let (report, saved) = try fixture.salvage { $0 = $0.prefix(Layout.envelopeByteCount + kept) }
    #expect(saved.items.isEmpty && !report.isComplete && !report.isPageCountKnown)
  }

  @Test("names sealed values as lost if the vault is, and declarations on a damaged page")
  func vaultAndDeclarations() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    try database.vault.create(key: .key(.random(count: 32)))
    try database.seal(collection: "tokens")
    try database.makeConnection().readWrite { transaction in
      try transaction.setObject("secret", forKey: "k", inCollection: "tokens")
      try transaction.declare([Declaration("port", in: "shop", type: .int)], by: "shop", version: nil)
    }
    try database.close()
    let opened = try Store.open(at: store.path, key: store.key)
    let connection = try SQLiteConnection(store: opened, busyTimeout: .zero)
    let page = try connection.statement("SELECT rootpage FROM sqlite_schema WHERE name = 'declarations'").first {
      Int($0.integer(0))
    }
    try connection.execute("DELETE FROM vault")
    try connection.close()
    var bytes = try store.bytes()
    bytes.flipBit(ofPage: try #require(page))
    try bytes.write(to: URL(fileURLWithPath: store.path))
    let report = try Database.salvage(at: store.path, key: store.key, to: store.folder + "/new", newKey: store.key)
    #expect(!report.isComplete && report.damagedPages.map(\.contents) == [.declarations])
    #expect(report.lostItems.map(\.reason) == ["it is sealed, and the vault is lost"])
  }

  @Test("with a wrong key, or to an existing path, leaves nothing")
  func refusals() throws {
    let fixture = try Self.fixture.get()
    let other = try TemporaryStore()
    let new = other.folder + "/new"
    #expect(throws: CofferError.wrongKey) {
      try Database.salvage(at: fixture.original.path, key: other.key, to: new, newKey: other.key)
    }
    try Data("mine".utf8).write(to: URL(fileURLWithPath: new))
    #expect(throws: CofferError.storeExists(path: new)) {
      try Database.salvage(at: fixture.original.path, key: fixture.original.key, to: new, newKey: other.key)
    }
    #expect(throws: CofferError.storeNotFound(path: new + "x")) {
      try Database.salvage(at: new + "x", key: other.key, to: new + "y", newKey: other.key)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: other.folder).sorted() == ["key", "new"])
  }

  @Test("continues after the existing versions")
  func versions() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "a") }
    try database.makeConnection().readWrite { try $0.setObject(1, forKey: "b") }
    let version = try database.makeConnection().read { try $0.version(forKey: "b") }
    try database.close()
    let path = store.folder + "/new"
    _ = try Database.salvage(at: store.path, key: store.key, to: path, newKey: store.key)
    let connection = try Database.open(at: path, key: store.key).makeConnection()
    try connection.readWrite { try $0.setObject(2, forKey: "b", ifVersion: version) }
    #expect(try connection.read { try $0.version(forKey: "b") } > version)
    try connection.database.close()
  }
}
