import CofferFleet
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif
#if canImport(Glibc)
  import Glibc
#endif

/// An etcd of three members on loopback, whose data is synced to disk as usual.
final class Cluster {
  let urls: [String]
  private var processes: [Process] = []

  init(in folder: String) async throws {
    let clients = try (0..<3).map { _ in "http://127.0.0.1:\(try Self.freePort())" }
    let peers = try (0..<3).map { _ in "http://127.0.0.1:\(try Self.freePort())" }
    urls = clients
    let cluster = peers.enumerated().map { "m\($0)=\($1)" }.joined(separator: ",")
    for index in 0..<3 {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = [
        "etcd", "--name", "m\(index)", "--data-dir", "\(folder)/etcd-\(index)", "--log-level", "error",
        "--listen-client-urls", clients[index], "--advertise-client-urls", clients[index],
        "--listen-peer-urls", peers[index], "--initial-advertise-peer-urls", peers[index],
        "--initial-cluster", cluster,
      ]
      (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
      try process.run()
      processes.append(process)
    }
    let carrier = try Fleet.carrier(at: address("ready"))
    for _ in 0..<600 {
      if (try? await carrier.read(["head"])) != nil { return }
      try await Task.sleep(for: .milliseconds(50))
    }
    throw CocoaError(.executableLoad)
  }

  deinit {
    for process in processes {
      process.terminate()
      process.waitUntilExit()
    }
  }

  func address(_ prefix: String) -> String {
    "etcd://\(urls.map { $0.dropFirst("http://".count) }.joined(separator: ","))/\(prefix)"
  }

  /// The number of watches of all members.
  func watchCount() async throws -> Int {
    var count = 0
    for url in urls {
      guard let metrics = URL(string: "\(url)/metrics") else { continue }
      let text = String(decoding: try await URLSession.shared.data(from: metrics).0, as: UTF8.self)
      for line in text.split(separator: "\n") where line.hasPrefix("etcd_debugging_mvcc_watcher_total ") {
        count += Int(Double(line.split(separator: " ")[1]) ?? 0)
      }
    }
    return count
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
