import CSQLite
import CofferStorage
import Synchronization

/// The default VFS of a program that knows nothing of stores: each of its databases is one, and all have the same key.
///
/// An empty file becomes a store when it is opened; a plain SQLite database is none, and not opened. What would hold
/// plaintext beside a store, rollback journals and temporary files, is kept in memory.
enum DefaultVFS {
  private static let system = find(nil)
  private static let memory = find("coffer-memory")
  private static let key = KeySource.keyFile(environment("COFFER_PRELOAD_KEY"))
  private static let report = environment("COFFER_PRELOAD_REPORT")
  private static let making = Mutex(())
  private static let madeCount = Atomic<Int>(0)
  private static let openedCount = Atomic<Int>(0)
  private static let temporaryCount = Atomic<Int>(0)

  static func register() {
    // Registers the VFS in memory.
    _ = HeapStore()
    _ = (EncryptingVFS.standard, system, memory, key, report)
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    // Paths, time and randomness are the system's.
    vfs.initialize(to: system.pointer.pointee)
    vfs.pointee.iVersion = 2
    vfs.pointee.szOsFile = Int32(OpenFile.byteCount)
    vfs.pointee.pNext = nil
    vfs.pointee.zName = UnsafePointer(strdup("coffer-default"))
    vfs.pointee.xOpen = { _, name, file, flags, outFlags in DefaultVFS.open(name, file!, flags, outFlags) }
    vfs.pointee.xDelete = { _, name, syncDirectory in
      let vfs = DefaultVFS.keeper(ofFileCalled: name!).pointer
      return vfs.pointee.xDelete(vfs, name, syncDirectory)
    }
    vfs.pointee.xAccess = { _, name, flags, result in
      let vfs = DefaultVFS.keeper(ofFileCalled: name!).pointer
      return vfs.pointee.xAccess(vfs, name, flags, result)
    }
    guard sqlite3_vfs_register(vfs, 1) == SQLITE_OK else { stop("SQLite refused the VFS") }
    atexit { DefaultVFS.writeReport() }
  }

  /// Where a file is; in memory are rollback journals, and the super-journals of transactions with several databases:
  /// https://www.sqlite.org/tempfiles.html.
  private static func keeper(ofFileCalled name: UnsafePointer<CChar>) -> VFSPointer {
    let name = String(cString: name)
    return name.hasSuffix("-journal") || name.dropLast(9).hasSuffix("-mj") ? memory : system
  }

  // MARK: Opening

  private static func open(
    _ name: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    file.pointee.pMethods = nil
    if let name, flags & SQLITE_OPEN_MAIN_DB != 0 {
      do {
        let code = try makeStore(name, flags)
        return code == SQLITE_OK ? try openStore(name, file, flags, outFlags) : code
      } catch StorageError.notAStore {
        return SQLITE_NOTADB
      } catch {
        coffer_log(SQLITE_CANTOPEN, "coffer: \(error)")
        return SQLITE_CANTOPEN
      }
    }
    if let name, flags & SQLITE_OPEN_WAL != 0 {
      return EncryptingVFS.standard.openLog(name, file, flags, outFlags)
    }
    return openInMemory(name, file, flags, outFlags)
  }

  private static func openStore(
    _ name: UnsafePointer<CChar>, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) throws -> Int32 {
    let store = try Store.open(
      at: String(cString: name), key: key, isReadOnly: flags & SQLITE_OPEN_READONLY != 0)
    openedCount.add(1, ordering: .relaxed)
    // Several connections may open a database before one of them writes the first page.
    return try EncryptingVFS.standard.openDatabase(of: store, isCreating: true, name, file, flags, outFlags)
  }

  /// Writes the envelope of an empty file, or of one created here.
  private static func makeStore(_ name: UnsafePointer<CChar>, _ flags: Int32) throws -> Int32 {
    guard flags & SQLITE_OPEN_READWRITE != 0 else { return SQLITE_OK }
    return try making.withLock { _ in
      var opened: RealFile?
      let code = RealFile.open(name, EncryptingVFS.standard.below, flags, nil) { opened = $0 }
      guard let opened else { return code }
      defer { _ = opened.close() }
      var byteCount: Int64 = 0
      let sizeCode = opened.byteCount(&byteCount)
      guard sizeCode == SQLITE_OK, byteCount == 0 else { return sizeCode }
      madeCount.add(1, ordering: .relaxed)
      return try NewEnvelope(key: key).bytes.withUnsafeBytes { opened.write($0.baseAddress!, $0.count, at: 0) }
    }
  }

  private static func openInMemory(
    _ name: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    let vfs = memory.pointer
    if let name { return vfs.pointee.xOpen(vfs, name, file, SQLITE_OPEN_MAIN_JOURNAL, outFlags) }
    let number = temporaryCount.add(1, ordering: .relaxed).newValue
    let temporaryName = "/temporary-\(number)"
    let code = vfs.pointee.xOpen(vfs, temporaryName, file, SQLITE_OPEN_MAIN_JOURNAL, outFlags)
    // It goes when it is closed.
    _ = vfs.pointee.xDelete(vfs, temporaryName, 0)
    outFlags?.pointee = flags
    return code
  }

  // MARK: The environment

  private static func writeReport() {
    let text = "\(openedCount.load(ordering: .relaxed)) opened, \(madeCount.load(ordering: .relaxed)) made\n"
    guard let file = fopen(report, "w") else { return }
    fputs(text, file)
    fclose(file)
  }

  private static func find(_ name: String?) -> VFSPointer {
    guard let vfs = sqlite3_vfs_find(name) else { stop("SQLite has no VFS called \(name ?? "default")") }
    return VFSPointer(pointer: vfs)
  }

  private static func environment(_ name: String) -> String {
    guard let value = getenv(name) else { stop("\(name) is not set") }
    return String(cString: value)
  }

  private static func stop(_ reason: String) -> Never {
    let text = "CofferPreload: \(reason)\n"
    _ = write(STDERR_FILENO, text, text.utf8.count)
    exit(2)
  }
}
