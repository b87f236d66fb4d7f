import CSQLite
import CofferCrypto
import Synchronization

/// The SQLite VFS between SQLite and the system's own: every page and log frame is sealed on its way down and opened on
/// its way up, and nothing but a database and its log can be opened through it.
///
/// It is a shim in the sense of https://www.sqlite.org/vfs.html (2.3): locks, shared memory, sizes and syncs go to the
/// VFS below, shifted where the envelope stands before the pages.
///
/// A connection names its keys by a token in its URI (`file:…?coffer=17`), an entry in a table of this process.
package final class EncryptingVFS: Sendable {
  /// On the system's default VFS.
  package static let standard = EncryptingVFS(name: "coffer", below: nil)

  package let name: String
  /// Whether a URI may name a key file, for reading, which is for other programs that load the VFS.
  private let allowsKeyFiles = Atomic<Bool>(false)
  /// The VFS below; registered with SQLite, and therefore never freed.
  package let below: VFSPointer
  /// Observes calls made for new stores outside of the VFS below; for tests.
  let fileCallObserver: FileCall.Observer?

  /// Registers a VFS called `name` above the one called `below`, by default the system's.
  ///
  /// It stays registered for the life of the process.
  package init(name: String, below belowName: String?, fileCallObserver: FileCall.Observer? = nil) {
    guard sqlite3_initialize() == SQLITE_OK, let below = sqlite3_vfs_find(belowName) else {
      preconditionFailure("SQLite has no VFS called \(belowName ?? "default")")
    }
    self.name = name
    self.fileCallObserver = fileCallObserver
    self.below = VFSPointer(pointer: below)
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    vfs.initialize(to: below.pointee)
    vfs.pointee.iVersion = 2
    vfs.pointee.szOsFile = Int32(OpenFile.byteCount)
    vfs.pointee.pNext = nil
    vfs.pointee.zName = UnsafePointer(strdup(name))
    vfs.pointee.pAppData = Unmanaged.passRetained(self).toOpaque()
    vfs.pointee.xOpen = { vfs, name, file, flags, outFlags in
      EncryptingVFS.of(vfs!).open(name, file!, flags, outFlags)
    }
    vfs.pointee.xDelete = { vfs, name, syncDirectory in
      let below = EncryptingVFS.of(vfs!).below.pointer
      // The last connection to a replaced store would delete the log of the store that has its name now.
      let database = OpenFile.database(sqlite3_database_file_object(name))
      if database?.context.store.isReplaced == true { return SQLITE_OK }
      let path = String(cString: name!)
      let code = FileOwner.acting(besides: path) {
        EncryptingVFS.emptyIfLinked(path)
        return below.pointee.xDelete(below, name, syncDirectory)
      }
      if code == SQLITE_OK, path.hasSuffix("-wal") { database?.clearLogNotice() }
      return code
    }
    vfs.pointee.xAccess = { vfs, name, flags, result in EncryptingVFS.of(vfs!).access(name!, flags, result!) }
    vfs.pointee.xFullPathname = { vfs, name, count, output in
      let below = EncryptingVFS.of(vfs!).below.pointer
      return below.pointee.xFullPathname(below, name, count, output)
    }
    // Extensions are never loaded through a store's connection.
    vfs.pointee.xDlOpen = { _, _ in nil }
    vfs.pointee.xDlError = { _, _, _ in }
    vfs.pointee.xDlSym = { _, _, _ in nil }
    vfs.pointee.xDlClose = { _, _ in }
    vfs.pointee.xRandomness = { vfs, count, output in
      let below = EncryptingVFS.of(vfs!).below.pointer
      return below.pointee.xRandomness(below, count, output)
    }
    vfs.pointee.xSleep = { vfs, microseconds in
      let below = EncryptingVFS.of(vfs!).below.pointer
      return below.pointee.xSleep(below, microseconds)
    }
    vfs.pointee.xCurrentTime = { vfs, output in
      let below = EncryptingVFS.of(vfs!).below.pointer
      return below.pointee.xCurrentTime(below, output)
    }
    vfs.pointee.xGetLastError = { vfs, count, output in
      let below = EncryptingVFS.of(vfs!).below.pointer
      return below.pointee.xGetLastError(below, count, output)
    }
    vfs.pointee.xCurrentTimeInt64 = { vfs, output in
      let below = EncryptingVFS.of(vfs!).below.pointer
      return below.pointee.xCurrentTimeInt64(below, output)
    }
    guard sqlite3_vfs_register(vfs, 0) == SQLITE_OK else { preconditionFailure("SQLite refused the VFS \(name)") }
  }

  /// Empties a file that has other names: as the log of one of them, it would be replayed over newer pages.
  private static func emptyIfLinked(_ path: String) {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink > 1 else { return }
    LogFile.empty(path)
  }

  /// Allows URIs with `?keyfile=PATH`; stores opened that way are read-only.
  package func allowKeyFilesInURIs() {
    allowsKeyFiles.store(true, ordering: .relaxed)
  }

  private static func of(_ vfs: UnsafeMutablePointer<sqlite3_vfs>) -> EncryptingVFS {
    Unmanaged<EncryptingVFS>.fromOpaque(vfs.pointee.pAppData).takeUnretainedValue()
  }

  // MARK: Methods

  private func open(
    _ name: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    // "the xOpen method must set the sqlite3_file.pMethods to NULL [when it] fails": https://www.sqlite.org/c3ref/vfs.html
    file.pointee.pMethods = nil
    guard let name else { return SQLITE_CANTOPEN }
    if flags & SQLITE_OPEN_MAIN_DB != 0 {
      if let listed = ConnectionContext.find(sqlite3_uri_parameter(name, "coffer")) {
        return openDatabase(listed, name, file, flags, outFlags)
      }
      guard let opened = contextFromURI(name) else { return SQLITE_CANTOPEN }
      // A write from outside would bypass the change log.
      let readOnlyFlags = flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) | SQLITE_OPEN_READONLY
      return openDatabase(opened, name, file, readOnlyFlags, outFlags)
    }
    if flags & SQLITE_OPEN_WAL != 0 { return openLog(name, file, flags, outFlags) }
    // Rollback journals, statement journals, temporary and attached databases would hold plaintext.
    return SQLITE_CANTOPEN
  }

  /// Opens a store's file for a VFS above this one that finds the key itself; the parameters are those of `xOpen`.
  package func openDatabase(
    of store: Store, isCreating: Bool, _ name: UnsafePointer<CChar>, _ file: UnsafeMutablePointer<sqlite3_file>,
    _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?
  ) throws -> Int32 {
    try openDatabase(ConnectionContext(store: store, isCreating: isCreating), name, file, flags, outFlags)
  }

  private func openDatabase(
    _ context: ConnectionContext, _ name: UnsafePointer<CChar>, _ file: UnsafeMutablePointer<sqlite3_file>,
    _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    var readOnlyAccess: ReadOnlyAccess?
    if context.store.isReadOnly {
      do throws(StorageError) {
        readOnlyAccess = try ReadOnlyAccess(path: context.store.path, hasRoom: context.hasRoom)
      } catch {
        context.fail(error)
        return SQLITE_CANTOPEN
      }
    }
    var opened: RealFile?
    let code = context.openingByName {
      context.acting { RealFile.open(name, below, flags, outFlags) { opened = $0 } }
    } close: {
      _ = opened?.close()
    }
    guard code == SQLITE_OK, let opened else { return code }
    OpenFile.install(
      DatabaseFile(real: opened, context: context, readOnlyAccess: readOnlyAccess), in: file,
      methods: DatabaseFile.methods)
    return code
  }

  /// Opens the log of a database that this VFS opened; the parameters are those of `xOpen`.
  package func openLog(
    _ name: UnsafePointer<CChar>, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    guard let database = OpenFile.database(sqlite3_database_file_object(name)) else { return SQLITE_CANTOPEN }
    let context = database.context
    var opened: RealFile?
    var identity: FileIdentity?
    let companion = CompanionFile(path: String(cString: name), store: context.store)
    let closeOpened = {
      _ = opened?.close()
      opened = nil
    }
    let code = context.openingByName {
      companion.open(context, as: &identity) {
        errno = 0
        let code = RealFile.open(name, below, flags, outFlags) { opened = $0 }
        // By the time SQLite asks for it, other calls have overwritten errno.
        if code != SQLITE_OK, errno == ENOSPC || errno == EDQUOT { context.fail(.diskFull(path: context.store.path)) }
        return code
      } close: {
        closeOpened()
      }
    } close: {
      closeOpened()
    }
    guard code == SQLITE_OK, let opened else { return code }
    OpenFile.install(LogFile(real: opened, identity: identity, database: database), in: file, methods: LogFile.methods)
    return SQLITE_OK
  }

  /// Opens the store for a program that knows only SQLite.
  ///
  /// Failures are reported in SQLite's error log.
  private func contextFromURI(_ name: UnsafePointer<CChar>) -> ConnectionContext? {
    guard allowsKeyFiles.load(ordering: .relaxed), let keyFile = sqlite3_uri_parameter(name, "keyfile") else {
      return nil
    }
    do {
      let store = try Store.open(
        at: String(cString: name), key: .keyFile(String(cString: keyFile)), isReadOnly: true, vfs: self)
      return try ConnectionContext(store: store, isCreating: false)
    } catch {
      coffer_log(SQLITE_CANTOPEN, "coffer: \(error)")
      return nil
    }
  }

  private func access(
    _ name: UnsafePointer<CChar>, _ flags: Int32, _ result: UnsafeMutablePointer<Int32>
  ) -> Int32 {
    // A store never has a rollback journal; an existing one was planted, and must not be rolled back.
    if FilePath.lastComponent(of: String(cString: name)).hasSuffix("-journal") {
      result.pointee = 0
      return SQLITE_OK
    }
    return below.pointer.pointee.xAccess(below.pointer, name, flags, result)
  }
}

// MARK: - Files

/// The `sqlite3_file` that SQLite sees: its methods, then a reference to the object behind it.
package enum OpenFile {
  private static let stateOffset = MemoryLayout<sqlite3_file>.stride
  package static let byteCount = stateOffset + MemoryLayout<UnsafeRawPointer>.stride

  package static func install(
    _ state: AnyObject, in file: UnsafeMutablePointer<sqlite3_file>, methods: UnsafePointer<sqlite3_io_methods>
  ) {
    UnsafeMutableRawPointer(file).storeBytes(
      of: Unmanaged.passRetained(state).toOpaque(), toByteOffset: stateOffset, as: UnsafeMutableRawPointer.self)
    file.pointee.pMethods = methods
  }

  @inline(__always)
  package static func state<State: AnyObject>(_ file: UnsafeMutablePointer<sqlite3_file>) -> Unmanaged<State> {
    let pointer = UnsafeRawPointer(file).load(fromByteOffset: stateOffset, as: UnsafeMutableRawPointer.self)
    return Unmanaged<State>.fromOpaque(pointer)
  }

  /// Lends the object behind a file to `body` without reference counting: the open file keeps it alive.
  @inline(__always)
  package static func withState<State: AnyObject, Result>(
    _ file: UnsafeMutablePointer<sqlite3_file>, _ body: (State) -> Result
  ) -> Result {
    state(file)._withUnsafeGuaranteedRef(body)
  }

  /// Releases the object behind a closed file.
  package static func releaseState<State: AnyObject>(
    _ file: UnsafeMutablePointer<sqlite3_file>, of type: State.Type
  ) {
    (state(file) as Unmanaged<State>).release()
  }

  /// The database behind a file, if it is one of this module's.
  static func database(_ file: UnsafeMutablePointer<sqlite3_file>?) -> DatabaseFile? {
    guard let file, file.pointee.pMethods == DatabaseFile.methods else { return nil }
    return state(file).takeUnretainedValue()
  }

  /// The handle of an in-memory file, if it is one.
  static func heap(_ file: UnsafeMutablePointer<sqlite3_file>?) -> HeapHandle? {
    guard let file, file.pointee.pMethods == HeapHandle.methods else { return nil }
    return state(file).takeUnretainedValue()
  }
}
