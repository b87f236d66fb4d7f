import Foundation
import TestSupport

@testable import CofferFleet

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// An etcd on this machine's loopback, of one or more members, with data in memory where that can be.
///
/// It ends with its last reference, or with the tests' process, however that ends; at the latest after ten minutes.
final class EtcdServer: Sendable {
  struct Options {
    var memberCount = 1
    var arguments: [String] = []
    var tls: TestCertificates?
    /// Kept until the process ends.
    var isShared = false
    /// Where it runs, and is reached by other addresses than that of loopback, too.
    var namespace: NetworkNamespace?
  }

  static let isInstalled = path("etcd") != nil && path("etcdctl") != nil

  let members: [EtcdMember]
  /// Whether only users are let in, as root with the password `root`.
  let hasUsers = Flag()
  private let options: Options

  /// One that tests share, each under a prefix of its own.
  static func common() async throws -> EtcdServer { try await shared.value }
  private static let shared = Task { try await EtcdServer(Options(isShared: true)) }

  init(_ options: Options = Options()) async throws {
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
  func address(prefix: String, user: String? = nil, query: String = "") -> String {
    let hosts = members.map { "127.0.0.1:\($0.clientPort)" }.joined(separator: ",")
    return "\(options.tls == nil ? "etcd" : "etcds")://\(user.map { "\($0)@" } ?? "")\(hosts)/\(prefix)\(query)"
  }

  /// Waits until a leader is elected and members answer.
  func waitUntilReady() async throws {
    try await waiting(upTo: .seconds(60)) {
      members.allSatisfy { member in
        !member.isRunning
          || (try? control(["endpoint", "health", "--command-timeout=2s"], endpoints: [member]).status == 0) == true
      }
    }
  }

  /// Runs etcdctl.
  @discardableResult
  func control(_ arguments: [String], endpoints: [EtcdMember]? = nil) throws -> Child {
    let urls = (endpoints ?? members.filter(\.isRunning)).map(\.clientURL).joined(separator: ",")
    return try Child.run(
      "/usr/bin/env",
      ["ETCDCTL_API=3"] + (options.namespace?.entry ?? []) + ["timeout", "30", "etcdctl", "--endpoints", urls]
        + (options.tls?.controlArguments ?? [])
        + (hasUsers.isSet ? ["--user", "root:root"] : []) + arguments)
  }

  /// The member that leads.
  func leader() throws -> EtcdMember? {
    try members.first { member in
      guard member.isRunning else { return false }
      let fields = try control(["endpoint", "status", "--write-out=simple"], endpoints: [member]).text.split(
        separator: ", ")
      return fields.count > 4 && fields[4] == "true"
    }
  }

  static func path(_ program: String) -> String? {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(program)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}

/// A process of etcd.
final class EtcdMember: @unchecked Sendable {
  let name: String
  let clientPort: Int
  let clientURL: String
  let folder: ScratchFolder
  private let arguments: [String]
  private let options: EtcdServer.Options
  // Unchecked: one test at a time starts and ends it.
  private var shell: (process: RunningChild, pid: Int32)?

  init(
    name: String, clientPort: Int, peerPort: Int, cluster: String, token: String, _ options: EtcdServer.Options
  ) throws {
    (self.name, self.clientPort, self.options, folder) = (name, clientPort, options, try ScratchFolder())
    clientURL = "\(options.tls == nil ? "http" : "https")://127.0.0.1:\(clientPort)"
    let listened = options.namespace == nil ? clientURL : clientURL.replacing("127.0.0.1", with: "0.0.0.0")
    self.arguments =
      [
        "--name", name, "--data-dir", folder.file("data"), "--unsafe-no-fsync", "--log-outputs", "stderr",
        "--log-level",
        "error", "--logger", "zap", "--listen-client-urls", listened, "--advertise-client-urls", clientURL,
        "--listen-peer-urls", "http://127.0.0.1:\(peerPort)", "--initial-advertise-peer-urls",
        "http://127.0.0.1:\(peerPort)", "--initial-cluster", cluster, "--initial-cluster-token", token,
      ] + (options.tls?.serverArguments ?? []) + options.arguments
  }

  deinit { kill() }

  var isRunning: Bool { shell != nil }

  /// Begins with what is in the data folder.
  func start() throws {
    // The shell ends etcd when its input ends, as it does with this process, or after ten minutes. Nothing else removes the data of
    // the etcd that tests share, as objects of static properties stay until the end.
    let script = """
      etcd "$@" >/dev/null 2>"$LOG" </dev/null &
      child=$!
      echo "$child"
      timeout 600 cat >/dev/null
      kill -KILL "$child"
      wait "$child"
      if [ -n "$LEFT" ]; then rm -rf "$LEFT"; fi
      """
    let process = try Child.start(
      "/usr/bin/env",
      ["LOG=\(folder.file("log"))", "LEFT=\(options.isShared ? folder.path : "")"] + (options.namespace?.entry ?? [])
        + ["/bin/sh", "-c", script, "sh"] + arguments)
    shell = (process, process.readLine().flatMap(Int32.init) ?? 0)
  }

  /// Replaces its data by those of a snapshot.
  func restore(from snapshot: String) throws {
    try FileManager.default.removeItem(atPath: folder.file("data"))
    let kept = [
      "--name", "--data-dir", "--initial-advertise-peer-urls", "--initial-cluster", "--initial-cluster-token",
    ]
    let options = arguments.indices.filter { kept.contains(arguments[$0]) }.flatMap { arguments[$0...$0 + 1] }
    let child = try Child.run("/usr/bin/env", ["ETCDCTL_API=3", "etcdctl", "snapshot", "restore", snapshot] + options)
    guard child.status == 0 else { throw CocoaError(.fileReadCorruptFile) }
  }

  /// Ends it as a power cut does.
  func kill() {
    guard let shell else { return }
    try? shell.process.input.close()
    shell.process.end()
    self.shell = nil
  }

  /// Sends a signal to etcd itself.
  func signal(_ signal: Int32) {
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

enum LoopbackPort {
  /// Ports that nothing listens on.
  static func free(count: Int) throws -> [Int] {
    let sockets = try (0..<count).map { _ in try LoopbackSocket() }
    return sockets.map(\.port)
  }
}

/// A socket that is bound to a free port of 127.0.0.1.
final class LoopbackSocket: Sendable {
  let descriptor: Int32
  let port: Int

  init() throws {
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

/// Looks again and again, up to so long.
func waiting(upTo limit: Duration, for condition: () async throws -> Bool) async throws {
  let deadline = ContinuousClock.now + limit
  while try await !condition() {
    guard ContinuousClock.now < deadline else { throw TimedOut() }
    try await Task.sleep(for: .milliseconds(20))
  }
}

struct TimedOut: Error {}
