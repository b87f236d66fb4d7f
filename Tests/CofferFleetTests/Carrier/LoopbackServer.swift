import Foundation
import TestSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A server that answers the first request of each of its first connections, and then waits for the client to close.
///
/// An answer in HTTP says `Connection: close`: libcurl might send its next request on the same connection otherwise, which
/// gets none.
final class LoopbackServer: Sendable {
  private let socket: LoopbackSocket
  private let descriptor: Int32

  var port: Int { socket.port }

  /// One that says the same, whatever it is asked.
  convenience init(saying answer: String) throws { try self.init { _ in answer } }

  /// - Parameters:
  ///   - connectionLimit: It listens to so many, one after the other.
  ///   - answer: Gets the request's first line; an empty answer is none.
  init(connectionLimit: Int = 20, answer: @escaping @Sendable (_ request: String) -> String) throws {
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

  private static func serve(_ connection: Int32, _ answer: (String) -> String) {
    defer { close(connection) }
    var buffer = [UInt8](repeating: 0, count: 65536)
    let count = recv(connection, &buffer, buffer.count, 0)
    guard count > 0 else { return }
    let answer = answer(String(decoding: buffer[..<count].prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self))
    if !answer.isEmpty {
      let answer = answer.replacing(
        "\r\n", with: "\r\nConnection: close\r\n", maxReplacements: answer.hasPrefix("HTTP") ? 1 : 0)
      // A client that has had enough closes while it is being sent.
      guard send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL)) >= 0 else { return }
      shutdown(connection, Int32(SHUT_WR))
    }
    while recv(connection, &buffer, buffer.count, 0) > 0 {}
  }

  deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
