import ArgumentParser
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The internal command `prefs agent`, started by `prefs unlock`.
struct AgentCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "agent", abstract: "Keep the key of a vault for a while; started by prefs unlock.",
    shouldDisplay: false)

  @Option var socket: String
  @Option var ttl: TimeToLive

  mutating func run() throws {
    guard isListening(AgentProcess.listener), !Terminal.isTerminal(0) else {
      throw Failure(.usage, "prefs unlock starts the agent when needed. Do not start it by hand.")
    }
    signal(SIGPIPE, SIG_IGN)
    let key = try FileDescriptor.readSecret(0, named: "the pipe with the key", droppingNewline: false)
    AgentProcess.detach()
    Agent(key: key, listener: AgentProcess.listener, path: socket, ttl: ttl).run()
  }

  private func isListening(_ descriptor: Int32) -> Bool {
    var isListening: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0 && isListening != 0
  }
}
