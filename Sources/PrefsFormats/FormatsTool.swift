import Coffer
import PrefsCommands

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The program that parses YAML and TOML for `prefs`: text on standard input, its tree on standard output.
package enum FormatsTool {
  package static func main() -> Never {
    try? CoreDumps.disable()
    Hardening.turnOffBacktraces()
    exit(run(Array(CommandLine.arguments.dropFirst())))
  }

  private static func run(_ arguments: [String]) -> Int32 {
    guard arguments.count == 1, let format = SettingsFormat(rawValue: arguments[0]), isatty(1) == 0 else { return 2 }
    do {
      let bytes = try FileDescriptor.readAll(0, named: "standard input")
      let text = String(decoding: bytes, as: UTF8.self)
      try FileDescriptor.writeAll(answer { try tree(text, format) }, to: 1, named: "standard output")
      return 0
    } catch {
      return 1
    }
  }

  /// Parses YAML or TOML into a tree.
  package static func tree(_ text: String, _ format: SettingsFormat) throws -> FileTree {
    switch format {
    case .yaml: try YAMLReader.tree(text)
    case .toml: try TOMLReader.tree(text)
    case .plist, .json, .env: throw FormatProblem("it is read by prefs itself")
    }
  }

  private static func answer(_ tree: () throws -> FileTree) throws -> [UInt8] {
    do {
      return [FormatsProgram.Answer.tree.rawValue] + (try TreeBytes.bytes(try tree()))
    } catch let problem as FormatProblem {
      return [FormatsProgram.Answer.problem.rawValue] + problem.reason.utf8
    }
  }
}
