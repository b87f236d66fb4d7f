import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// An etcd on this machine's loopback, of one or more members.
///
/// It ends with its last reference, or with this process, however that ends; at the latest after its time.
package final class EtcdServer: Sendable {
  package struct Options {
    var memberCount = 1
    var arguments: [String] = []
    var tls: TestCertificates?
    /// Kept until the process ends.
    var isShared = false
    /// The network namespace to run in, where other addresses than that of loopback reach it as well.
    var namespace: NetworkNamespace?
    /// The folder for its data, which it syncs to disk; nil for one in memory, if possible, that is not synced.
    var folder: String?
    /// How long it runs at most, in seconds.
    var lifetime = 600

    package init(
      memberCount: Int = 1, arguments: [String] = [], tls: TestCertificates? = nil, namespace: NetworkNamespace? = nil,
      folder: String? = nil, lifetime: Int = 600
    ) {
      (self.memberCount, self.arguments, self.tls, self.namespace) = (memberCount, arguments, tls, namespace)
      (self.folder, self.lifetime) = (folder, lifetime)
    }
  }

  package static let isInstalled = path("etcd") != nil && path("etcdctl") != nil

  package let members: [EtcdMember]
  /// Whether only users are admitted, as root with the password `root`.
  package let hasUsers = Flag()
  private let options: Options

  /// One that tests share, each under a prefix of its own.
  package static func common() async throws -> EtcdServer { try await shared.value }
  private static let shared = Task {
    var options = Options()
    options.isShared = true
    // It ends with this process, which may take longer on a busy machine.
    options.lifetime = 7200
    return try await EtcdServer(options)
  }

  package init(_ options: Options = Options()) async throws {
    self.options = options
    let token = UUID().uuidString
    let ports = try LoopbackPort.free(count: 2 * options.memberCount)
    let cluster = (0..<options.memberCount).map { "m\($0)=http://127.0.0.1:\(ports[2 * $0 + 1])" }.joined(
      separator: ",")
    members = try (0..<options.memberCount).map { index in
      try EtcdMember(
        name: "m\(index)", clientPort: ports[2 * index], peerPort: ports[2 * index + 1], cluster: cluster, token: token,
        options)
    }
    for member in members { try member.start() }
    try await waitUntilReady()
  }

  /// The address of all members.
  ///
  /// - Parameter query: Options, behind a question mark.
  package func address(prefix: String, user: String? = nil, query: String = "") -> String {
    let hosts = members.map { "127.0.0.1:\($0.clientPort)" }.joined(separator: ",")
    return "\(options.tls == nil ? "etcd" : "etcds")://\(user.map { "\($0)@" } ?? "")\(hosts)/\(prefix)\(query)"
  }

  /// Waits until a leader is elected and members answer.
  package func waitUntilReady() async throws {
    try await waiting(upTo: .seconds(60)) {
      members.allSatisfy { member in
        !member.isRunning
          || (try? control(["endpoint", "health", "--command-timeout=2s"], endpoints: [member]).status == 0) == true
      }
    }
  }

  /// Runs etcdctl.
  @discardableResult
  package func control(_ arguments: [String], endpoints: [EtcdMember]? = nil) throws -> Child {
    let urls = (endpoints ?? members.filter(\.isRunning)).map(\.clientURL).joined(separator: ",")
    return try Child.run(
      "/usr/bin/env",
      ["ETCDCTL_API=3"] + (options.namespace?.entry ?? []) + ["timeout", "30", "etcdctl", "--endpoints", urls]
        + (options.tls?.controlArguments ?? [])
        + (hasUsers.isSet ? ["--user", "root:root"] : []) + arguments)
  }

  /// The member that leads.
  package func leader() throws -> EtcdMember? {
    try members.first { member in
      guard member.isRunning else { return false }
      let fields = try control(["endpoint", "status", "--write-out=simple"], endpoints: [member]).text.split(
        separator: ", ")
      return fields.count > 4 && fields[4] == "true"
    }
  }

  package static func path(_ program: String) -> String? {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(program)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}

/// A process of etcd.
package final class EtcdMember: @unchecked Sendable {
  package let name: String
  package let clientPort: Int
  package let clientURL: String
  package let folder: ScratchFolder
  private let data: String
  private let arguments: [String]
  private let options: EtcdServer.Options
  // Unchecked: one test at a time starts and ends it.
  private var shell: (process: RunningChild, pid: Int32)?

  init(
    name: String, clientPort: Int, peerPort: Int, cluster: String, token: String, _ options: EtcdServer.Options
  ) throws {
    (self.name, self.clientPort, self.options, folder) = (name, clientPort, options, try ScratchFolder())
    data = options.folder.map { "\($0)/\(name)" } ?? folder.file("data")
    clientURL = "\(options.tls == nil ? "http" : "https")://127.0.0.1:\(clientPort)"
    let listened = options.namespace == nil ? clientURL : clientURL.replacing("127.0.0.1", with: "0.0.0.0")
    self.arguments =
      [
        "--name", name, "--data-dir", data, "--log-outputs", "stderr", "--log-level", "error", "--logger", "zap",
        "--listen-client-urls", listened, "--advertise-client-urls", clientURL, "--listen-peer-urls",
        "http://127.0.0.1:\(peerPort)", "--initial-advertise-peer-urls", "http://127.0.0.1:\(peerPort)",
        "--initial-cluster", cluster, "--initial-cluster-token", token,
      ]
      + (options.folder == nil ? ["--unsafe-no-fsync"] : []) + (options.tls?.serverArguments ?? []) + options.arguments
  }

  deinit { kill() }

  package var isRunning: Bool { shell != nil }

  /// Starts with the contents of the data folder.
  package func start() throws {
    // The shell ends etcd when its input ends, as it does with this process, or after its time. Nothing else removes the data of
    // the etcd that tests share, as objects of static properties stay until the end.
    let script = """
      etcd "$@" >/dev/null 2>"$LOG" </dev/null &
      child=$!
      echo "$child"
      timeout "$LIFETIME" cat >/dev/null
      kill -KILL "$child"
      wait "$child"
      if [ -n "$LEFT" ]; then rm -rf "$LEFT"; fi
      """
    let process = try Child.start(
      "/usr/bin/env",
      [
        "LOG=\(folder.file("log"))", "LEFT=\(options.isShared ? folder.path : "")", "LIFETIME=\(options.lifetime)",
      ] + (options.namespace?.entry ?? [])
        + ["/bin/sh", "-c", script, "sh"] + arguments)
    shell = (process, process.readLine().flatMap(Int32.init) ?? 0)
  }

  /// Replaces its data with those of a snapshot.
  package func restore(from snapshot: String) throws {
    try FileManager.default.removeItem(atPath: data)
    let kept = [
      "--name", "--data-dir", "--initial-advertise-peer-urls", "--initial-cluster", "--initial-cluster-token",
    ]
    let options = arguments.indices.filter { kept.contains(arguments[$0]) }.flatMap { arguments[$0...$0 + 1] }
    let child = try Child.run("/usr/bin/env", ["ETCDCTL_API=3", "etcdctl", "snapshot", "restore", snapshot] + options)
    guard child.status == 0 else { throw CocoaError(.fileReadCorruptFile) }
  }

  /// Ends it as a power cut does.
  package func kill() {
    guard let shell else { return }
    try? shell.process.input.close()
    shell.process.end()
    self.shell = nil
  }

  /// Sends a signal to etcd itself.
  package func signal(_ signal: Int32) {
    guard let shell, shell.pid > 0 else { return }
    #if canImport(Glibc)
      Glibc.kill(shell.pid, signal)
    #elseif canImport(Musl)
      Musl.kill(shell.pid, signal)
    #else
      Darwin.kill(shell.pid, signal)
    #endif
  }
}

package enum LoopbackPort {
  /// Ports that nothing listens on.
  package static func free(count: Int) throws -> [Int] {
    let sockets = try (0..<count).map { _ in try LoopbackSocket() }
    return sockets.map(\.port)
  }
}

/// A socket that is bound to a free port of 127.0.0.1.
package final class LoopbackSocket: Sendable {
  package let descriptor: Int32
  package let port: Int

  package init() throws {
    #if canImport(Darwin)
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #elseif canImport(Musl)
      let descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)
    #else
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    #endif
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
    self.descriptor = descriptor
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  deinit { close(descriptor) }
}

/// Polls `condition` until it holds, for at most `limit`.
package func waiting(upTo limit: Duration, for condition: () async throws -> Bool) async throws {
  let deadline = ContinuousClock.now + limit
  while try await !condition() {
    guard ContinuousClock.now < deadline else { throw TimedOut() }
    try await Task.sleep(for: .milliseconds(20))
  }
}

package struct TimedOut: Error {}

/// Set once, by any thread.
package final class Flag: Sendable {
  private let value = NSLock()
  nonisolated(unsafe) private var isOn = false  // Under the lock.

  package init() {}

  package var isSet: Bool { value.withLock { isOn } }
  package func set() { value.withLock { isOn = true } }
}
