import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// `prefs serve`, and a client of it that checks each line against the schema.
final class ServedTool {
  typealias Object = [String: Any]

  let child: pid_t
  /// The first line.
  private(set) var greeting: Object = [:]
  /// What came before answers.
  private(set) var notices: [Object] = []
  private var input: Int32
  private let output: Int32
  private var buffer: [UInt8] = []
  private var lastID = 0
  private var hasEnded = false

  /// Starts it, and returns once it serves.
  ///
  /// - Parameter before: What a shell runs, with the tool as `"$@"`; nil to start the tool itself.
  init(
    _ tool: Tool, _ options: String..., by script: String? = nil, environment: [String: String] = [:]
  ) throws {
    let paths = (tool.path("requests-\(UUID().uuidString)"), tool.path("answers-\(UUID().uuidString)"))
    try #require(mkfifo(paths.0, 0o600) == 0 && mkfifo(paths.1, 0o600) == 0)
    // For both, as the child opens one end only once the other is open.
    let ends = (open(paths.0, O_RDWR | O_CLOEXEC), open(paths.1, O_RDONLY | O_NONBLOCK | O_CLOEXEC))
    try #require(ends.0 >= 0 && ends.1 >= 0 && fcntl(ends.1, F_SETFL, 0) == 0)
    (input, output) = ends
    let words = ["serve", "--no-input"] + options
    child = try tool.spawn(
      script.map { ["-c", $0, "sh", Tool.executable] + words } ?? words,
      files: [(0, paths.0, O_RDONLY), (1, paths.1, O_WRONLY), (2, "/dev/null", O_WRONLY)], environment: environment,
      program: script == nil ? Tool.executable : "/bin/sh")
    greeting = try line()
  }

  deinit {
    close(output)
    if input >= 0 {
      close(input)
    }
    guard !hasEnded else { return }
    kill(child, SIGKILL)
    _ = try? Tool.exitCode(of: child)
  }

  /// Connects to a server at a socket.
  init(at path: String) throws {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    #if canImport(Glibc)
      input = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    #else
      input = socket(AF_UNIX, SOCK_STREAM, 0)
    #endif
    output = fcntl(input, F_DUPFD_CLOEXEC, 0)
    _ = fcntl(input, F_SETFD, FD_CLOEXEC)
    (child, hasEnded) = (0, true)
    let descriptor = input
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    try #require(isConnected, "nothing listens at \(path)")
    greeting = try line()
  }

  // MARK: - Lines

  /// Writes bytes.
  func write(_ text: some Sequence<UInt8>) throws {
    var rest = Array(text)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { systemWrite(input, $0) }
      try #require(count > 0)
      rest = rest.dropFirst(count)
    }
  }

  /// Writes a request with the next ID.
  ///
  /// - Returns: The ID.
  @discardableResult
  func send(_ members: String, location: SourceLocation = #_sourceLocation) throws -> Int {
    lastID += 1
    let line = #"{"id":\#(lastID),\#(members)}"#
    let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
    #expect(try SchemaCheck.serve.get().accepts(object, as: "request"), "\(line.prefix(300))", sourceLocation: location)
    try write((line + "\n").utf8)
    return lastID
  }

  /// The next line.
  func line(location: SourceLocation = #_sourceLocation) throws -> Object {
    let text = try #require(try nextLine(), "the server has ended", sourceLocation: location)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(text)) as? Object)
    let isValid = try SchemaCheck.serve.get().accepts(object, as: "line")
    #expect(isValid, "\(String(decoding: text.prefix(500), as: UTF8.self))", sourceLocation: location)
    return object
  }

  /// The bytes of the next line; nil at the end.
  func nextLine() throws -> [UInt8]? {
    var searched = 0
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffer.removeSubrange(...end) }
        return Array(buffer[..<end])
      }
      searched = buffer.count
      var request = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      try #require(poll(&request, 1, 60_000) > 0, "no line came")
      var chunk = [UInt8](repeating: 0, count: 1 << 16)
      let count = read(output, &chunk, chunk.count)
      guard count > 0 else { return nil }
      buffer += chunk[..<count]
    }
  }

  /// The answer to a request; the notices that come before it are kept.
  func answer(_ members: String, location: SourceLocation = #_sourceLocation) throws -> Object {
    try answer(to: try send(members, location: location), location: location)
  }

  func answer(to id: Int, location: SourceLocation = #_sourceLocation) throws -> Object {
    while true {
      let object = try line(location: location)
      if object["watch"] == nil || object["id"] != nil {
        #expect(object["id"] as? Int == id, sourceLocation: location)
        return object
      }
      notices.append(object)
    }
  }

  /// What a request that must succeed answers.
  @discardableResult
  func ok(_ members: String, location: SourceLocation = #_sourceLocation) throws -> Object {
    let answer = try answer(members, location: location)
    return try #require(answer["ok"] as? Object, "\(members.prefix(300)): \(answer)", sourceLocation: location)
  }

  /// The name and the message of the error of a request that must fail.
  func failure(_ members: String, location: SourceLocation = #_sourceLocation) throws -> (name: String, message: String)
  {
    let answer = try answer(members, location: location)
    let error = try #require(answer["error"] as? Object, "\(members.prefix(300)): \(answer)", sourceLocation: location)
    return (
      try #require(error["error"] as? String, sourceLocation: location),
      try #require(error["message"] as? String, sourceLocation: location)
    )
  }

  /// The next notice, which may have come before an answer.
  func notice(location: SourceLocation = #_sourceLocation) throws -> Object {
    if !notices.isEmpty { return notices.removeFirst() }
    let object = try line(location: location)
    #expect(object["id"] == nil, "\(object)", sourceLocation: location)
    return object
  }

  /// The value of a key.
  func value(_ collection: String, _ key: String, location: SourceLocation = #_sourceLocation) throws -> Any? {
    try ok(#""do":"get","collection":"\#(collection)","key":"\#(key)""#, location: location)["value"]
  }

  // MARK: - The end

  /// Ends the input, and waits for the end of the server.
  func end() throws -> Int32 {
    close(input)
    input = -1
    return try exitCode()
  }

  /// Waits for its end.
  func exitCode() throws -> Int32 {
    hasEnded = true
    return try Tool.exitCode(of: child)
  }
}

// At file level, where no method hides it.
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  write(descriptor, bytes.baseAddress, bytes.count)
}
