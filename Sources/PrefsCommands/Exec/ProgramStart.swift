#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A program that is to take the place of this one.
struct ProgramStart {
  /// Its name or path, and its arguments.
  let words: [String]
  /// Entries `NAME=value`.
  let environment: [[UInt8]]

  /// Executes the program; returns only what went wrong.
  ///
  /// A name without a slash is looked for in the `PATH` of this process, as the settings are for the program alone.
  func replaceProcess() -> Failure {
    CoreLimit.restore()
    let arguments = CStringList(words.map { Array($0.utf8) })
    let variables = CStringList(environment)
    let name = words.first ?? ""
    var code = ENOENT
    for path in Self.candidates(name) {
      execve(path, arguments.pointers, variables.pointers)
      // One that may not be executed does not hide another behind it (execvp(3)).
      if errno != ENOENT, errno != ENOTDIR { code = errno }
      if ![ENOENT, ENOTDIR, EACCES].contains(code) { break }
    }
    let reason = "\(name): \(Failure.systemMessage(code))."
    return Failure(code == ENOENT ? .commandNotFound : .notExecutable, reason)
  }

  private static func candidates(_ name: String) -> [String] {
    if name.utf8.contains(UInt8(ascii: "/")) { return [name] }
    let folders = (Environment.variable("PATH") ?? "/usr/bin:/bin").split(
      separator: ":", omittingEmptySubsequences: false)
    return folders.map { $0.isEmpty ? "./\(name)" : "\($0)/\(name)" }
  }
}

/// Strings as C wants them.
private final class CStringList {
  let pointers: [UnsafeMutablePointer<CChar>?]

  /// - Parameter strings: Without NULs.
  init(_ strings: [[UInt8]]) {
    pointers =
      strings.map { bytes in
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
        for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
        copy[bytes.count] = 0
        return copy
      } + [nil]
  }

  deinit {
    for pointer in pointers { pointer?.deallocate() }
  }
}
