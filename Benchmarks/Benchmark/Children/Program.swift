import Foundation

/// A system program, run as a process.
struct Program {
  let path: String

  /// - Parameter name: A path, or a name to look up in `PATH`.
  init(_ name: String) throws {
    guard let path = Self.path(of: name) else { throw Failure(reason: "\(name) is not installed") }
    self.path = path
  }

  static func path(of name: String) -> String? {
    if name.contains("/") { return FileManager.default.isExecutableFile(atPath: name) ? name : nil }
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    return folders.map { "\($0)/\(name)" }.first(where: FileManager.default.isExecutableFile)
  }

  /// Runs the program, and returns its output without the last newline.
  func output(
    _ arguments: [String], environment: [String: String]? = nil, input: String = ""
  ) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    if let environment { process.environment = environment }
    let (standardInput, standardOutput) = (Pipe(), Pipe())
    process.standardInput = standardInput
    process.standardOutput = standardOutput
    try process.run()
    try standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
    try standardInput.fileHandleForWriting.close()
    let text = String(decoding: standardOutput.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    try require(process.terminationStatus == 0, "\(path) ended with \(process.terminationStatus)")
    return text.trimmingCharacters(in: .newlines)
  }

  /// The milliseconds on the wall clock from before the start of the program until it has ended, and what it says, which
  /// must fit into a pipe.
  func time(_ arguments: [String], environment: [String: String]) throws -> (milliseconds: Double, output: String) {
    let output = Pipe()
    var actions = Self.emptyActions()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output.fileHandleForWriting.fileDescriptor, 1)
    var argumentList = ([path] + arguments).map { strdup($0) } + [nil]
    var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in argumentList + variables { free(text) } }
    var (child, status): (pid_t, Int32) = (0, 0)
    let start = Measure.nanoseconds()
    let code = posix_spawn(&child, path, &actions, nil, &argumentList, &variables)
    try require(code == 0, "\(path) cannot be started: \(String(cString: strerror(code)))")
    waitpid(child, &status, 0)
    let time = Measure.nanoseconds() - start
    try output.fileHandleForWriting.close()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    try require(status == 0, "\(path) ended with status \(status)")
    return (Double(time) / 1e6, text.trimmingCharacters(in: .newlines))
  }

  #if os(Linux)
    private static func emptyActions() -> posix_spawn_file_actions_t { posix_spawn_file_actions_t() }
  #else
    private static func emptyActions() -> posix_spawn_file_actions_t? { nil }
  #endif
}
