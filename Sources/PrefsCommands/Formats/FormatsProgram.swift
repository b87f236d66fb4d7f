import Coffer

/// The program `prefs-formats`, which parses YAML and TOML for `prefs`.
///
/// The parsers depend on all of Foundation: 45 MB, and a millisecond or more of every start. And if one crashes, it
/// cannot affect an open store. The text is passed through a pipe, and the result comes back through another as
/// ``TreeBytes``.
package enum FormatsProgram {
  static let name = "formats"

  /// The first byte of an answer.
  package enum Answer: UInt8 {
    case tree = 1
    case problem = 2
  }

  /// Parses a file into a tree.
  ///
  /// - Throws: ``FormatProblem``; ``Failure`` when the program is missing or failed.
  package static func tree(_ text: String, _ format: SettingsFormat) throws -> FileTree {
    let program = try find(for: format)
    let (answer, status) = try program.run([format.rawValue], input: text)
    guard status == 0, let first = answer.first, let kind = Answer(rawValue: first) else {
      let signal = status & 0x7f
      let end = signal == 0 ? "exit code \(status >> 8 & 0xff)" : "signal \(signal)"
      throw FormatProblem("the reader for \(format.rawValue) failed with \(end)")
    }
    switch kind {
    case .tree: return try TreeBytes.tree(answer.dropFirst())
    case .problem: throw FormatProblem(String(decoding: answer.dropFirst(), as: UTF8.self))
    }
  }

  /// Finds the program and checks that it may be run.
  ///
  /// - Throws: ``Failure`` when it is missing, or others may write to it.
  static func find(for format: SettingsFormat) throws -> ProgramBeside {
    guard let program = ProgramBeside(named: name) else {
      throw Failure(
        .other, "the program prefs-\(name), which reads \(format.rawValue), is missing. Install prefs again.")
    }
    try program.check()
    return program
  }
}
