import ArgumentParser
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

extension ProgramBeside {
  /// The program's completion script; nil if it has none.
  func completionScript(for shell: CompletionShell) -> CompletionScript? {
    guard let (output, status) = try? run([PrefsTool.scriptRequest, shell.rawValue], input: ""), status == 0 else {
      return nil
    }
    return CompletionScript(String(decoding: output, as: UTF8.self), for: shell)
  }

  // MARK: - Listing

  /// Programs that only `prefs` itself uses.
  private static let internalNames: Set<String> = [FormatsProgram.name]

  /// The names of the programs that users may start, sorted.
  static func names(besideTool tool: String? = OwnProgram.path) -> [String] {
    guard let tool, let files = try? FolderNames.read(folders(besideTool: tool)[0]) else { return [] }
    var names: [String] = []
    for file in files.map({ String(decoding: $0, as: UTF8.self) }) where file.hasPrefix("prefs-") {
      let name = String(file.dropFirst("prefs-".count))
      guard !internalNames.contains(name), !PrefsCommand.commandNames.contains(name),
        let program = ProgramBeside(named: name, besideTool: tool), access(program.path, X_OK) == 0,
        (try? program.check()) != nil
      else { continue }
      names.append(name)
    }
    return names.sorted()
  }
}
