import Foundation
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

  init(_ name: String) throws {
    (self.name, home) = (name, try ScratchFolder())
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

  /// A process of the tool, which has not begun.
  func process(_ arguments: [String], environment: [String: String] = [:]) -> Process {
    let process = Process()
    process.executableURL = Self.tool
    process.arguments = arguments
    process.environment = ["HOME": home.path, "PATH": "/usr/bin:/bin", "LC_ALL": "C"].merging(environment) { $1 }
    return process
  }

  /// Runs `prefs`.
  func prefs(_ arguments: [String], input: String = "", environment: [String: String] = [:]) throws -> Run {
    let process = process(arguments, environment: environment)
    let id = UUID().uuidString
    let files = try ["in", "out", "err"].map { name in
      let path = home.file("\(name)-\(id)")
      try Data(name == "in" ? Array(input.utf8) : []).write(to: URL(fileURLWithPath: path))
      return path
    }
    defer { for file in files { unlink(file) } }
    process.standardInput = FileHandle(forReadingAtPath: files[0])
    process.standardOutput = FileHandle(forWritingAtPath: files[1])
    process.standardError = FileHandle(forWritingAtPath: files[2])
    try process.run()
    process.waitUntilExit()
    let texts = try files.dropFirst().map { try String(contentsOfFile: $0, encoding: .utf8) }
    return Run(code: process.terminationStatus, output: texts[0], message: texts[1])
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
  private let process: Process
  /// Ends the program where the tests' process goes without doing so.
  private let watchdog: Process
  private let messages = Pipe()
  private var buffered: [UInt8] = []

  init(_ host: ToolHost, environment: [String: String] = [:]) throws {
    process = host.process(["fleet", "run"], environment: environment)
    process.standardInput = FileHandle.nullDevice
    process.standardError = messages
    try process.run()
    try messages.fileHandleForWriting.close()
    (watchdog, _) = try Child.start(
      "/bin/sh", ["-c", "cat >/dev/null; kill -KILL $0", "\(process.processIdentifier)"])
  }

  deinit { end(SIGKILL) }

  var id: Int32 { process.processIdentifier }

  /// Waits until it says something, and returns that line.
  @discardableResult
  func say(_ text: String) throws -> String {
    while true {
      while let end = buffered.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: buffered[..<end], as: UTF8.self)
        buffered.removeSubrange(...end)
        if line.contains(text) { return line }
      }
      var request = pollfd(fd: messages.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
      try #require(poll(&request, 1, 60_000) > 0, "it never said \(text)")
      let bytes = try #require(try messages.fileHandleForReading.read(upToCount: 1), "it ended and never said \(text)")
      buffered += bytes
      // A line at a time: what one read brings and the next does not would be waited for.
      try #require(!bytes.isEmpty, "it ended and never said \(text)")
    }
  }

  /// Ends it with a signal.
  ///
  /// - Returns: Its exit code, or the signal that ended it as a negative number.
  @discardableResult
  func end(_ signal: Int32 = SIGTERM) -> Int32 {
    if watchdog.isRunning {
      kill(process.processIdentifier, signal)
      process.waitUntilExit()
      kill(watchdog.processIdentifier, SIGKILL)
      watchdog.waitUntilExit()
    }
    return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
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
    }
  }
}

/// A fleet that the tool makes: the first host is its admin, the others join as writers.
func toolFleet(_ names: String..., at address: String, collections: [String] = ["web"]) throws -> [ToolHost] {
  let hosts = try names.map(ToolHost.init)
  let options = ["--at", address, "--as", names[0]] + collections.flatMap { ["-c", $0] }
  let made = try hosts[0].prefs(["fleet", "create", "team"] + options)
  try #require(made.code == 0, "\(made.message)")
  for host in hosts.dropFirst() {
    let invitation = try hosts[0].succeed("invite", host.name, "--role", "writer")
    try host.succeed("join", "-", input: invitation)
  }
  return hosts
}
