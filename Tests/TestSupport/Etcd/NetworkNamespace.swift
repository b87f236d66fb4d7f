import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A network namespace in which processes can be started; it ends with this object, or with the tests' process.
package final class NetworkNamespace: Sendable {
  /// The words before a command to run it there.
  package let entry: [String]
  package let id: Int32
  private let holder: RunningChild

  package init() throws {
    // Unnamed: it ends with its last process.
    holder = try Child.start(
      "/usr/bin/env", ["unshare", "--net", "/bin/sh", "-c", "ip link set lo up && echo $$ && exec timeout 600 cat"])
    id = holder.readLine().flatMap(Int32.init) ?? 0
    entry = ["/usr/bin/nsenter", "--net=/proc/\(id)/ns/net"]
    guard id > 0 else { throw NamespaceFailure(command: "unshare --net") }
  }

  deinit {
    try? holder.input.close()
    holder.end()
  }

  /// Runs ip(8) in it.
  package func ip(_ arguments: String...) throws {
    let child = try Child.run("/usr/bin/env", entry + ["ip"] + arguments)
    guard child.status == 0 else { throw NamespaceFailure(command: "ip \(arguments.joined(separator: " "))") }
  }
}

package struct NamespaceFailure: Error { package let command: String }

/// Two networks with a cable between them.
package final class Cable: Sendable {
  package let near: NetworkNamespace
  package let far: NetworkNamespace
  /// The address of the far end, for the near one.
  package static let farAddress = "192.0.2.2"

  /// Whether this process may create one.
  package static let isPossible = geteuid() == 0 && EtcdServer.path("ip") != nil && (try? Cable()) != nil

  package init() throws {
    (near, far) = (try NetworkNamespace(), try NetworkNamespace())
    try near.ip("link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", "\(far.id)")
    for (end, address) in [(near, "192.0.2.1"), (far, Self.farAddress)] {
      try end.ip("address", "add", "\(address)/24", "dev", "cable")
      try end.ip("link", "set", "cable", "up")
    }
  }

  /// Drops all packets, so that no connection ends.
  package func cut() throws { try far.ip("link", "set", "cable", "down") }

  package func mend() throws { try far.ip("link", "set", "cable", "up") }
}
