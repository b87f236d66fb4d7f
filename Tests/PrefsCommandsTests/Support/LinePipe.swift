import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The output of a running process, line by line.
final class LinePipe {
  let path: String
  private var descriptor: Int32
  private var buffered: [UInt8] = []

  init(_ path: String) throws {
    self.path = path
    try #require(mkfifo(path, 0o600) == 0)
    // Before there is a writer, only an open that does not block succeeds; the writer then finds a reader.
    descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try #require(descriptor >= 0)
    try #require(fcntl(descriptor, F_SETFL, 0) == 0)
  }

  deinit { close() }

  /// Goes away, as a reader does that has seen enough.
  func close() {
    if descriptor >= 0 { _ = Foundation.close(descriptor) }
    descriptor = -1
  }

  /// The next line; nil when the writer has gone.
  func next() throws -> String? {
    while true {
      if let end = buffered.firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffered.removeSubrange(...end) }
        return String(decoding: buffered[..<end], as: UTF8.self)
      }
      var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      try #require(poll(&request, 1, 60_000) > 0, "no line came")
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = read(descriptor, &chunk, chunk.count)
      guard count > 0 else { return nil }
      buffered += chunk[..<count]
    }
  }

  /// The next `count` lines.
  func lines(_ count: Int) throws -> [String] {
    try (0..<count).map { _ in try #require(try next()) }
  }
}

/// `prefs watch`, under way.
final class Watch {
  let output: LinePipe
  let messages: LinePipe
  let child: pid_t

  /// Returns when it watches.
  ///
  /// - Parameter files: Further descriptors, with the paths to read from.
  init(
    _ tool: Tool, _ options: String..., arguments: [String] = [], files: [Int32: String] = [:],
    environment: [String: String] = [:]
  ) throws {
    let id = UUID().uuidString
    output = try LinePipe(tool.path("watch-\(id)"))
    messages = try LinePipe(tool.path("messages-\(id)"))
    child = try tool.spawn(
      ["watch", "-v"] + options + arguments,
      files: [(1, output.path, O_WRONLY), (2, messages.path, O_WRONLY)] + files.map { ($0, $1, O_RDONLY) },
      environment: environment)
    while try #require(try messages.next()) != "prefs: watching" {}
  }

  func send(_ signal: Int32) { kill(child, signal) }

  /// Waits for its end; there must be no further output.
  func exitCode() throws -> Int32 {
    let code = try Tool.exitCode(of: child)
    #expect(try messages.next() == nil)
    return code
  }

  /// Ends it, and gives the lines that were not read yet.
  func end() throws -> [String] {
    send(SIGTERM)
    #expect(try exitCode() == 128 + SIGTERM)
    var lines: [String] = []
    while let line = try output.next() { lines.append(line) }
    return lines
  }

  /// A line with the number of the commit in the place of its position.
  static func numbered(_ line: String) -> String { line.replacing(/^([0-9]+)-[0-9a-f]{8}/, with: { $0.output.1 }) }
}
