import Foundation
import GRDBSQLite

/// The machine and the software of the measurement.
enum Machine {
  /// Names and facts, for a table.
  ///
  /// - Parameter package: The folder of the benchmarks' package.
  static func facts(package: String, command: String) throws -> [(String, String)] {
    return [
      ("command", "`\(command)`"),
      ("date", Date().formatted(.iso8601.year().month().day())),
      ("commit", try commit(package)),
      ("processor", "\(processor), \(ProcessInfo.processInfo.activeProcessorCount) cores"),
      ("memory", "\(Int((Double(ProcessInfo.processInfo.physicalMemory) / 1_073_741_824).rounded())) GiB"),
      ("system", "\(system), \(try Program("uname").output(["-sr"]))"),
      ("Swift", try swift()),
      ("SQLite", String(cString: sqlite3_libversion())),
      ("OpenSSL", openSSL),
      ("GRDB", try resolvedVersion(of: "grdb.swift", package)),
      ("SQLCipher", try CipherKind.sqlCipher.version()),
      ("SQLite3 Multiple Ciphers", try CipherKind.aegis.version()),
      ("LMDB", LMDBPeer.version),
    ]
  }

  private static func commit(_ package: String) throws -> String {
    let git = try Program("git")
    let name = try git.output(["-C", package, "rev-parse", "--short=10", "HEAD"])
    let isChanged = try !git.output(["-C", package, "status", "--porcelain", "--untracked-files=no"]).isEmpty
    return name + (isChanged ? ", with changes" : "")
  }

  private static func swift() throws -> String {
    let text = try Program(ProcessInfo.processInfo.environment["SWIFT"] ?? "swift").output(["--version"])
    guard let version = text.split(separator: "\n").first(where: { $0.contains("Swift version") }) else { return text }
    return String(version).replacing(#/.*Swift version /#, with: "")
  }

  private static var processor: String {
    value(of: "model name", in: "/proc/cpuinfo", separator: ":") ?? machineName
  }

  private static var machineName: String { (try? Program("uname").output(["-m"])) ?? "unknown" }

  private static var system: String {
    value(of: "PRETTY_NAME", in: "/etc/os-release", separator: "=")?.replacing("\"", with: "")
      ?? ProcessInfo.processInfo.operatingSystemVersionString
  }

  private static func value(of name: String, in path: String, separator: Character) -> String? {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
    let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
    return line?.split(separator: separator, maxSplits: 1).last.map { $0.trimmingCharacters(in: .whitespaces) }
  }

  /// Of the library loaded by Coffer in this process.
  private static var openSSL: String {
    typealias Version = @convention(c) (Int32) -> UnsafePointer<CChar>?
    guard let symbol = dlsym(dlopen(nil, RTLD_NOW), "OpenSSL_version"),
      let text = unsafeBitCast(symbol, to: Version.self)(0)
    else { return "unknown" }
    return String(cString: text).replacing("OpenSSL ", with: "")
  }

  private struct Resolved: Decodable {
    struct Pin: Decodable {
      struct State: Decodable { let version: String? }
      let identity: String
      let state: State
    }
    let pins: [Pin]
  }

  private static func resolvedVersion(of identity: String, _ package: String) throws -> String {
    let data = try Data(contentsOf: URL(fileURLWithPath: "\(package)/Package.resolved"))
    let resolved = try JSONDecoder().decode(Resolved.self, from: data)
    return resolved.pins.first { $0.identity == identity }?.state.version ?? "unknown"
  }
}
