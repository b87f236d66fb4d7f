import Foundation

/// An S3-compatible storage on this machine's loopback: moto, with a bucket `fleets`; it checks signatures.
///
/// It ends with its last reference, or with this process.
package final class S3Server: Sendable {
  package let port: Int
  /// The access keys of a user who may do everything, and of one who only reads.
  package let writer: (name: String, secret: String)
  package let reader: (name: String, secret: String)
  private let process: RunningChild
  /// A Python that has moto, and with it Amazon's client.
  private let python: String

  /// One that tests share, each under a prefix of its own; nil if moto is not installed and cannot be.
  package static func common() async throws -> S3Server? { try await shared.value }
  private static let shared = Task { try S3Server() }

  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("S3")

  private init?() throws {
    let folder = Self.folder
    let prepared = try Child.run(folder.appendingPathComponent("prepare").path, [])
    let python = prepared.text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard prepared.status == 0, !python.isEmpty else { return nil }
    process = try Child.start(python, [folder.appendingPathComponent("server.py").path])
    let words = (process.readLine() ?? "").split(separator: " ").map(String.init)
    guard words.count == 5, let port = Int(words[0]) else { throw CocoaError(.fileReadUnknown) }
    (self.port, self.python) = (port, python)
    (writer, reader) = ((words[1], words[2]), (words[3], words[4]))
  }

  /// The address of a carrier on it.
  ///
  /// - Parameters:
  ///   - port: Another one, such as that of a relay.
  ///   - options: More options, each behind an ampersand.
  package func address(bucket: String = "fleets", prefix: String, port: Int? = nil, options: String = "&poll=0.1")
    -> String
  {
    "s3://\(bucket)/\(prefix)?endpoint=http://127.0.0.1:\(port ?? self.port)\(options)"
  }

  /// What a program reads that knows only Documentation/PackedCarrier.md: objects in hexadecimal, by name.
  package func objects(prefix: String) throws -> [String: String] {
    let program = try Child.start(
      python, [Self.folder.appendingPathComponent("read.py").path, "http://127.0.0.1:\(port)", "fleets", prefix])
    try program.write("\(writer.name) \(writer.secret)")
    try program.input.close()
    let output = program.output.readDataToEndOfFile()
    guard program.end() == 0 else { throw CocoaError(.fileReadCorruptFile) }
    return try JSONDecoder().decode([String: String].self, from: output)
  }

  /// An access key as AWS's tools have it in a file.
  package static func file(_ key: (name: String, secret: String)) -> String {
    "[default]\naws_access_key_id = \(key.name)\naws_secret_access_key = \(key.secret)\n"
  }
}
