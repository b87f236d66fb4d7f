import Foundation

/// Another process.
package struct Child {
  package let status: Int32
  package let output: Data

  package var text: String { String(decoding: output, as: UTF8.self) }

  /// The folder of the package's executables, beside the test bundle.
  package static let products: URL =
    Bundle.main.bundleURL.pathExtension == "xctest"
    ? Bundle.main.bundleURL.deletingLastPathComponent() : Bundle.main.bundleURL

  package static func run(_ executable: String, _ arguments: [String]) throws -> Child {
    let (process, output) = try start(executable, arguments)
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Child(status: process.terminationStatus, output: data)
  }

  package static func start(_ executable: String, _ arguments: [String]) throws -> (Process, Pipe) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardInput = Pipe()
    try process.run()
    return (process, output)
  }
}
