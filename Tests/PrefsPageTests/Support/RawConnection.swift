import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// A connection to a server on loopback, on which a test sends what it likes.
struct RawConnection: Sendable {
  private let descriptor: Int32

  init(port: UInt16) throws {
    #if canImport(Glibc)
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var time = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let code = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  func write(_ text: String) throws { try write(Array(text.utf8)) }

  func write(_ bytes: [UInt8]) throws {
    #if canImport(Darwin)
      let flags: Int32 = 0
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    let count = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, flags) }
    guard count == bytes.count else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  /// The input, until the other end closes or is silent for two minutes.
  func readToEnd() -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let part = readSome()
      if part.isEmpty { return bytes }
      bytes += part
    }
  }

  /// What there is to read, at least one byte; none at the end.
  func readSome() -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    return count > 0 ? Array(buffer[..<count]) : []
  }

  func close() { _ = shutdown(descriptor, Int32(SHUT_RDWR)); _ = Foundation.close(descriptor) }
}

/// An answer as it came.
struct RawAnswer: Sendable {
  let status: Int
  let headers: [String: String]
  private(set) var bodyBytes: [UInt8]

  init(_ bytes: [UInt8]) {
    let end = (bytes.firstRange(of: Array("\r\n\r\n".utf8)) ?? bytes.endIndex..<bytes.endIndex)
    let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
    status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    headers = Dictionary(
      lines.dropFirst().compactMap { line in
        line.firstIndex(of: ":").map {
          (line[..<$0].lowercased(), line[line.index(after: $0)...].trimmingCharacters(in: .whitespaces))
        }
      }, uniquingKeysWith: { first, _ in first })
    bodyBytes = Array(bytes[end.upperBound...])
  }

  /// The same with what its body was sealed from.
  func opened(_ open: ([UInt8]) throws -> String) rethrows -> RawAnswer {
    guard !bodyBytes.isEmpty else { return self }
    var answer = self
    answer.bodyBytes = Array(try open(bodyBytes).utf8)
    return answer
  }

  var body: String { String(decoding: bodyBytes, as: UTF8.self) }

  /// The body as JSON.
  var object: [String: Any] {
    (try? JSONSerialization.jsonObject(with: Data(bodyBytes)) as? [String: Any]) ?? [:]
  }
}
