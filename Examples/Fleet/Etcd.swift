import CofferFleet
import Foundation

#if canImport(Glibc)
  import Glibc
#endif

/// An etcd on loopback, while the example runs.
struct Etcd {
  let address: String
  private let process: Process

  /// nil if none is installed.
  init?(in folder: String) async throws {
    let places = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/etcd" }
    guard let program = places.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else { return nil }
    let urls = try (0..<2).map { _ in "http://127.0.0.1:\(try Self.freePort())" }
    address = "etcd://\(urls[0].dropFirst("http://".count))/stores"
    process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = [
      "--name", "example", "--data-dir", "\(folder)/etcd", "--log-level", "error", "--listen-client-urls", urls[0],
      "--advertise-client-urls", urls[0], "--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1],
      "--initial-cluster", "example=\(urls[1])",
    ]
    (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
    try process.run()
    try await waitUntilReady()
  }

  private func waitUntilReady() async throws {
    let carrier = try Fleet.carrier(at: address)
    for _ in 0..<200 {
      if (try? await carrier.read(["head"])) != nil { return }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  func stop() {
    process.terminate()
    process.waitUntilExit()
  }

  private static func freePort() throws -> Int {
    #if canImport(Glibc)
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
      }
    }
    guard isBound else { throw CocoaError(.fileReadUnknown) }
    return Int(UInt16(bigEndian: address.sin_port))
  }
}
