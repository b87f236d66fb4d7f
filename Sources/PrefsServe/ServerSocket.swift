import Dispatch
import PrefsCommands
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A socket at which several programs of one user are served.
final class ServerSocket: Sendable {
  private let path: String
  private let descriptor: Int32
  private let count = Atomic(0)

  /// Few enough to leave descriptors for the store.
  private static let limit = 64

  /// - Throws: ``Failure`` if it cannot listen, or if others can write to the folder.
  init(_ path: String) throws {
    try UserSocket.requireOwnFolder(of: path)
    self.path = path
    descriptor = try UserSocket.listen(at: path)
    FileDescriptor.closeOnExecution(descriptor)
  }

  /// Serves until a signal ends the process.
  ///
  /// - Throws: ``Failure`` if no more connections can be accepted.
  func serve(_ store: ServedStore) throws {
    let signals = try EndingSignals { [path] in
      unlink(path)
      _exit(ExitStatus.success.rawValue)
    }
    store.session.options.detail("listening at \(path)")
    try withExtendedLifetime(signals) {
      while true {
        let connection = accept(descriptor, nil, nil)
        if connection >= 0 {
          serve(store, connection)
        } else if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
          usleep(20_000)
        } else if ![EINTR, ECONNABORTED].contains(errno) {
          throw Failure(.inputOutput, "\(path): \(Failure.systemMessage(errno)).")
        }
      }
    }
  }

  private func serve(_ store: ServedStore, _ connection: Int32) {
    FileDescriptor.closeOnExecution(connection)
    // The mode of the socket keeps others out; this is also checked where a file system has no modes.
    guard AgentSocket.isPeerThisUser(connection), count.load(ordering: .relaxed) < Self.limit else {
      close(connection)
      return
    }
    count.add(1, ordering: .relaxed)
    // A serial queue has a thread whenever it needs one.
    DispatchQueue(label: "prefs-serve.client").async { [self] in
      ServedClient.serve(store, connection: connection)
      count.subtract(1, ordering: .relaxed)
    }
  }
}
