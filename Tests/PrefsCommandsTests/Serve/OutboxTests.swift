import Foundation
import PrefsCommands
import Synchronization
import Testing

@testable import PrefsServe

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("What waits for a client of prefs serve") struct OutboxTests {
  /// Where the client reads.
  private let reading: Int32
  private let outbox: Outbox

  init() throws {
    // The process must not end where a client has closed its end.
    signal(SIGPIPE, SIG_IGN)
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    (reading, outbox) = (ends[0], Outbox(ends[1]))
  }

  private func notify(_ line: String) {
    outbox.notify(line) { [outbox] in
      outbox.endDropping()
      return ["everything"]
    }
  }

  /// The next lines, up to one.
  private func lines(through last: String) throws -> [String] {
    var bytes: [UInt8] = []
    while !bytes.ends(with: Array("\(last)\n".utf8)) {
      var chunk = [UInt8](repeating: 0, count: 1 << 16)
      let count = read(reading, &chunk, chunk.count)
      try #require(count > 0)
      bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// Begins to write more than a pipe holds.
  private func block() throws -> String {
    let line = String(repeating: "x", count: 1 << 20)
    notify(line)
    var request = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
    try #require(poll(&request, 1, 60_000) == 1)
    return line
  }

  @Test("Too many notices become everything, once, and later ones come after it")
  func tooMany() throws {
    let first = try block()
    for number in 0..<1000 { notify("\(number)") }
    for word in ["too many", "dropped"] { notify(word) }
    #expect(try lines(through: "everything") == [first, "everything"])
    notify("later")
    #expect(try lines(through: "later") == ["later"])
    #expect(outbox.answer("answer"))
    #expect(try lines(through: "answer") == ["answer"])
    close(reading)
    #expect(!outbox.answer("answer"))
  }

  @Test("What stands for dropped notices comes before an answer that waits for them")
  func answerBehindNotices() throws {
    let first = try block()
    notify("of the change")
    let (outbox, answered) = (outbox, DispatchSemaphore(value: 0))
    Thread.detachNewThread {
      _ = outbox.answer("answer")
      answered.signal()
    }
    while !outbox.hasAnswer { sched_yield() }
    for number in 0..<1000 { notify("\(number)") }
    #expect(try lines(through: "answer") == [first, "everything", "answer"])
    answered.wait()
  }

  @Test("As many as may wait come one by one, and one that is longer than all may be comes alone")
  func bounds() throws {
    let first = try block()
    for number in 0..<1000 { notify("\(number)") }
    #expect(try lines(through: "999").count == 1001)
    let long = String(repeating: "y", count: 5 << 20)
    let second = try block()
    notify(long)
    #expect(try lines(through: "yyy") == [second, long] && first.utf8.count == second.utf8.count)
    let third = try block()
    notify(long)
    notify("too much")
    #expect(try lines(through: "everything") == [third, "everything"])
  }

  @Test("A socket that its client closes with something unread is at its end, and no error")
  func reset() throws {
    var ends: [Int32] = [0, 0]
    #if canImport(Glibc)
      let stream = Int32(SOCK_STREAM.rawValue)
    #else
      let stream = SOCK_STREAM
    #endif
    try #require(socketpair(AF_UNIX, stream, 0, &ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let (server, client) = (ends[0], ends[1])
    defer { close(server) }
    try FileDescriptor.writeAll(Array("request\nunfinished".utf8), to: client, named: "the server")
    let ended = DispatchGroup()
    let failure = Mutex<(any Error)?>(nil)
    DispatchQueue.global().async(group: ended) {
      do {
        try FileDescriptor.writeAll([UInt8](repeating: 0, count: 16 << 20), to: server, named: "the client")
      } catch {
        failure.withLock { $0 = error }
      }
    }
    // It waits for the client.
    var request = pollfd(fd: server, events: Int16(POLLOUT), revents: 0)
    while poll(&request, 1, 0) > 0 { sched_yield() }
    close(client)
    ended.wait()
    #expect(failure.withLock { $0 } is ClosedPipe)
    var reader = LineReader(server)
    let line = try #require(try reader.next())
    if case .whole(let bytes) = line { #expect(Array(bytes) == Array("request".utf8)) } else { Issue.record("\(line)") }
    #expect(try reader.next() == nil)
  }
}

extension [UInt8] {
  fileprivate func ends(with end: [UInt8]) -> Bool {
    count >= end.count && self[(count - end.count)...].elementsEqual(end)
  }
}
