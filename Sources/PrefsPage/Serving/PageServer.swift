import FlyingFox
import FlyingSocks
import PrefsCommands
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Listens where the page is to be reached, on loopback or at a socket of this user's.
struct PageServer {
  enum Place {
    /// 0 for a port that is free.
    case loopback(port: UInt16)
    case socket(path: String)
  }

  private let server: HTTPServer
  private let place: Place

  init(_ place: Place) throws {
    self.place = place
    let pool = BoundedSocketPool(HTTPServer.defaultPool())
    // A check of a large store is the longest answer.
    let timeout = 300.0
    switch place {
    case .loopback(let port):
      server = HTTPServer(
        config: .init(
          address: try .inet(ip4: "127.0.0.1", port: port), timeout: timeout, pool: pool, logger: .disabled))
    case .socket(let path):
      try Self.makeWay(path)
      server = HTTPServer(config: .init(address: .unix(path: path), timeout: timeout, pool: pool, logger: .disabled))
    }
  }

  /// Listens, and serves until ``stop()``.
  ///
  /// - Parameter failed: Is told where serving ends by itself.
  /// - Returns: The port; 0 for a socket.
  /// - Throws: ``Failure`` where it cannot listen.
  func start(failed: @escaping @Sendable (any Error) -> Void) async throws -> UInt16 {
    // A socket belongs to this user alone from the moment it exists. The mask applies to the whole process, so it is set only
    // until then.
    let mask: mode_t? = if case .socket = place { umask(0o177) } else { nil }
    defer { if let mask { umask(mask) } }
    let outcome = Mutex<(any Error)?>(nil)
    // Long enough for a busy machine; a server that cannot listen ends the wait at once.
    let listening = Task { try await server.waitUntilListening(timeout: 60) }
    Task {
      do { try await server.run() } catch {
        outcome.withLock { $0 = error }
        listening.cancel()
        failed(error)
      }
    }
    do { try await listening.value } catch {
      throw Failure(
        .inputOutput, "cannot listen at \(name): \(outcome.withLock { $0 } ?? error). Name another one.")
    }
    if case .ip4(_, let port)? = await server.listeningAddress { return port }
    return 0
  }

  private var name: String {
    switch place {
    case .loopback(let port): "127.0.0.1:\(port)"
    case .socket(let path): path
    }
  }

  func serve(_ handler: PageHandler) async { await server.appendRoute("*", to: handler) }

  func stop() async {
    if case .socket(let path) = place { unlink(path) }
    await server.stop()
  }

  // MARK: - Sockets

  /// Removes a socket without a listener.
  ///
  /// - Throws: ``Failure`` where something else is in the way.
  private static func makeWay(_ path: String) throws {
    guard path.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else {
      throw Failure(.usage, "\(path) is too long for a socket.")
    }
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK, status.st_uid == geteuid() else {
      throw Failure(.conflict, "\(path) exists already and is not a socket of yours.")
    }
    let probe = try Socket(domain: Int32(AF_UNIX))
    defer { try? probe.close() }
    if (try? probe.connect(to: .unix(path: path))) != nil {
      throw Failure(.conflict, "another program already listens at \(path).")
    }
    unlink(path)
  }
}
