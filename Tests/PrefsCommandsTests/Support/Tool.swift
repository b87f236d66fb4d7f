import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// The built tool in a home of its own, which goes away with the last reference.
final class Tool: Sendable {
  let home: URL
  /// Whose home this is, when it is another one's.
  private let host: Tool?
  /// Whether the kernel refuses its keyrings, as in a container.
  private let isRefusedKeyrings: Bool

  init(isRefusedKeyrings: Bool = false) throws {
    home = FileManager.default.temporaryDirectory.appendingPathComponent("prefs-test-\(UUID().uuidString)")
    host = nil
    self.isRefusedKeyrings = isRefusedKeyrings
    for folder in [home.path, runtime] {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }
  }

  /// The same home, where the kernel refuses its keyrings.
  init(withoutKeyrings host: Tool) {
    home = host.home
    self.host = host
    isRefusedKeyrings = true
  }

  deinit {
    guard host == nil else { return }
    for folder in [home.path, runtime] { try? FileManager.default.removeItem(atPath: folder) }
  }

  // MARK: - Places

  var store: String { home.path + "/.local/share/prefs/settings.coffer" }
  /// The folder for sockets, beside the home: it must contain nothing unexpected.
  var runtime: String { home.path + "-run" }
  var keyFile: String { home.path + "/.config/prefs/key" }

  func path(_ name: String) -> String { home.path + "/" + name }

  /// Writes a file into the home and returns its path.
  @discardableResult
  func write(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
    try Data(Array(bytes)).write(to: URL(fileURLWithPath: path(name)))
    return path(name)
  }

  /// Everything up to the end: `Data(contentsOf:)` stops at the first short read, as each of a long file in /proc is.
  func contents(_ path: String) throws -> [UInt8] {
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    return Array(try file.readToEnd() ?? Data())
  }

  func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  func mode(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return try #require(attributes[.posixPermissions] as? Int)
  }

  /// The path of the built tool, beside the tests.
  static let executable: String = {
    for argument in CommandLine.arguments + [Bundle.main.executablePath ?? ""] where argument.contains("/") {
      var folder = URL(fileURLWithPath: argument)
      while folder.path != "/" {
        folder.deleteLastPathComponent()
        let candidate = folder.appendingPathComponent("prefs").path
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: candidate, isDirectory: &isFolder), !isFolder.boolValue,
          FileManager.default.isExecutableFile(atPath: candidate)
        {
          return candidate
        }
      }
    }
    return "prefs"
  }()

  /// The program of tests that does what Swift cannot do to a process it starts.
  static let worker = URL(fileURLWithPath: executable).deletingLastPathComponent().appendingPathComponent(
    "StoreWorker"
  ).path

  // MARK: - Running

  /// What a run left behind.
  struct Run {
    let code: Int32
    let output: [UInt8]
    let message: String

    /// Standard output as text.
    var text: String { String(decoding: output, as: UTF8.self) }
  }

  /// Runs the tool without a terminal.
  ///
  /// - Parameters:
  ///   - input: What standard input holds.
  ///   - descriptors: What further descriptors hold.
  ///   - environment: Added to `HOME`, `PATH` and `XDG_RUNTIME_DIR`, which are all there is.
  ///   - program: What to run instead of the tool.
  @discardableResult
  func run(
    _ arguments: [String], input: some Sequence<UInt8>, descriptors: [Int32: String] = [:],
    environment: [String: String] = [:], program: String = executable
  ) throws -> Run {
    let id = UUID().uuidString
    var files: [(Int32, String, Int32)] = [(0, try write("in-\(id)", input), O_RDONLY)]
    for descriptor in [Int32(1), 2] {
      files.append((descriptor, path("out\(descriptor)-\(id)"), O_WRONLY | O_CREAT | O_EXCL))
    }
    for (descriptor, text) in descriptors {
      files.append((descriptor, try write("fd\(descriptor)-\(id)", text.utf8), O_RDONLY))
    }
    defer { for (_, path, _) in files { unlink(path) } }
    let child = try spawn(arguments, files: files, environment: environment, program: program)
    let code = try Self.exitCode(of: child)
    return Run(
      code: code, output: try contents(files[1].1),
      message: String(decoding: try contents(files[2].1), as: UTF8.self))
  }

  @discardableResult
  func run(
    _ arguments: String..., input: String = "", descriptors: [Int32: String] = [:], environment: [String: String] = [:]
  ) throws -> Run {
    try run(arguments, input: input.utf8, descriptors: descriptors, environment: environment)
  }

  /// Runs the tool, which has to succeed, and returns its standard output.
  @discardableResult
  func succeed(
    _ arguments: String..., input: String = "", environment: [String: String] = [:],
    location: SourceLocation = #_sourceLocation
  ) throws -> String {
    let run = try run(arguments, input: input.utf8, environment: environment)
    #expect(run.code == 0, "\(arguments): \(run.message)", sourceLocation: location)
    return run.text
  }

  /// Adds a slot with a passphrase that is cheap to try.
  func addPassphrase(_ passphrase: String, label: String = "") throws -> Run {
    try run(
      "key", "add", "--label", label, "--new-passphrase-fd", "3", "--cost", "14", descriptors: [3: passphrase])
  }

  /// What `key list --json` says.
  func slots(_ options: String...) throws -> [[String: Any]] {
    let run = try run(["key", "list", "--json"] + options, input: "".utf8)
    return try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? [[String: Any]])
  }

  /// Starts the tool in a session of its own, with each path open on its descriptor.
  ///
  /// This detaches it from the terminal of the person who runs the tests, where it would otherwise ask its questions.
  func spawn(
    _ arguments: [String], files: [(descriptor: Int32, path: String, flags: Int32)],
    environment: [String: String] = [:], program: String = executable
  ) throws -> pid_t {
    var variables = [
      "HOME": home.path, "PATH": "/usr/bin:/bin", "LC_ALL": "C", "XDG_RUNTIME_DIR": runtime,
    ]
    variables.merge(environment) { $1 }
    let command =
      (isRefusedKeyrings ? [Self.worker, "without-keyring", "-", "-"] : []) + [program] + arguments
    let opened = files.map { ($0.descriptor, SpawnedProcess.File.path($0.path, flags: $0.flags)) }
    return try SpawnedProcess(
      command, environment: variables, files: Dictionary(uniqueKeysWithValues: opened), hasOwnSession: true
    ).id
  }

  /// Waits for the end; 128+N stands for signal N, as in a shell.
  static func exitCode(of child: pid_t) throws -> Int32 {
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 { try #require(errno == EINTR) }
    let signal = status & 0x7f
    return signal == 0 ? (status >> 8) & 0xff : 128 + signal
  }
}
