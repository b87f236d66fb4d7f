import ArgumentParser
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The command `prefs backup`.
struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copy the store, as it is now, to a new file.",
    discussion: """
      Other programs may read and write meanwhile; the copy is a consistent snapshot. It opens with the same key as the \
      store, unless --new-key-file names another one; other key slots are not copied. FILE must not exist yet, but its folder \
      must. With -, the copy goes to standard output; it is made in TMPDIR, or else in /tmp, first.

      Examples:
        prefs backup settings-2026-01-31.coffer
        prefs backup /media/stick/settings.coffer --new-key-file /media/stick/key
        prefs backup - | ssh host 'cat > settings.coffer'
      """)

  @Argument(
    help: ArgumentHelp("Where to write the copy; - for standard output.", valueName: "file"), completion: .file())
  var file: String

  @Option(
    help: ArgumentHelp("Let this key file open the copy; it is created if missing.", valueName: "path"),
    completion: .file())
  var newKeyFile: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if file.isEmpty { throw ValidationError("The copy needs a path.") }
    if newKeyFile == "" { throw ValidationError("--new-key-file needs a path.") }
  }

  mutating func run() throws {
    if file == "-" { return try stream() }
    // Before any prompt or file is made.
    if StoreLocation.isTaken(file) { throw CofferError.storeExists(path: file) }
    try StoreLocation.requireFolder(of: file)
    try copy(to: file)
    common.note("copied the store to \(file).")
  }

  private func copy(to path: String, check: () throws -> Void = {}) throws {
    if let newKeyFile { try StoreLocation.requireFolder(of: newKeyFile) }
    let session = try CommandSession(common)
    var used: KeySource?
    let database = try session.openForReading { used = $0 }
    try session.using(database) { database in
      let newKey = try newKeyFile.map { try KeyLookup(options: common.ofSession, store: path).newKeyFile($0) }
      guard let key = newKey ?? used else { return }
      try ProgressBar.during("copying", common) { progress in
        try database.backup(to: path, key: key) { share in
          try check()
          progress(share)
        }
      }
    }
  }

  // MARK: - Standard output

  private func stream() throws {
    if Terminal.isTerminal(1) {
      throw Failure(.usage, "the copy is binary, which a terminal cannot show. Name a file, or use a pipe.")
    }
    try HeldSignals.during { signals in
      let folder = try temporaryFolder()
      let path = "\(folder)/copy.coffer"
      defer {
        for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
        rmdir(folder)
      }
      try copy(to: path, check: signals.check)
      try send(path, signals)
    }
    common.note("copied the store to standard output.")
  }

  private func temporaryFolder() throws -> String {
    let parent = Environment.variable("TMPDIR") ?? "/tmp"
    var template = Array("\(parent)/prefs-backup-XXXXXX".utf8CString)
    // mkdtemp(3) makes it with mode 0700.
    guard mkdtemp(&template) != nil else { throw Failure.system(parent, errno: errno) }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private func send(_ path: String, _ signals: HeldSignals) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure.system("the copy", errno: errno) }
    defer { close(descriptor) }
    var piece = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      try signals.check()
      let count = read(descriptor, &piece, piece.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Failure.system("the copy", errno: errno) }
      if count == 0 { return }
      try FileDescriptor.writeAll(piece[..<count], to: 1, named: "standard output")
    }
  }
}
