import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CofferFleet

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A host on which the built tool is used, with a home of its own.
final class ToolHost: Sendable {
  let name: String
  let home: ScratchFolder
  private let namespace: NetworkNamespace?

  init(_ name: String, in namespace: NetworkNamespace? = nil) throws {
    (self.name, self.namespace, home) = (name, namespace, try ScratchFolder())
    if let key = Self.s3Key.withLock(\.self) { try write(s3Key: key) }
  }

  /// The access key of an S3-compatible storage that each host has, in the format of AWS's tools.
  static let s3Key = Mutex<String?>(nil)

  /// Puts an access key where AWS's tools look for it.
  func write(s3Key key: String) throws {
    let folder = home.file(".aws")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data(key.utf8).write(to: URL(fileURLWithPath: "\(folder)/credentials"))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(folder)/credentials")
  }

  struct Run {
    let code: Int32
    let output: String
    let message: String

    var lines: [String] { output.split(separator: "\n").map(String.init) }

    /// The object that is all of the output.
    func json() throws -> [String: Any] {
      try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
    }

    func jsonArray() throws -> [[String: Any]] {
      try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [[String: Any]])
    }
  }

  static let tool = Child.products.appendingPathComponent("prefs")

  /// Starts the tool.
  ///
  /// - Parameter files: The paths of its standard input, output and error.
  func start(
    _ arguments: [String], files: (input: String, output: String, message: String), environment: [String: String] = [:]
  ) throws -> SpawnedProcess {
    try SpawnedProcess(
      (namespace?.entry ?? []) + [Self.tool.path] + arguments,
      environment: ["HOME": home.path, "PATH": "/usr/bin:/bin", "LC_ALL": "C"].merging(environment) { $1 },
      files: [
        0: .path(files.input, flags: O_RDONLY), 1: .path(files.output, flags: O_WRONLY | O_CREAT),
        2: .path(files.message, flags: O_WRONLY | O_CREAT),
      ])
  }

  /// Runs `prefs`.
  func prefs(_ arguments: [String], input: String = "", environment: [String: String] = [:]) throws -> Run {
    let id = UUID().uuidString
    let files = (input: home.file("in-\(id)"), output: home.file("out-\(id)"), message: home.file("err-\(id)"))
    defer { for file in [files.input, files.output, files.message] { unlink(file) } }
    try input.write(toFile: files.input, atomically: false, encoding: .utf8)
    let code = try start(arguments, files: files, environment: environment).end()
    return Run(
      code: code, output: try String(contentsOfFile: files.output, encoding: .utf8),
      message: try String(contentsOfFile: files.message, encoding: .utf8))
  }

  /// What there is in its home, besides the access key that the tests put there.
  func files() throws -> [URL] {
    let all = FileManager.default.enumerator(at: URL(fileURLWithPath: home.path), includingPropertiesForKeys: nil)
    return (all?.allObjects as? [URL] ?? []).filter { !$0.hasDirectoryPath && !$0.path.contains("/.aws/") }
  }

  /// Runs `prefs fleet`.
  func fleet(_ arguments: String..., input: String = "", environment: [String: String] = [:]) throws -> Run {
    try prefs(["fleet"] + arguments, input: input, environment: environment)
  }

  /// Runs `prefs fleet`, which has to succeed, and returns its standard output.
  @discardableResult
  func succeed(
    _ arguments: String..., input: String = "", location: SourceLocation = #_sourceLocation
  ) throws -> String {
    let run = try prefs(["fleet"] + arguments, input: input)
    #expect(run.code == 0, "\(name): \(arguments): \(run.message)", sourceLocation: location)
    return run.output
  }

  func set(_ key: String, _ value: String, location: SourceLocation = #_sourceLocation) throws {
    let run = try prefs(["set", key, "--", value])
    #expect(run.code == 0, "\(run.message)", sourceLocation: location)
  }

  /// nil where it is not set.
  func get(_ key: String) throws -> String? {
    let run = try prefs(["get", key])
    return run.code == 0 ? String(run.output.dropLast()) : nil
  }

  /// Waits until a setting has come.
  func await(_ key: String, _ value: String?, location: SourceLocation = #_sourceLocation) async throws {
    do {
      try await waiting(upTo: .seconds(60)) { try get(key) == value }
    } catch {
      Issue.record("\(name): \(key) is \(try get(key) ?? "not set"), not \(value ?? "unset")", sourceLocation: location)
    }
  }
}

/// A process of `prefs fleet run`, which ends with its last reference.
final class RunningFleet: @unchecked Sendable {
  // Unchecked: one test at a time waits for its lines.
  private let process: SpawnedProcess
  /// Kept, with its home.
  private let host: ToolHost
  /// Ends the process if the tests' process ends without doing so, which closes its input.
  private let watchdog: SpawnedProcess
  private let life: Int32
  private let messages: Int32
  private var buffered: [UInt8] = []
  private var hasEnded = false

  init(_ host: ToolHost, environment: [String: String] = [:]) throws {
    self.host = host
    let id = UUID().uuidString
    let (lines, life) = (host.home.file("messages-\(id)"), host.home.file("life-\(id)"))
    try #require(mkfifo(lines, 0o600) == 0 && mkfifo(life, 0o600) == 0)
    // Open at both ends, so that no opening waits.
    messages = open(lines, O_RDWR | O_CLOEXEC)
    process = try host.start(
      ["fleet", "run"], files: ("/dev/null", "/dev/null", lines), environment: environment)
    let reader = open(life, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    self.life = open(life, O_WRONLY | O_CLOEXEC)
    watchdog = try SpawnedProcess(
      ["/bin/sh", "-c", "cat >/dev/null; kill -KILL $0", "\(process.id)"], environment: ["PATH": "/usr/bin:/bin"],
      files: [
        0: .path(life, flags: O_RDONLY), 1: .path("/dev/null", flags: O_WRONLY), 2: .path("/dev/null", flags: O_WRONLY),
      ])
    close(reader)
  }

  deinit { end(SIGKILL) }

  /// Waits until it says something, and returns that line.
  @discardableResult
  func say(_ text: String) throws -> String {
    while true {
      while let end = buffered.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: buffered[..<end], as: UTF8.self)
        buffered.removeSubrange(...end)
        if line.contains(text) { return line }
      }
      var request = pollfd(fd: messages, events: Int16(POLLIN), revents: 0)
      try #require(poll(&request, 1, 60_000) > 0, "it never said \(text)")
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = read(messages, &bytes, bytes.count)
      try #require(count > 0)
      buffered += bytes[..<count]
    }
  }

  /// Ends it with a signal.
  ///
  /// - Returns: Its exit code, or the signal that ended it as a negative number.
  @discardableResult
  func end(_ signal: Int32 = SIGTERM) -> Int32 {
    guard !hasEnded else { return 0 }
    hasEnded = true
    kill(process.id, signal)
    let code = process.end()
    // Before its input ends: the number may be another process's by now.
    kill(watchdog.id, SIGKILL)
    _ = watchdog.end()
    close(life)
    close(messages)
    return code
  }
}

/// Where hosts find a carrier of their own.
final class CarrierPlace: Sendable {
  let address: String
  private let folder: ScratchFolder?

  init(_ kind: CarrierKind) async throws {
    switch kind {
    case .file:
      let folder = try ScratchFolder()
      (address, self.folder) = ("file://\(folder.path)/carrier", folder)
    case .etcd:
      guard EtcdServer.isInstalled else { try Test.cancel("etcd is not installed") }
      (address, folder) = (try await EtcdServer.common().address(prefix: "program-\(UUID().uuidString)"), nil)
    case .s3, .mergingS3:
      guard let server = try await S3Server.common() else { try Test.cancel("moto is not installed") }
      ToolHost.s3Key.withLock { $0 = S3Server.file(server.writer) }
      (address, folder) = (server.address(prefix: "program-\(UUID().uuidString)"), nil)
    }
  }
}

/// A fleet that the tool makes: the first host is its admin, the others join as writers.
func toolFleet(
  _ names: String..., named fleet: String = "team", at address: String, collections: [String] = ["web"]
) throws -> [ToolHost] {
  let hosts = try names.map { try ToolHost($0) }
  let options = ["--at", address, "--as", names[0]] + collections.flatMap { ["-c", $0] }
  let made = try hosts[0].prefs(["fleet", "create", fleet] + options)
  try #require(made.code == 0, "\(made.message)")
  for host in hosts.dropFirst() {
    let invitation = try hosts[0].succeed("invite", host.name, "--role", "writer")
    try host.succeed("join", "-", input: invitation)
    // Which admits it.
    try hosts[0].succeed("sync")
    try host.succeed("sync")
  }
  return hosts
}
