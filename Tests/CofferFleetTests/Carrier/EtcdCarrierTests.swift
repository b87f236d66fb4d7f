import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferFleet

@Suite(
  "An etcd as a carrier", .serialized, .timeLimit(.minutes(10)),
  .enabled(if: EtcdServer.isInstalled, "etcd is not installed"))
struct EtcdCarrierTests {
  private let prefix = "test-\(UUID().uuidString)"

  // MARK: - The stream of changes

  @Test("asks for a full read if the changes in between were compacted")
  func compaction() async throws {
    let server = try await EtcdServer()
    let carrier = try EtcdCarrier(address: server.address(prefix: prefix))
    try await carrier.swapHead(from: nil, to: [1])
    let revision = try await carrier.contents().revision
    try await carrier.swapHead(from: [1], to: [2])
    try await carrier.swapHead(from: [2], to: [3])
    try await server.compact()
    let log = EventLog(carrier, after: revision)
    #expect(try await log.next() == .readAll)
    #expect(try await log.next() == nil)
  }

  @Test("continues while etcd compacts revisions already reported")
  func compactionDuringWatch() async throws {
    let server = try await EtcdServer()
    let carrier = try EtcdCarrier(address: server.address(prefix: prefix))
    try await carrier.swapHead(from: nil, to: [1])
    let log = EventLog(carrier, after: try await carrier.contents().revision)
    async let told = log.changes(upTo: "head", [6])
    for head in UInt8(1)...5 {
      try await carrier.swapHead(from: [head], to: [head + 1])
      try await server.compact()
    }
    // Changes not yet streamed may be gone; then the stream reports that.
    do {
      let heads = try await told.map { $0.name }
      #expect(heads == Array(repeating: "head", count: 5))
    } catch is StreamEnded {}
  }

  @Test("continues where it was after etcd is killed and restarted, with the changes made meanwhile")
  func restart() async throws {
    let server = try await EtcdServer()
    let address = server.address(prefix: prefix)
    let carrier = try EtcdCarrier(address: address)
    try await carrier.swapHead(from: nil, to: [1])
    let log = EventLog(carrier, after: try await carrier.contents().revision)
    for round in UInt8(1)...3 {
      async let told = log.changes(upTo: "head", [round + 1])
      try await server.restart()
      try await EtcdCarrier(address: address).swapHead(from: [round], to: [round + 1])
      #expect(try await told == [.put("head", [round + 1])])
    }
  }

  @Test("continues with another member when the leader of three is killed, and loses no acknowledged commit")
  func lostLeader() async throws {
    let server = try await EtcdServer(.init(memberCount: 3))
    let carrier = try EtcdCarrier(address: server.address(prefix: prefix))
    try await carrier.swapHead(from: nil, to: [0])
    let log = EventLog(
      try EtcdCarrier(address: server.address(prefix: prefix)), after: try await carrier.contents().revision)
    async let told = log.changes(upTo: "head", [40])
    var acknowledged: [UInt8] = []
    var head: UInt8 = 0
    while head < 40 {
      if head == 10, server.members.allSatisfy(\.isRunning) { try #require(try server.leader()).kill() }
      do {
        if try await carrier.swapHead(from: [head], to: [head + 1], [.put("records/\(head + 1)", [head])]) {
          acknowledged.append(head + 1)
          head += 1
        } else {
          head = try #require(try await carrier.bytes("head")?.first)
        }
      } catch let error as CarrierError {
        // The answer was lost, or no leader is elected yet: read the state to find out.
        guard case .unreachable = error else { throw error }
        try await waiting(upTo: .seconds(30)) {
          guard let now = try? await carrier.bytes("head")?.first else { return false }
          head = now
          return true
        }
      }
    }
    #expect(acknowledged.count > 30)
    let names = Set(try await carrier.contents().objects.keys)
    #expect(acknowledged.allSatisfy { names.contains("records/\($0)") })
    let heads = try await told.compactMap { $0.name == "head" ? $0.object?.bytes.first : nil }
    #expect(heads == Array(1...40))
  }

  @Test(
    "asks for a full read after etcd is restored from a snapshot, in watches and after a reconnection")
  func restoredSnapshot() async throws {
    let server = try await EtcdServer()
    let address = server.address(prefix: prefix)
    let carrier = try EtcdCarrier(address: address)
    try await carrier.swapHead(from: nil, to: [1])
    try server.saveSnapshot()
    for head in UInt8(1)...5 { try await carrier.swapHead(from: [head], to: [head + 1]) }
    let revision = try await carrier.contents().revision
    let log = EventLog(carrier, after: revision)
    async let event = log.next()
    try await server.restoreSnapshot()
    #expect(try await event == .readAll)
    #expect(try await EventLog(EtcdCarrier(address: address), after: revision).next() == .readAll)
    #expect(try await carrier.contents().objects == ["head": [1]])
  }

  @Test("asks for a full read after a revision of another cluster or carrier")
  func revisionOfAnotherCarrier() async throws {
    let carrier = try EtcdCarrier(address: try await EtcdServer.common().address(prefix: prefix))
    #expect(try await EventLog(carrier, after: CarrierRevision(text: "0123456789abcdef")).next() == .readAll)
    #expect(try await EventLog(carrier, after: CarrierRevision(text: "17-5")).next() == .readAll)
  }

  @Test("is watched again after a long silence, and misses nothing")
  func silence() async throws {
    let server = try await EtcdServer(.init(arguments: ["--experimental-watch-progress-notify-interval", "60s"]))
    let address = server.address(prefix: prefix)
    let relay = try RecordingRelay(to: server.members[0].clientPort)
    let carrier = try EtcdCarrier(
      address: "etcd://127.0.0.1:\(relay.port)/\(prefix)", password: nil, silenceLimit: .milliseconds(200))
    let writer = try EtcdCarrier(address: address)
    try await writer.swapHead(from: nil, to: [1])
    let log = EventLog(carrier, after: try await carrier.contents().revision)
    async let told = log.changes(upTo: "head", [9])
    for head in UInt8(1)...8 {
      // It asks again on another connection.
      let count = relay.connectionCount
      try await waiting(upTo: .seconds(30)) { relay.connectionCount > count }
      try await writer.swapHead(from: [head], to: [head + 1])
    }
    #expect(try await told.map { $0.object?.bytes } == (2...9).map { [$0] })
  }

  @Test("is watched through another member when the current one hangs")
  func hangingMember() async throws {
    let server = try await EtcdServer(.init(memberCount: 3))
    let carrier = try EtcdCarrier(
      address: server.address(prefix: prefix), password: nil, silenceLimit: .milliseconds(500))
    try await carrier.swapHead(from: nil, to: [1])
    let log = EventLog(carrier, after: try await carrier.contents().revision)
    async let told = log.changes(upTo: "head", [2])
    // The first of the address, at which the stream begins.
    server.members[0].signal(SIGSTOP)
    let others = server.address(prefix: prefix).replacing("127.0.0.1:\(server.members[0].clientPort),", with: "")
    let writer = try EtcdCarrier(address: others)
    try await waiting(upTo: .seconds(60)) { (try? await writer.swapHead(from: [1], to: [2])) != nil }
    #expect(try await told == [.put("head", [2])])
  }

  @Test("ignores objects under other prefixes")
  func prefixes() async throws {
    let server = try await EtcdServer.common()
    let carrier = try EtcdCarrier(address: server.address(prefix: prefix))
    let other = try EtcdCarrier(address: server.address(prefix: "\(prefix)-other"))
    try await carrier.swapHead(from: nil, to: [1])
    let log = EventLog(carrier, after: try await carrier.contents().revision)
    try await other.swapHead(from: nil, to: [7])
    try await carrier.swapHead(from: [1], to: [2])
    #expect(try await log.changes(upTo: "head", [2]) == [.put("head", [2])])
    #expect(try await carrier.contents().objects == ["head": [2]])
  }

  // MARK: - Large answers

  @Test("reads objects whose sizes differ a thousandfold")
  func sizes() async throws {
    let carrier = try EtcdCarrier(address: try await EtcdServer.common().address(prefix: prefix))
    var expected: [String: [UInt8]] = [:]
    var head: UInt8 = 0
    func commit(_ objects: [CarrierObject]) async throws {
      try await carrier.swapHead(from: head == 0 ? nil : [head], to: [head + 1], objects.map(CarrierChange.put))
      head += 1
      for object in objects { expected[object.name] = object.bytes }
    }
    for part in 0..<8 { try await commit((0..<100).map { CarrierObject(name: "a/\(part)-\($0)", bytes: [1]) }) }
    for part in 0..<10 {
      try await commit([
        CarrierObject(name: "b/\(part)", bytes: .init(repeating: 2, count: carrier.limits.objectByteCount))
      ])
    }
    expected["head"] = [head]
    #expect(try await carrier.contents().objects == expected)
    let names = Array(expected.keys)
    #expect(try await Set(carrier.read(names).map(\.name)) == Set(names))
  }

  // MARK: - Users

  @Test("accepts a user with the password, and reports a wrong one without showing it")
  func users() async throws {
    let server = try await EtcdServer()
    try server.enableUsers(prefix: prefix)
    let carrier = try EtcdCarrier(
      address: server.address(prefix: prefix, user: "web"), password: SecretBytes(copying: #"se"cr\et"#))
    #expect(try await carrier.swapHead(from: nil, to: [1]))
    let log = EventLog(carrier, after: try await carrier.contents().revision)
    try await carrier.swapHead(from: [1], to: [2])
    #expect(try await log.changes(upTo: "head", [2]) == [.put("head", [2])])

    let address = server.address(prefix: prefix, user: "web")
    let wrong = try EtcdCarrier(address: address, password: SecretBytes(copying: "wrong-password"))
    await expectRefusal("authentication failed") { _ = try await wrong.contents() }
    await expectRefusal("authentication failed") { try await wrong.swapHead(from: [2], to: [3]) }
    await expectRefusal("authentication failed") {
      _ = try await EventLog(wrong, after: carrier.contents().revision).next()
    }
    await expectRefusal("user name is empty") {
      _ = try await EtcdCarrier(address: server.address(prefix: prefix)).contents()
    }
    let elsewhere = try EtcdCarrier(
      address: server.address(prefix: "elsewhere", user: "web"), password: SecretBytes(copying: #"se"cr\et"#))
    await expectRefusal("permission denied") { _ = try await elsewhere.contents() }
    await expectRefusal("permission denied") {
      _ = try await EventLog(elsewhere, after: carrier.contents().revision).next()
    }
  }

  @Test("gets a new token when etcd has forgotten the old one, also for its stream")
  func forgottenToken() async throws {
    let server = try await EtcdServer()
    try server.enableUsers(prefix: prefix)
    let carrier = try EtcdCarrier(
      address: server.address(prefix: prefix, user: "web"), password: SecretBytes(copying: #"se"cr\et"#))
    try await carrier.swapHead(from: nil, to: [1])
    let revision = try await carrier.contents().revision
    // It keeps them in memory; the error is that of an expired one.
    try await server.restart()
    let log = EventLog(carrier, after: revision)
    async let told = log.changes(upTo: "head", [2])
    #expect(try await carrier.swapHead(from: [1], to: [2]))
    #expect(try await told == [.put("head", [2])])
    try await server.restart()
    #expect(try await carrier.swapHead(from: [2], to: [3]))
    #expect(try await log.changes(upTo: "head", [3]) == [.put("head", [3])])
  }

  @Test("continues without a token if etcd has no users")
  func noUsers() async throws {
    let carrier = try EtcdCarrier(
      address: try await EtcdServer.common().address(prefix: prefix, user: "web"), password: SecretBytes(copying: "any")
    )
    #expect(try await carrier.swapHead(from: nil, to: [1]))
  }

  // MARK: - Certificates

  @Test("is reached over TLS with a client certificate, and not without one or with another authority")
  func certificates() async throws {
    let certificates = try TestCertificates()
    let server = try await EtcdServer(.init(tls: certificates))
    let carrier = try EtcdCarrier(address: server.address(prefix: prefix, query: certificates.query()))
    #expect(try await carrier.swapHead(from: nil, to: [1]))
    let revision = try await carrier.contents().revision
    try await carrier.swapHead(from: [1], to: [2])
    #expect(try await EventLog(carrier, after: revision).changes(upTo: "head", [2]) == [.put("head", [2])])

    let others = try TestCertificates()
    for query in [
      certificates.query(authority: others.authority), others.query(), "?ca=/none.pem", "",
    ] {
      let stranger = try EtcdCarrier(address: server.address(prefix: prefix, query: query))
      await expectRefusal("127.0.0.1") { _ = try await stranger.contents() }
      await expectRefusal("127.0.0.1") { try await stranger.swapHead(from: [2], to: [3]) }
      await expectRefusal("127.0.0.1") { _ = try await EventLog(stranger, after: revision).next() }
    }
    // etcd refuses a client by an alert, which is lost if the connection is reset before it is read.
    for query in [others.query(authority: certificates.authority), certificates.query(hasClient: false)] {
      let stranger = try EtcdCarrier(address: server.address(prefix: prefix, query: query))
      await #expect(throws: CarrierError.self) { try await stranger.contents() }
      await #expect(throws: CarrierError.self) { try await stranger.swapHead(from: [2], to: [3]) }
    }
    #expect(try await carrier.bytes("head") == [2])
  }

  private func expectRefusal(_ reason: String, _ body: () async throws -> Void) async {
    await #expect {
      try await body()
    } throws: { error in
      guard case .refused(_, let text) = error as? CarrierError else { return false }
      return text.contains(reason) && !"\(error)".contains("wrong-password") && !"\(error)".contains("cr\\et")
    }
  }
}

extension EtcdServer {
  /// Forgets all revisions but the last.
  func compact() async throws {
    let status = try control(["endpoint", "status", "--write-out=json"]).text
    let revision = try #require(status.firstMatch(of: /"revision":(\d+)/)?.1)
    try control(["compact", "--physical", String(revision)])
  }

  /// Kills all members, and restarts them with their data.
  func restart() async throws {
    for member in members { member.kill() }
    for member in members { try member.start() }
    try await waitUntilReady()
  }

  private var snapshotPath: String { members[0].folder.file("snapshot") }

  func saveSnapshot() throws {
    try #require(try control(["snapshot", "save", snapshotPath], endpoints: [members[0]]).status == 0)
  }

  /// As an administrator does it who has lost the data.
  func restoreSnapshot() async throws {
    members[0].kill()
    try members[0].restore(from: snapshotPath)
    try members[0].start()
    try await waitUntilReady()
  }

  /// Lets the user `web` at a prefix, with the password `se"cr\et`.
  func enableUsers(prefix: String, permission: String = "readwrite") throws {
    for arguments in [
      ["user", "add", "root:root"], ["user", "add", #"web:se"cr\et"#], ["role", "add", "web"],
      ["role", "grant-permission", "web", permission, "--prefix=true", "/\(prefix)/"],
      ["user", "grant-role", "web", "web"],
      ["user", "grant-role", "root", "root"], ["auth", "enable"],
    ] { try #require(try control(arguments).status == 0, "\(arguments)") }
    hasUsers.set()
  }
}
