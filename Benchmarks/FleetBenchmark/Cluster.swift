import Foundation
import TestSupport

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An etcd of three members on loopback, whose data is synced to disk as usual.
struct Cluster {
  private let server: EtcdServer

  init(in folder: String) async throws {
    server = try await EtcdServer(.init(memberCount: 3, folder: folder, lifetime: 7200))
  }

  func address(_ prefix: String) -> String { server.address(prefix: prefix) }

  /// The number of watches of all members.
  func watchCount() async throws -> Int {
    var count = 0
    for url in server.members.map(\.clientURL) {
      guard let metrics = URL(string: "\(url)/metrics") else { continue }
      let text = String(decoding: try await URLSession.shared.data(from: metrics).0, as: UTF8.self)
      for line in text.split(separator: "\n") where line.hasPrefix("etcd_debugging_mvcc_watcher_total ") {
        count += Int(Double(line.split(separator: " ")[1]) ?? 0)
      }
    }
    return count
  }
}
