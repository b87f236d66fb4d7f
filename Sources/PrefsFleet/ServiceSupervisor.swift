import PrefsCommands

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The supervisor to which a service reports its state: systemd, at the socket named by `NOTIFY_SOCKET`; see sd_notify(3).
final class ServiceSupervisor: Sendable {
  private let descriptor: Int32
  private let path: [UInt8]

  /// - Throws: ``Failure`` if the socket cannot be created.
  init() throws {
    // A name that begins with @ is abstract (unix(7)): its first byte is 0.
    var path = Array((Environment.variable("NOTIFY_SOCKET") ?? "").utf8)
    if path.first == UInt8(ascii: "@") { path[0] = 0 }
    self.path = path
    guard !path.isEmpty else {
      descriptor = -1
      return
    }
    #if canImport(Glibc)
      descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    #else
      descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
    #endif
    guard descriptor >= 0, path.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else {
      throw Failure(.inputOutput, "the socket that NOTIFY_SOCKET names cannot be used.")
    }
    FileDescriptor.closeOnExecution(descriptor)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Sends a message such as `READY=1`; does nothing without a socket.
  func notify(_ text: String) {
    guard descriptor >= 0 else { return }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let byteCount = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path)! + path.count)
    // The service continues without a supervisor.
    _ = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(descriptor, text, text.utf8.count, 0, $0, byteCount)
      }
    }
  }
}
