import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Starts, asks and stops the agent that keeps the key of a store's vault.
struct AgentClient {
  private let storeID: String

  init(storeID: String) {
    self.storeID = storeID
  }

  private var path: String { AgentSocket.path(storeID: storeID) }

  // MARK: - Starting

  /// Starts an agent that keeps `key`; it listens when this returns.
  func start(with key: SecretBytes, for ttl: TimeToLive) throws {
    try AgentSocket.prepareFolder()
    let path = path
    // Created here and passed on: clients that connect from now on wait for the agent.
    let listener = try AgentSocket.listen(at: path)
    defer { close(listener) }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Failure.system("a pipe", errno: errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    do {
      defer { close(ends[0]) }
      try AgentProcess.spawn(["agent", "--socket", path, "--ttl", "\(ttl.seconds)s"], key: ends[0], listener: listener)
    } catch {
      close(ends[1])
      unlink(path)
      throw error
    }
    // If the agent has already died, SIGPIPE must not end this process.
    try? SignalHandlers.ignoring([SIGPIPE]) {
      try key.withUnsafeBytes { try FileDescriptor.writeAll($0, to: ends[1], named: "a pipe") }
    }
    close(ends[1])
    guard let kept = self.key(), kept.isEqual(to: key) else {
      throw Failure(.other, "the agent for the key ended immediately.")
    }
  }

  // MARK: - Asking

  /// The key, if there is an agent.
  func key() -> SecretBytes? {
    try? ask(.key) { descriptor in
      try FileDescriptor.readSecret(descriptor, named: "the agent", droppingNewline: false)
    }
  }

  /// When it wipes the key; nil if there is no agent.
  func end() -> Date? {
    let seconds = try? ask(.remainingTime) { descriptor in
      Double(String(decoding: try FileDescriptor.readAll(descriptor, named: "the agent"), as: UTF8.self))
    }
    return seconds.flatMap { $0 }.map { Date().addingTimeInterval($0) }
  }

  /// Ends the agent, if there is one, and waits until it has wiped the key.
  ///
  /// - Throws: ``Failure`` when there is one and it does not end.
  func stop() throws {
    var status = stat()
    // In a folder that others can enter, the agent is not asked.
    if lstat(path, &status) == 0 { try AgentSocket.prepareFolder() }
    let hasEnded = try ask(.stop) { descriptor in
      var byte: UInt8 = 0
      // It may have ended by itself just now.
      return read(descriptor, &byte, 1) == 0 || errno == ECONNRESET
    }
    guard hasEnded ?? true else { throw Failure(.other, "the agent that keeps the key does not respond. End it.") }
  }

  private func ask<R>(_ request: AgentRequest, _ answer: (Int32) throws -> R) throws -> R? {
    guard let descriptor = try AgentSocket.connect(to: path) else { return nil }
    defer { close(descriptor) }
    do {
      try SignalHandlers.ignoring([SIGPIPE]) {
        try FileDescriptor.writeAll([request.rawValue], to: descriptor, named: "the agent")
      }
    } catch is ClosedPipe {
      return nil
    }
    return try answer(descriptor)
  }
}

/// A request to the agent: one byte.
enum AgentRequest: UInt8 {
  /// The agent answers with the key.
  case key = 0x6b
  /// The agent answers with the seconds until it wipes the key, in decimal digits.
  case remainingTime = 0x74
  /// The agent wipes the key and exits, which closes the connection.
  case stop = 0x73
}
