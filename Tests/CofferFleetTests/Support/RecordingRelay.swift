import CofferCrypto
import Foundation
import TestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A loopback port that forwards to another one, records the traffic and can be cut.
final class RecordingRelay: Sendable {
  private let socket: LoopbackSocket
  private let target: Int
  private let state = Lock(State())

  private struct State {
    var isCut = false
    var connectionCount = 0
    var sent: [UInt8] = []
    var received: [UInt8] = []
    var open: Set<Int32> = []
  }

  var port: Int { socket.port }
  /// How many connections there were, those that were refused among them.
  var connectionCount: Int { state.withLock { $0.connectionCount } }
  /// What clients have sent.
  var sent: [UInt8] { state.withLock { $0.sent } }
  /// What they have got.
  var received: [UInt8] { state.withLock { $0.received } }

  init(to target: Int) throws {
    (socket, self.target) = (try LoopbackSocket(), target)
    listen(socket.descriptor, 64)
    let listener = socket.descriptor
    Thread.detachNewThread { [weak self] in
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        guard let self else {
          close(client)
          return
        }
        self.serve(client)
      }
    }
  }

  deinit {
    shutdown(socket.descriptor, Int32(SHUT_RDWR))
    cut()
  }

  /// Ends all connections, and refuses others until ``mend()``.
  func cut() {
    state.withLock { state in
      state.isCut = true
      for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  func mend() { state.withLock { $0.isCut = false } }

  private func serve(_ client: Int32) {
    let server = Self.connection(to: target)
    let isOpen = state.withLock { state in
      state.connectionCount += 1
      guard server >= 0, !state.isCut else { return false }
      state.open.formUnion([client, server])
      return true
    }
    guard isOpen else {
      close(client)
      if server >= 0 { close(server) }
      return
    }
    let group = DispatchGroup()
    for (from, to, isSent) in [(client, server, true), (server, client, false)] {
      group.enter()
      Thread.detachNewThread {
        self.copy(from, to, isSent)
        group.leave()
      }
    }
    Thread.detachNewThread {
      group.wait()
      self.state.withLock { $0.open.subtract([client, server]) }
      close(client)
      close(server)
    }
  }

  private func copy(_ from: Int32, _ to: Int32, _ isSent: Bool) {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = recv(from, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      state.withLock { state in
        if isSent { state.sent += buffer[..<count] } else { state.received += buffer[..<count] }
      }
      var rest = 0
      while rest < count {
        let part = buffer[rest..<count].withUnsafeBytes { send(to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard part > 0 else { break }
        rest += part
      }
      guard rest == count else { break }
    }
    shutdown(from, Int32(SHUT_RDWR))
    shutdown(to, Int32(SHUT_RDWR))
  }

  private static func connection(to port: Int) -> Int32 {
    #if canImport(Glibc)
      let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    #elseif canImport(Musl)
      let descriptor = Musl.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)
    #else
      let descriptor = Darwin.socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    address.sin_port = in_port_t(port).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      close(descriptor)
      return -1
    }
    return descriptor
  }
}
