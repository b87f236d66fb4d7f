import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What a process left that ended.
package struct Child {
  /// Its exit code, or the signal that ended it as a negative number.
  package let status: Int32
  package let output: Data
  /// Its standard error; empty unless it was captured.
  package let message: String

  package var text: String { String(decoding: output, as: UTF8.self) }

  /// The folder of the package's executables, beside the test bundle.
  package static let products: URL =
    Bundle.main.bundleURL.pathExtension == "xctest"
    ? Bundle.main.bundleURL.deletingLastPathComponent() : Bundle.main.bundleURL

  /// Whether `unshare -m` works here, so that a program can have mounts of its own.
  package static let canMount: Bool = {
    guard getuid() == 0, let child = try? run("/usr/bin/unshare", ["-m", "true"]) else { return false }
    return child.status == 0
  }()

  /// Runs a program to its end, with empty standard input.
  ///
  /// - Parameters:
  ///   - capturesMessages: Whether its standard error is ``message``, instead of that of this process.
  package static func run(
    _ executable: String, _ arguments: [String], environment: [String: String] = ProcessInfo.processInfo.environment,
    capturesMessages: Bool = false
  ) throws -> Child {
    let file = capturesMessages ? NSTemporaryDirectory() + "coffer-child-\(UUID().uuidString)" : nil
    defer { if let file { unlink(file) } }
    let child = try RunningChild(
      [executable] + arguments, environment: environment, input: .path("/dev/null", flags: O_RDONLY),
      messages: file.map { .path($0, flags: O_WRONLY | O_CREAT | O_EXCL) })
    let output = child.output.readDataToEndOfFile()
    let status = child.end()
    return Child(
      status: status, output: output,
      message: try file.map { String(decoding: try Data(contentsOf: URL(fileURLWithPath: $0)), as: UTF8.self) } ?? "")
  }

  /// Starts a program that reads what is written to ``RunningChild/input``.
  package static func start(_ executable: String, _ arguments: [String]) throws -> RunningChild {
    try RunningChild([executable] + arguments)
  }
}

/// A process that runs, with pipes to its standard input and from its output; it is one that ends when its input does.
package final class RunningChild: @unchecked Sendable {
  // Unchecked: one thread at a time reads its lines, and waits for its end.
  package let input: FileHandle
  package let output: FileHandle
  private let process: SpawnedProcess
  private var status: Int32?
  private var buffered = Data()

  package var id: pid_t { process.id }

  /// - Parameters:
  ///   - input: Its standard input, instead of a pipe.
  ///   - messages: Its standard error, instead of that of this process.
  fileprivate init(
    _ words: [String], environment: [String: String] = ProcessInfo.processInfo.environment,
    input: SpawnedProcess.File? = nil,
    messages: SpawnedProcess.File? = nil
  ) throws {
    let (standardInput, standardOutput) = (Pipe(), Pipe())
    (self.input, output) = (standardInput.fileHandleForWriting, standardOutput.fileHandleForReading)
    var files: [Int32: SpawnedProcess.File] = [
      0: input ?? .descriptor(standardInput.fileHandleForReading.fileDescriptor),
      1: .descriptor(standardOutput.fileHandleForWriting.fileDescriptor),
    ]
    files[2] = messages
    process = try SpawnedProcess(words, environment: environment, files: files)
    try standardInput.fileHandleForReading.close()
    try standardOutput.fileHandleForWriting.close()
  }

  deinit {
    try? input.close()
    end()
  }

  package func write(_ line: String) throws { try input.write(contentsOf: Data((line + "\n").utf8)) }

  /// The next line that it prints; nil at the end.
  package func readLine() -> String? {
    while true {
      if let end = buffered.firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffered = Data(buffered[(end + 1)...]) }
        return String(decoding: buffered[..<end], as: UTF8.self)
      }
      let more = output.availableData
      guard !more.isEmpty else { return nil }
      buffered += more
    }
  }

  /// Ends it with SIGKILL.
  package func kill() {
    guard isRunning else { return }
    sendSignal(id, SIGKILL)
    end()
  }

  /// Waits for its end; see ``SpawnedProcess/end()``.
  @discardableResult
  package func end() -> Int32 {
    let status = status ?? process.end()
    self.status = status
    return status
  }

  package var isRunning: Bool {
    status = status ?? process.endIfEnded()
    return status == nil
  }
}

// The method has the same name.
private func sendSignal(_ process: pid_t, _ signal: Int32) { kill(process, signal) }
