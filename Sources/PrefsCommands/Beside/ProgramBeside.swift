import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A program `prefs-NAME` installed with the tool: `prefs NAME` starts it.
///
/// It is looked up in the tool's library folder, `libexec/coffer` beside a `bin`, else in the folder of `prefs`
/// itself, as in a build folder. It runs with the user's rights and may see secrets, so the working folder and `PATH`
/// are not searched, and a program or folder that others may write to is refused.
struct ProgramBeside {
  let name: String
  let path: String
  /// The folders that determine which file is at `path`.
  private let folders: [String]
  private let tool: String

  /// The program of that name; nil when there is none.
  init?(named name: String) {
    self.init(named: name, besideTool: OwnProgram.path)
  }

  /// - Parameter tool: The path of `prefs`, with links resolved.
  init?(named name: String, besideTool tool: String?) {
    guard Self.isName(name), let tool else { return nil }
    self.tool = tool
    self.name = name
    folders = Self.folders(besideTool: tool)
    path = "\(folders[0])/prefs-\(name)"
    guard FilePlace.isTaken(path) else { return nil }
  }

  /// Lower-case ASCII letters, digits, and single hyphens between them.
  private static func isName(_ name: String) -> Bool {
    !name.isEmpty
      && name.split(separator: "-", omittingEmptySubsequences: false).allSatisfy { part in
        !part.isEmpty && part.unicodeScalars.allSatisfy { "a"..."z" ~= $0 || "0"..."9" ~= $0 }
      }
  }

  static func folders(besideTool tool: String) -> [String] {
    let folder = FilePlace.folder(of: tool)
    guard folder == "/bin" || folder.hasSuffix("/bin") else { return [folder] }
    let libexec = folder.dropLast("/bin".count) + "/libexec"
    return [libexec + "/coffer", String(libexec)]
  }

  // MARK: - Running

  /// Replaces this process with the program.
  ///
  /// - Returns: The error, if that fails.
  func replaceProcess(_ arguments: [String]) throws -> Failure {
    try check()
    // It must not find them free: libdispatch opens its own before the program could reserve them.
    for descriptor in Int32(0)...2 { _ = fcntl(descriptor, F_SETFD, 0) }
    let environment = EnvironmentVariables(prefix: "").block(addingInherited: true)
    return ProgramStart(words: [path] + arguments, environment: environment).replaceProcess()
  }

  /// Runs the program to its end.
  ///
  /// Its standard error is discarded: it may repeat parts of the input.
  ///
  /// - Parameters:
  ///   - input: Its standard input.
  ///   - time: When to kill it; nil for never.
  /// - Returns: Its standard output, and its status as of waitpid(2).
  func run(
    _ arguments: [String], input: String, within time: Duration? = nil
  ) throws -> (output: [UInt8], status: Int32) {
    try check()
    let (source, output) = (try PipePair(), try PipePair())
    defer { output.closeReading() }
    let child: pid_t
    do {
      defer {
        source.closeReading()
        output.closeWriting()
      }
      child = try ChildProcess.start(path, ["prefs-\(name)"] + arguments) { actions, _ in
        posix_spawn_file_actions_adddup2(&actions, source.reading, 0)
        posix_spawn_file_actions_adddup2(&actions, output.writing, 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
      }
    } catch {
      source.closeWriting()
      throw error
    }
    // The program reads all input before it answers, or has exited.
    do {
      try SignalHandlers.ignoring([SIGPIPE]) {
        try FileDescriptor.writeAll(input.utf8, to: source.writing, named: path)
      }
    } catch is ClosedPipe {}
    source.closeWriting()
    let answer = Result { try FileDescriptor.readAll(output.reading, named: path, within: time) }
    if case .failure = answer { kill(child, SIGKILL) }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 {
      guard errno == EINTR else { throw Failure.system(path, errno: errno) }
    }
    return (try answer.get(), status)
  }

  /// Checks that only users who could replace `prefs` itself could have put the program there.
  ///
  /// - Throws: ``Failure`` with the status `refused`.
  func check() throws {
    let (own, ownFolder) = (try Self.status(tool), try Self.status(FilePlace.folder(of: tool)))
    for (place, kind) in [(path, S_IFREG)] + folders.map({ ($0, S_IFDIR) }) {
      let status = try Self.status(place)
      // A link's target may be anywhere.
      guard status.st_mode & S_IFMT == kind else {
        throw refusal("\(place) is not a \(kind == S_IFREG ? "file" : "folder")", "Install prefs again.")
      }
      guard [0, own.st_uid, geteuid()].contains(status.st_uid) else {
        throw refusal("\(place) belongs to another user", "Install prefs again.")
      }
      // A group that may replace `prefs` itself gains nothing here.
      let isTrusted = ownFolder.st_mode & 0o020 != 0 && ownFolder.st_gid == status.st_gid
      guard status.st_mode & (isTrusted ? 0o002 : 0o022) == 0 else {
        throw refusal("others can write to \(place)", "Run: chmod go-w \(ShellWord.quoted(place))")
      }
    }
  }

  private static func status(_ path: String) throws -> stat {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw Failure.system(path, errno: errno) }
    return status
  }

  private func refusal(_ reason: String, _ hint: String) -> Failure {
    Failure(.refused, "prefs-\(name) is not started: \(reason). \(hint)")
  }
}
