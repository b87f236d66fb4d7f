import Foundation
import TestSupport
import Testing

@testable import CofferFleet

@Suite("An etcd that fails to answer", .timeLimit(.minutes(10)))
struct EtcdConnectionTests {
  @Test("is unreachable if nothing listens, for reads and writes, and its stream waits until cancelled")
  func refusedConnection() async throws {
    let port = try LoopbackPort.free(count: 1)[0]
    let carrier = try EtcdCarrier(address: "etcd://127.0.0.1:\(port)/test")
    await expect("unreachable") { _ = try await carrier.contents() }
    await expect("unreachable") { try await carrier.swapHead(from: nil, to: [1]) }
    let relay = try RecordingRelay(to: port)
    let log = EventLog(
      try EtcdCarrier(address: "etcd://127.0.0.1:\(relay.port)/test"), after: CarrierRevision(text: "1-1"))
    let task = Task { try await log.next() }
    try await waiting(upTo: .seconds(30)) { relay.connectionCount >= 3 }
    task.cancel()
    #expect(try await task.value == nil)
  }

  @Test(
    "is garbled when its answer is not etcd's",
    arguments: [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
      "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n[1,]", "HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\n<html>",
      "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "SSH-2.0-OpenSSH\r\n",
      "\u{0}\u{1}\n",
    ])
  func garbage(_ answer: String) async throws {
    let server = try LoopbackServer(saying: answer)
    let carrier = try EtcdCarrier(address: "etcd://127.0.0.1:\(server.port)/test")
    await expect("garbled") { _ = try await carrier.contents() }
    await expect("garbled") { try await carrier.swapHead(from: nil, to: [1]) }
    await expect("garbled") { _ = try await EventLog(carrier, after: CarrierRevision(text: "1-1")).next() }
  }

  @Test("is unreachable when it ends a connection without an answer, or in the middle of one")
  func shortAnswer() async throws {
    for answer in ["HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"]
    {
      let server = try LoopbackServer(saying: answer)
      let carrier = try EtcdCarrier(address: "etcd://127.0.0.1:\(server.port)/test")
      await expect("unreachable") { _ = try await carrier.contents() }
      await expect("unreachable") { try await carrier.swapHead(from: nil, to: [1]) }
    }
  }

  @Test("is left when it hangs and the task is cancelled")
  func hanging() async throws {
    let (requests, request) = AsyncStream.makeStream(of: Void.self)
    let server = try LoopbackServer { _ in
      request.yield()
      return ""
    }
    let carrier = try EtcdCarrier(address: "etcd://127.0.0.1:\(server.port)/test")
    let reading = Task { _ = try await carrier.contents() }
    let writing = Task { _ = try await carrier.swapHead(from: nil, to: [1]) }
    let log = EventLog(carrier, after: CarrierRevision(text: "1-1"))
    let listening = Task { try await log.next() }
    var iterator = requests.makeAsyncIterator()
    for _ in 0..<3 { await iterator.next() }
    for task in [reading, writing] {
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    listening.cancel()
    #expect(try await listening.value == nil)
  }

  @Test("is skipped for the next one, also when its answer is invalid", .enabled(if: EtcdServer.isInstalled))
  func nextEndpoint() async throws {
    let etcd = try await EtcdServer.common()
    let dead = try LoopbackPort.free(count: 1)[0]
    let garbling = try LoopbackServer(saying: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    let prefix = UUID().uuidString
    for port in [dead, garbling.port] {
      let address = etcd.address(prefix: "\(prefix)-\(port)").replacing("etcd://", with: "etcd://127.0.0.1:\(port),")
      let carrier = try EtcdCarrier(address: address)
      let revision = try await carrier.contents().revision
      #expect(try await EtcdCarrier(address: address.replacing("127.0.0.1:\(dead),", with: "")).read(["head"]).isEmpty)
      #expect(try await carrier.swapHead(from: nil, to: [1]))
      let log = EventLog(try EtcdCarrier(address: address), after: revision)
      #expect(try await log.changes(upTo: "head", [1]) == [.put("head", [1])])
    }
    // Nothing was sent to the one that does not listen, and so the commit may go to the next.
    let address = etcd.address(prefix: prefix).replacing("etcd://", with: "etcd://127.0.0.1:\(dead),")
    #expect(try await EtcdCarrier(address: address).swapHead(from: nil, to: [1]))
  }

  @Test("gets no commit again that another member took without answering")
  func lostAnswer() async throws {
    let first = try LoopbackServer(saying: "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
    let second = try LoopbackServer(
      saying:
        "HTTP/1.1 200 OK\r\nContent-Length: 56\r\n\r\n{\"header\":{\"cluster_id\":\"1\",\"revision\":\"2\"},\"succeeded\":true}"
    )
    let carrier = try EtcdCarrier(address: "etcd://127.0.0.1:\(first.port),127.0.0.1:\(second.port)/test")
    await expect("unreachable") { try await carrier.swapHead(from: nil, to: [1]) }
  }

  @Test("is unreachable when a request runs out of memory")
  func noMemory() async throws {
    let request = HTTPRequest(url: "http://127.0.0.1:1/", body: .bytes([]))
    let session = EtcdSession(address: try EtcdAddress("etcd://127.0.0.1:1/test"), password: nil)
    do throws(HTTPFailure) {
      _ = try await HTTPLoop(makeHandle: { nil }).response(to: request, limit: 1)
      Issue.record("something was sent")
    } catch {
      guard case .unreachable(_, let reason) = try session.carrierError(error, of: 0) else { throw error }
      #expect(reason.contains("out of memory for a request"))
      if case .connection(_, _, let wasSent) = error { #expect(!wasSent) }
    }
  }

  // MARK: - A member behind the others

  @Test(
    "continues if only the queried member lags behind, and not if the whole etcd was rolled back")
  func lowerRevision() async throws {
    for (cluster, event) in [
      (7, CarrierEvent.changed([.put("head", [2])], CarrierRevision(text: "1-8"))), (6, .readAll),
    ] {
      let server = try LoopbackServer { request in
        let header = "\"header\":{\"cluster_id\":\"1\",\"revision\":"
        guard request.contains("watch") else { return "HTTP/1.1 200 OK\r\n\r\n{\(header)\"\(cluster)\"}}" }
        // Keys and objects in base64: /test/head, and a byte 2.
        return """
          HTTP/1.1 200 OK\r\n\r
          {"result":{\(header)"5"},"created":true}}
          {"result":{\(header)"8"},"events":[{"kv":{"key":"L3Rlc3QvaGVhZA==","mod_revision":"8","value":"Ag=="}}]}}

          """
      }
      let carrier = try EtcdCarrier(address: "etcd://127.0.0.1:\(server.port)/test")
      #expect(try await EventLog(carrier, after: CarrierRevision(text: "1-7")).next() == event)
    }
  }

  @Test("reports a commit that arrives in fragments as one")
  func fragments() async throws {
    let server = try LoopbackServer { _ in
      let header = "\"header\":{\"cluster_id\":\"1\",\"revision\":\"9\"}"
      func event(_ key: String, _ revision: Int) -> String {
        "{\"kv\":{\"key\":\"\(Data("/test/\(key)".utf8).base64EncodedString())\",\"mod_revision\":\"\(revision)\"}}"
      }
      return """
        HTTP/1.1 200 OK\r\n\r
        {"result":{\(header),"created":true}}
        {"result":{\(header),"events":[\(event("a", 8)),\(event("b", 9))],"fragment":true}}
        {"result":{\(header),"events":[\(event("c", 9))],"fragment":true}}
        {"result":{\(header),"events":[\(event("head", 9))]}}

        """
    }
    let carrier = try EtcdCarrier(address: "etcd://127.0.0.1:\(server.port)/test")
    let log = EventLog(carrier, after: CarrierRevision(text: "1-7"))
    #expect(try await log.next() == .changed([.put("a", [])], CarrierRevision(text: "1-8")))
    #expect(
      try await log.next() == .changed([.put("b", []), .put("c", []), .put("head", [])], CarrierRevision(text: "1-9")))
  }

  // MARK: - Addresses

  @Test(
    "refuses an address with invalid parts",
    arguments: [
      "etcd://host", "etcd://host/", "etcd:///prefix", "etcd://a,,b/prefix", "http://host/prefix",
      "etcd://host/prefix?ca=/ca.pem",
      "etcds://host/prefix?cert=/c.pem", "etcds://host/prefix?timeout=5", "etcds://host/prefix?ca",
      "etcd://ho st/prefix",
      "etcds://host/prefix?ca=a&ca=b", "etcd://user@host/prefix", "host:2379",
    ])
  func badAddress(_ address: String) {
    #expect {
      _ = try EtcdCarrier(address: address)
    } throws: { error in
      guard case .badAddress(let shown, _) = error as? CarrierError else { return false }
      return shown == address.replacing("timeout=5", with: "timeout=…")
    }
  }

  @Test(
    "has an address without a password, which an error does not repeat",
    arguments: ["etcd://web:hunter2@host/prefix", "etcd://web:hun/hunter2@host:2379/prefix"])
  func passwordInAddress(_ address: String) {
    #expect {
      _ = try EtcdCarrier(address: address)
    } throws: { error in
      guard case .badAddress = error as? CarrierError else { return false }
      return !"\(error)".contains("hunter2") && "\(error)".contains("password")
    }
  }

  @Test("has the usual port, unless the address has another one")
  func endpoints() throws {
    let address = try EtcdAddress("etcds://a,b:1,[::1],[::1]:7/x/y/?ca=/ca%20file.pem")
    #expect(address.endpoints == ["https://a:2379", "https://b:1", "https://[::1]:2379", "https://[::1]:7"])
    #expect(address.prefix == Array("/x/y/".utf8))
    #expect(address.tls == HTTPTLS(authorities: "/ca file.pem"))
  }

  private func expect(_ kind: String, _ body: () async throws -> Void) async {
    await #expect {
      try await body()
    } throws: { error in
      switch error as? CarrierError {
      case .unreachable: kind == "unreachable"
      case .garbled: kind == "garbled"
      default: false
      }
    }
  }
}
