import Coffer

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
    // Made here and passed on: who connects from now on waits for the agent, and finds it.
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
    // An agent that has died already must not take this process with it.
    signal(SIGPIPE, SIG_IGN)
    try? key.withUnsafeBytes { try FileDescriptor.writeAll($0, to: ends[1], named: "a pipe") }
    close(ends[1])
    guard let kept = self.key(), kept.isEqual(to: key) else {
      throw Failure(.other, "the agent that is to keep the key ended at once.")
    }
  }

  // MARK: - Asking

  /// The key, if there is an agent.
  func key() -> SecretBytes? {
    try? ask(.key) { descriptor in
      try FileDescriptor.readSecret(descriptor, named: "the agent", droppingNewline: false)
    }
  }

  /// Ends the agent, if there is one, and waits until it has wiped the key.
  ///
  /// - Throws: ``Failure`` when there is one and it does not end.
  func stop() throws {
    let hasEnded = try ask(.stop) { descriptor in
      var byte: UInt8 = 0
      // Its time may have been over just now.
      return read(descriptor, &byte, 1) == 0 || errno == ECONNRESET
    }
    guard hasEnded ?? true else { throw Failure(.other, "the agent that keeps the key does not answer. End it.") }
  }

  private func ask<R>(_ request: AgentRequest, _ answer: (Int32) throws -> R) throws -> R? {
    guard let descriptor = try AgentSocket.connect(to: path) else { return nil }
    defer { close(descriptor) }
    signal(SIGPIPE, SIG_IGN)
    do {
      try FileDescriptor.writeAll([request.rawValue], to: descriptor, named: "the agent")
    } catch is ClosedPipe {
      return nil
    }
    return try answer(descriptor)
  }
}

/// What an agent is asked: one byte.
enum AgentRequest: UInt8 {
  /// The agent answers with the key.
  case key = 0x6b
  /// The agent wipes the key, and ends; the connection ends after that.
  case stop = 0x73
}
