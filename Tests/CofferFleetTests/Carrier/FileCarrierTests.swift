import Foundation
import TestSupport
import Testing

@testable import CofferFleet

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

@Suite("A folder as a carrier", .timeLimit(.minutes(10)))
struct FileCarrierTests {
  let folder: ScratchFolder
  let carrier: FileCarrier

  init() throws {
    folder = try ScratchFolder()
    carrier = try FileCarrier(in: folder)
  }

  // MARK: - Files

  @Test("stores objects as documented, only for the user and the group")
  func layout() async throws {
    try await carrier.swapHead(from: nil, to: [1], [.put("records/a", [2, 3])])
    let path = try path(of: "records/a")
    // printf records/a | sha256sum
    #expect(path == folder.file("objects/f4/records_a"))
    #expect(try Data(contentsOf: URL(filePath: path)) == Data(try ObjectDigest(of: [2, 3]).bytes + [2, 3]))
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(try #require(attributes[.posixPermissions] as? Int) & 0o117 == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("temporary")).isEmpty)
    #expect(!FileManager.default.fileExists(atPath: folder.file("pending")))
  }

  @Test("ignores other files and leaves them alone")
  func foreignFiles() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    let head = URL(filePath: try path(of: "head"))
    let shard = head.deletingLastPathComponent()
    let names = [".head.Xa81bZ", "head~", "head (conflicted copy)", "head.sync-conflict-20260101-120000-ABC", "other"]
    for name in names { try Data([1]).write(to: shard.appending(path: name)) }
    try Data([1]).write(to: URL(filePath: folder.file("objects/README")))
    try FileManager.default.createDirectory(atPath: folder.file(".cache"), withIntermediateDirectories: true)
    #expect(try await carrier.contents().objects == ["head": [1]])
    try await carrier.swapHead(from: [1], to: [2])
    #expect(names.allSatisfy { FileManager.default.fileExists(atPath: shard.appending(path: $0).path) })
  }

  @Test("that a tool copies between hosts is read, and not written to", arguments: [".stfolder", ".dropbox", ".git"])
  func copied(_ sign: String) async throws {
    let place = folder.file("shared/fleet")
    let carrier = try FileCarrier(address: "file://\(place)")
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    try await carrier.swapHead(from: nil, to: [1])
    let mark = folder.file("shared/\(sign)")
    try FileManager.default.createDirectory(atPath: mark, withIntermediateDirectories: true)
    do {
      try await carrier.swapHead(from: [1], to: [2])
      Issue.record("it was written to")
    } catch CarrierError.copied(_, _, let found) {
      #expect(found == mark)
    }
    #expect(try await carrier.contents().objects == ["head": [1]])
  }

  @Test("whose disk or quota is full is full, and not unreachable", arguments: [ENOSPC, EDQUOT])
  func full(_ code: Int32) throws {
    guard case .full(_, let reason) = carrier.folder.failure(code, folder.path) else {
      return #expect(Bool(false), "\(carrier.folder.failure(code, folder.path))")
    }
    #expect(reason.hasPrefix(folder.path))
  }

  @Test("reports an incomplete file, and treats it neither as an object nor as missing")
  func partialCopy() async throws {
    try await carrier.swapHead(from: nil, to: [1], [.put("records/a", [2, 3])])
    let path = URL(filePath: try path(of: "head"))
    let whole = try Data(contentsOf: path)
    for part in [whole.prefix(0), whole.prefix(20), whole.prefix(32), whole + [9]] {
      try part.write(to: path)
      await expectUnreachable("incomplete") { _ = try await carrier.contents() }
      await expectUnreachable("incomplete") { _ = try await carrier.read(["head"]) }
      await expectUnreachable("incomplete") { try await carrier.swapHead(from: nil, to: [2]) }
    }
  }

  @Test("that is missing is not created by a commit that expects a head")
  func missingFolder() async throws {
    let carrier = try FileCarrier(address: "file://\(folder.file("mount"))")
    await expectUnreachable("is it mounted") { _ = try await carrier.contents() }
    await expectUnreachable("is it mounted") { _ = try await carrier.read(["head"]) }
    await expectUnreachable("No such file") { try await carrier.swapHead(from: [1], to: [2]) }
    #expect(!FileManager.default.fileExists(atPath: folder.file("mount")))
    #expect(try await carrier.swapHead(from: nil, to: [1]))
  }

  // MARK: - A writer that is killed

  @Test("shows a commit whose writer was killed at any moment completely or not at all")
  func killedWriter() async throws {
    let changes: [CarrierChange] = [.put("records/a", [2]), .put("records/c", [2]), .remove(name: "records/b")]
    for steps in 0...4 {
      let folder = try ScratchFolder()
      let carrier = try FileCarrier(in: folder)
      try await carrier.swapHead(from: nil, to: [1], [.put("records/a", [1]), .put("records/b", [1])])
      let log = EventLog(carrier, after: try await carrier.contents().revision)
      // What is there after so many steps of the commit.
      let pending = try PendingCommit(
        changes: changes + [.put("head", [2])], condition: CarrierCondition(name: "head", bytes: [1]))
      try carrier.folder.save(pending.encoded, at: carrier.folder.pendingPath)
      if steps > 0 { try carrier.folder.put("records/a", [2]) }
      if steps > 1 { try carrier.folder.remove(carrier.folder.objectPath("records/b")) }
      if steps > 2 { try carrier.folder.put("records/c", [2]) }
      if steps > 3 { try carrier.folder.put("head", [2]) }
      #expect(Set(try await log.changes(upTo: "head", [2])) == Set(changes + [.put("head", [2])]))
      let other = try FileCarrier(in: folder)
      #expect(try await other.contents().objects == ["head": [2], "records/a": [2], "records/c": [2]])
      #expect(try await other.swapHead(from: [2], to: [3]))
      #expect(!FileManager.default.fileExists(atPath: folder.file("pending")))
    }
  }

  @Test("ignores the record of an old commit that a copy still has")
  func staleCommit() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    let pending = try PendingCommit(
      changes: [.put("records/a", [0]), .put("head", [2])], condition: CarrierCondition(name: "head", bytes: [1]))
    try await carrier.swapHead(from: [1], to: [2], [.put("records/a", [1])])
    try carrier.folder.save(pending.encoded, at: carrier.folder.pendingPath)
    #expect(try await carrier.contents().objects == ["head": [2], "records/a": [1]])
    #expect(try await carrier.swapHead(from: [2], to: [3], [.put("records/b", [1])]))
    #expect(try await carrier.contents().objects == ["head": [3], "records/a": [1], "records/b": [1]])
  }

  @Test("applies nothing of a damaged commit, or of one by a newer version, and reports it")
  func damagedCommit() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    let pending = try PendingCommit(
      changes: [.put("records/a", [0]), .put("head", [2])], condition: CarrierCondition(name: "head", bytes: [1])
    ).encoded
    try carrier.folder.save(Array(pending.dropLast(1)), at: carrier.folder.pendingPath)
    await expectUnreachable("damaged") { _ = try await carrier.contents() }
    try carrier.folder.save([2] + pending.dropFirst(), at: carrier.folder.pendingPath)
    await expectUnreachable("newer version") { try await carrier.swapHead(from: [1], to: [2]) }
    // Half of a copy is not there yet.
    try Data([1, 2, 3]).write(to: URL(filePath: carrier.folder.pendingPath))
    #expect(try await carrier.contents().objects == ["head": [1]])
  }

  @Test("removes temporary files that a killed writer has left")
  func temporaryFiles() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    let left = folder.file("temporary/0123456789abcdef")
    try Data([1]).write(to: URL(filePath: left))
    try await carrier.swapHead(from: [1], to: [2])
    #expect(!FileManager.default.fileExists(atPath: left))
  }

  // MARK: - What other tools bring

  @Test("reports files that another tool adds, restores and removes, each once")
  func otherTools() async throws {
    try await carrier.swapHead(from: nil, to: [1], [.put("records/a", [1])])
    let old = try Data(contentsOf: URL(filePath: try path(of: "records/a")))
    try await carrier.swapHead(from: [1], to: [2], [.put("records/a", [2])])
    let log = EventLog(carrier, after: try await carrier.contents().revision)
    let sourceFolder = try ScratchFolder()
    let source = try FileCarrier(in: sourceFolder)
    try await source.swapHead(from: nil, to: [1], [.put("records/new", [5])])

    let new = try path(of: "records/new")
    try FileManager.default.createDirectory(
      atPath: URL(filePath: new).deletingLastPathComponent().path, withIntermediateDirectories: true)
    try FileManager.default.copyItem(
      atPath: source.folder.objectPath("records/new"), toPath: new)
    #expect(try await log.changes(upTo: "records/new", [5]) == [.put("records/new", [5])])
    try old.write(to: URL(filePath: try path(of: "records/a")), options: .atomic)
    #expect(try await log.changes(upTo: "records/a", [1]) == [.put("records/a", [1])])
    try FileManager.default.removeItem(atPath: new)
    guard case .changed(let changes, let revision)? = try await log.next() else { throw StreamEnded() }
    #expect(changes == [.remove(name: "records/new")])
    #expect(try await carrier.contents().revision == revision)
  }

  @Test("trusts the times of a file only once they are some seconds old")
  func lateTimes() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    let path = try path(of: "head")
    let changed = try #require(
      FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date)
    let nanoseconds = Int64(changed.timeIntervalSince1970) * 1_000_000_000
    #expect(FileStamp(of: path, now: nanoseconds + 2_000_000_000) == nil)
    #expect(FileStamp(of: path, now: nanoseconds + 10_000_000_000) != nil)
    #expect(FileStamp(of: "/bin/sh") != nil)
    #expect(FileStamp(of: "/none") == nil)
  }

  @Test("waits for a file that is being copied, and reports it when complete")
  func slowCopy() async throws {
    try await carrier.swapHead(from: nil, to: [1], [.put("records/a", [1])])
    let log = EventLog(carrier, after: try await carrier.contents().revision)
    let whole = Data(try ObjectDigest(of: [7, 8, 9]).bytes + [7, 8, 9])
    let path = try path(of: "records/a")
    try whole.prefix(34).write(to: URL(filePath: path))
    async let told = log.changes(upTo: "records/a", [7, 8, 9])
    try await carrier.swapHead(from: [1], to: [2])
    try whole.write(to: URL(filePath: path))
    let changes = try await told
    #expect(changes.filter { $0.name == "records/a" } == [.put("records/a", [7, 8, 9])])
  }

  @Test("gives equal states equal revisions, also in a copy, and others different ones")
  func revisions() async throws {
    try await carrier.swapHead(from: nil, to: [1], [.put("records/a", [1])])
    let first = try await carrier.contents().revision
    let copy = try ScratchFolder()
    try FileManager.default.copyItem(atPath: folder.file("objects"), toPath: copy.file("objects"))
    let mirror = try FileCarrier(in: copy)
    #expect(try await mirror.contents().revision == first)
    try await carrier.swapHead(from: [1], to: [2])
    #expect(try await carrier.contents().revision != first)
    try await carrier.swapHead(from: [2], to: [1])
    #expect(try await carrier.contents().revision == first)
  }

  @Test("that changed since a revision of another run must be read again, and the stream ends")
  func oldRevision() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    let revision = try await carrier.contents().revision
    let unchanged = EventLog(try FileCarrier(in: folder), after: revision)
    async let event = unchanged.next()
    try await carrier.swapHead(from: [1], to: [2])
    // Whether it looked before the change or after it.
    let first = try await event
    #expect(try await [.readAll, .changed([.put("head", [2])], carrier.contents().revision)].contains(first))
    let changed = EventLog(try FileCarrier(in: folder), after: revision)
    #expect(try await changed.next() == .readAll)
    #expect(try await changed.next() == nil)
  }

  @Test("is read without a lock if there is no lock file, as in a read-only copy")
  func copyWithoutLock() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    try FileManager.default.removeItem(atPath: folder.file("lock"))
    #expect(try await carrier.contents().objects == ["head": [1]])
    #expect(!FileManager.default.fileExists(atPath: folder.file("lock")))
  }

  @Test("waits for another program's lock, and a cancelled task does not")
  func heldLock() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    let held = try await FolderLock.take(.exclusive, of: carrier.folder)
    let carrier = carrier
    let waiting = Task { try await carrier.swapHead(from: [1], to: [2]) }
    let cancelled = Task { try await carrier.swapHead(from: [1], to: [3]) }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    held?.release()
    #expect(try await waiting.value)
    #expect(try await carrier.bytes("head") == [2])
  }

  @Test("lets a writer that waits for a reader in before readers that come later")
  func turns() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    let reading = try await FolderLock.take(.shared, of: carrier.folder)
    let carrier = carrier
    let writing = Task { try await carrier.swapHead(from: [1], to: [2]) }
    let door = open(carrier.folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { close(door) }
    try await waiting(upTo: .seconds(60)) {
      guard flock(door, LOCK_SH | LOCK_NB) == 0 else { return true }
      flock(door, LOCK_UN)
      return false
    }
    let later = Task { try await carrier.contents().objects["head"] }
    reading?.release()
    #expect(try await writing.value)
    #expect(try await later.value == [2])
  }

  @Test("is refused if the user may not write, and nothing changes", .enabled(if: geteuid() != 0))
  func notWritable() async throws {
    try await carrier.swapHead(from: nil, to: [1])
    try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: folder.file("temporary"))
    await #expect {
      try await carrier.swapHead(from: [1], to: [2])
    } throws: { error in
      if case .refused = error as? CarrierError { true } else { false }
    }
    #expect(try await carrier.bytes("head") == [1])
  }

  // MARK: - Addresses

  @Test(
    "has an address that names only a folder",
    arguments: [
      "file://", "file:///", "file://host/path", "file:///path?ca=x", "/path", "file:///bad%zz", "http:///path",
    ])
  func badAddress(_ address: String) {
    #expect {
      _ = try FileCarrier(address: address)
    } throws: { error in
      if case .badAddress(address, _) = error as? CarrierError { true } else { false }
    }
  }

  @Test("may have a path with spaces")
  func encodedPath() throws {
    #expect(try FileCarrier(address: "file:///srv/my%20fleet").folder.path == "/srv/my fleet")
  }

  // MARK: -

  private func path(of name: String) throws -> String { try carrier.folder.objectPath(name) }

  private func expectUnreachable(_ reason: String, _ body: () async throws -> Void) async {
    await #expect {
      try await body()
    } throws: { error in
      if case .unreachable(_, let text) = error as? CarrierError { text.contains(reason) } else { false }
    }
  }
}
