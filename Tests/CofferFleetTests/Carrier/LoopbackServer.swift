import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A server that says the same to each of its first connections, whatever it is asked, and then waits for the client to close.
final class LoopbackServer: Sendable {
  private let socket: LoopbackSocket
  private let descriptor: Int32

  var port: Int { socket.port }

  /// - Parameter connectionLimit: It listens to so many, one after the other.
  init(saying answer: String, connectionLimit: Int = 20) throws {
    socket = try LoopbackSocket()
    descriptor = socket.descriptor
    listen(descriptor, 16)
    Thread.detachNewThread { [descriptor] in
      for _ in 0..<connectionLimit {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { return }
        Thread.detachNewThread { Self.serve(connection, answer) }
      }
    }
  }

  private static func serve(_ connection: Int32, _ answer: String) {
    defer { close(connection) }
    var buffer = [UInt8](repeating: 0, count: 65536)
    guard recv(connection, &buffer, buffer.count, 0) > 0 else { return }
    if !answer.isEmpty {
      // A client that has had enough closes while it is being sent.
      guard send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL)) >= 0 else { return }
      shutdown(connection, Int32(SHUT_WR))
    }
    while recv(connection, &buffer, buffer.count, 0) > 0 {}
  }

  deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
