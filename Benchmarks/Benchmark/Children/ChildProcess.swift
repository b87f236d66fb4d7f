import Foundation

/// A second process of this program: one that uses the same store, or uses it for the first time.
final class ChildProcess {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  private init(_ arguments: [String]) throws {
    process.executableURL = Bundle.main.executableURL
    process.arguments = arguments
    // Binds all symbols at start (ld.so(8)), so that no contender binds them while it is measured.
    process.environment = ProcessInfo.processInfo.environment.merging(["LD_BIND_NOW": "1"]) { $1 }
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  static func start(_ arguments: [String]) throws -> ChildProcess { try ChildProcess(arguments) }

  /// Runs a command to its end, and returns the number it prints.
  static func number(_ arguments: [String]) throws -> Double {
    let text = try ChildProcess(arguments).finish()
    guard let number = Double(text) else { throw Failure(reason: "\(arguments[0]) said \(text)") }
    return number
  }

  /// Waits until the process has printed something.
  func waitForLine() throws {
    try require(!output.fileHandleForReading.availableData.isEmpty, "the other process said nothing")
  }

  func endInput() throws { try input.fileHandleForWriting.close() }

  /// Closes the input of the process if open, waits for its end, and returns the rest of its output.
  func finish() throws -> String {
    try endInput()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    try require(process.terminationStatus == 0, "the other process failed")
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// For the child: prints a line immediately.
  static func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }

  /// For the child: whether the input has ended, after a wait.
  static func isInputAtEnd(afterMilliseconds milliseconds: Int) -> Bool {
    var descriptor = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
    return poll(&descriptor, 1, Int32(milliseconds)) > 0
  }
}
