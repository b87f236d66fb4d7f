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

/// Listens for the page, on loopback or at a socket of this user's.
///
/// It serves only the page: other requests cost a connection for a while, and a head of limited size.
final class PageServer: Sendable {
  enum Place {
    /// 0 for any free port.
    case loopback(port: UInt16)
    case socket(path: String)
  }

  /// The port; 0 for a socket.
  let port: UInt16
  private let descriptor: Int32
  private let socketPath: String?
  private let connections = OpenConnections()
  private let queue = DispatchQueue(label: "prefs-ui.listener")
  // Unsafe: only the thread that runs the page sets it, before it serves, and reads it, when it stops.
  private nonisolated(unsafe) var source: (any DispatchSourceRead)?

  /// Listens.
  ///
  /// - Throws: ``Failure`` if it cannot listen.
  init(_ place: Place) throws {
    switch place {
    case .loopback(let port):
      (descriptor, self.port) = try Self.listen(port: port)
      socketPath = nil
    case .socket(let path):
      descriptor = try UserSocket.listen(at: path)
      (port, socketPath) = (0, path)
    }
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    FileDescriptor.closeOnExecution(descriptor)
  }

  /// Answers with `handler` from now on.
  func serve(_ handler: @escaping PageConnection.Handler) {
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
    source.setEventHandler { [descriptor, connections] in
      let connection = accept(descriptor, nil, nil)
      guard connection >= 0 else {
        // Without a free descriptor, an idle connection is closed; the next attempt follows at once.
        if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
          connections.closeOne()
          usleep(20_000)
        }
        return
      }
      connections.serve(connection, handler)
    }
    source.setCancelHandler { [descriptor] in close(descriptor) }
    source.resume()
    self.source = source
  }

  /// Stops listening, and closes all connections.
  func stop() {
    if let socketPath { unlink(socketPath) }
    source?.cancel()
    connections.closeAll()
  }

  // MARK: - Listening

  private static func listen(port: UInt16) throws -> (descriptor: Int32, port: UInt16) {
    let name = "127.0.0.1:\(port)"
    #if canImport(Glibc)
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    guard descriptor >= 0 else { throw failure(name, nil, errno) }
    var isOn: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard bind(descriptor, address, size) == 0, startListening(descriptor) == 0,
          getsockname(descriptor, address, &size) == 0
        else { return errno }
        return 0
      }
    }
    guard code == 0 else { throw failure(name, descriptor, code) }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }

  private static func failure(_ name: String, _ descriptor: Int32?, _ code: Int32) -> Failure {
    if let descriptor { close(descriptor) }
    return Failure(.inputOutput, "cannot listen at \(name): \(Failure.systemMessage(code)). Name another one.")
  }
}

// At file level, where no method hides it.
private func startListening(_ descriptor: Int32) -> Int32 { listen(descriptor, 128) }

/// The connections of a server: few enough to leave descriptors for the store.
///
/// If there are too many, one that waits for a request is closed: first those that have never made a request of the page, the
/// oldest of them first.
private final class OpenConnections: Sendable {
  private struct Entry {
    let number: Int
    let descriptor: Int32
    /// Whether it has made a request of the page.
    var isKnown = false
    var isBusy = false
    var isEnding = false
  }

  private struct State {
    var next = 0
    var entries: [Entry] = []
    var isOver = false
  }

  private let state = Mutex(State())
  /// The maximum number of connections; a further one closes an idle one.
  private let limit: Int

  init() {
    var limits = rlimit()
    #if canImport(Glibc)
      let known = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0
    #else
      let known = getrlimit(RLIMIT_NOFILE, &limits) == 0
    #endif
    limit = known ? min(128, max(8, Int(clamping: limits.rlim_cur) / 4)) : 64
  }

  /// Serves a new connection; closes an idle one if there are too many.
  func serve(_ descriptor: Int32, _ handler: @escaping PageConnection.Handler) {
    FileDescriptor.closeOnExecution(descriptor)
    // A page that reads nothing must not block a thread forever.
    var time = timeval(tv_sec: 30, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    let number = state.withLock { state -> Int? in
      if state.entries.count >= limit { Self.closeOne(&state) }
      // Connections serve a moment to end; they must not pile up.
      guard !state.isOver, state.entries.count < limit + 16 else { return nil }
      state.next += 1
      state.entries.append(Entry(number: state.next, descriptor: descriptor))
      return state.next
    }
    guard let number else {
      close(descriptor)
      return
    }
    // A serial queue has a thread whenever it needs one.
    DispatchQueue(label: "prefs-ui.connection").async {
      var connection = PageConnection(descriptor) { self.change(number, isBusy: $0) }
      connection.serve(handler)
      self.state.withLock { $0.entries.removeAll { $0.number == number } }
      close(descriptor)
    }
  }

  private func change(_ number: Int, isBusy: Bool) {
    state.withLock { state in
      guard let index = state.entries.firstIndex(where: { $0.number == number }) else { return }
      state.entries[index].isBusy = isBusy
      if isBusy { state.entries[index].isKnown = true }
    }
  }

  /// Closes an idle connection.
  func closeOne() { state.withLock { Self.closeOne(&$0) } }

  private static func closeOne(_ state: inout State) {
    let waiting = state.entries.indices.filter { !state.entries[$0].isBusy && !state.entries[$0].isEnding }
    guard let index = waiting.first(where: { !state.entries[$0].isKnown }) ?? waiting.first else { return }
    state.entries[index].isEnding = true
    shutdown(state.entries[index].descriptor, Int32(SHUT_RDWR))
  }

  func closeAll() {
    state.withLock { state in
      state.isOver = true
      for entry in state.entries { shutdown(entry.descriptor, Int32(SHUT_RDWR)) }
    }
  }
}
