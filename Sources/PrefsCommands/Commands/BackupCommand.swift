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
      Other programs may read and write meanwhile; the copy is a consistent snapshot. It is a store of its own, with new keys, \
      and opens with the key that has opened the store here, or with that of --new-key-file, and with nothing else: other key \
      slots are not copied, since that would need their secrets. So a recovery key opens no backup, unless it was made with it \
      (--recovery-key-fd), and the key file of one member of a group no backup of another. The vault is copied with its slots. \
      FILE must not exist yet, but its folder must. With -, the copy goes to standard output; it is made in TMPDIR, or else in \
      /tmp, first. What killed backups left in the folder of FILE, or there, is removed by the first one an hour after the last write to it.

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
    if FilePlace.isTaken(file) { throw CofferError.storeExists(path: file) }
    try StoreLocation.requireFolder(of: file)
    try copy(to: file)
    common.note("copied the store to \(file).")
  }

  private func copy(to path: String, check: () throws -> Void = {}) throws {
    if let newKeyFile { try StoreLocation.requireFolder(of: newKeyFile) }
    let session = try CommandSession(common)
    var used: KeySource?
    var note: String?
    let database = try session.openForReading { used = $0 }
    try session.using(database) { database in
      let newKey = try newKeyFile.map { try KeyLookup(options: common.ofSession, store: path).newKeyFile($0) }
      guard let key = newKey ?? used else { return }
      if newKey == nil { try refuseTPM(database, session) }
      try ProgressBar.during("copying", common) { progress in
        try database.backup(to: path, key: key) { share in
          try check()
          progress(share)
        }
      }
      note = try newKeyFile.map { "the copy opens with the key file \($0) only." } ?? self.note(on: database)
    }
    if let note { common.note(note) }
    let unfinished = Database.unfinishedCopies(besides: path)
    guard !unfinished.isEmpty else { return }
    common.note(
      "beside the copy is what other programs have not finished: " + unfinished.joined(separator: ", ")
        + ". What a killed program left is removed by the first backup after an hour; nothing else uses it.")
  }

  /// Refuses the TPM's key for a copy, which has no other: no other machine could open it.
  private func refuseTPM(_ database: Database, _ session: CommandSession) throws {
    let slot = try TPMFile(ofStoreAt: session.path).slot(in: database.slots())
    guard let slot, try slot.id == database.openedSlot() else { return }
    throw Failure(
      .refused,
      "the copy would open with this machine's TPM only, and be lost with it. Give it a key file with --new-key-file, or its "
        + "recovery key: \(CommandHint.text("--recovery-key-fd 3 backup FILE")). Nothing was written.")
  }

  /// Which slots do not open the copy; nil if the store has no other.
  private func note(on database: Database) throws -> String? {
    let (slots, opened) = try (database.slots(), database.openedSlot())
    let others = slots.filter { $0.id != opened }
    guard let slot = slots.first(where: { $0.id == opened }), !others.isEmpty else { return nil }
    return "the copy opens with \(SlotText.describe(slot)) only; not with \(SlotText.list(others)). For another "
      + "one, make a copy with that, or with --new-key-file."
  }

  // MARK: - Standard output

  private func stream() throws {
    if Terminal.isTerminal(1) {
      throw Failure(.usage, "the copy is binary, which a terminal cannot show. Name a file, or use a pipe.")
    }
    // A signal, or a reader that ends early, must not leave the copy here.
    try HeldSignals.during { signals in
      let folder = try temporaryFolder()
      let path = "\(folder)/copy.coffer"
      func removeCopy() {
        for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
        rmdir(folder)
      }
      defer { removeCopy() }
      try copy(to: path, check: signals.check)
      let copy = open(path, O_RDONLY | O_CLOEXEC)
      guard copy >= 0 else { throw Failure.system("the copy", errno: errno) }
      defer { close(copy) }
      // Nothing is left of it if this is killed while the reader takes its time.
      removeCopy()
      try send(copy, signals)
    }
    common.note("copied the store to standard output.")
  }

  private func temporaryFolder() throws -> String {
    let parent = Environment.variable("TMPDIR") ?? "/tmp"
    let prefix = "prefs-backup-"
    _ = try? FileHand(parent).acting { AbandonedFiles.removeFolders(named: prefix, in: parent, of: geteuid()) }
    var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
    // mkdtemp(3) makes it with mode 0700.
    guard mkdtemp(&template) != nil else { throw Failure.system(parent, errno: errno) }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private func send(_ descriptor: Int32, _ signals: HeldSignals) throws {
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
