import CSQLite

/// The log or the shared memory beside a store, which SQLite opens by its name, or makes.
///
/// In a folder that others may write, another user could have made it before, and would then take back or change what is
/// committed. It has to belong to the store's owner or to root, and may not be written by more users than the store itself.
/// Where a group shares the store, it belongs to that group and to any of its members: SQLite would give it to the group that
/// whoever comes first is in, so it is made before SQLite opens it.
///
/// SQLite's descriptor is not to be had, and one of our own would drop SQLite's locks when it is closed. So the name is
/// looked at before SQLite opens it, and again afterwards. Where the right file has the name already, nobody else can give
/// it to another one: in a sticky folder only its owner can, and where the folder lets others rename what is not theirs,
/// the store is theirs to replace as well. Where there was none, SQLite made one, or met one that was made just before and
/// may be gone again: it is opened once more, now that the name is taken. In a folder of the owner's that nobody else may
/// write it is the right one at once.
struct CompanionFile {
  let path: String
  let store: Store

  /// Runs `open`, twice where the file was missing and others might have made it, with `close` in between.
  ///
  /// - Returns: The code of `open`; `SQLITE_CANTOPEN` for a file that is not the owner's, with the failure in `context`.
  func open(_ context: ConnectionContext, _ open: () -> Int32, close: () -> Void) -> Int32 {
    context.acting { openAsOwner(context, open, close: close) }
  }

  private func openAsOwner(_ context: ConnectionContext, _ open: () -> Int32, close: () -> Void) -> Int32 {
    do throws(StorageError) {
      var before = try inode()
      if before == nil, store.owner.isShared {
        try make()
        before = try inode()
      }
      let code = open()
      guard code == SQLITE_OK else { return code }
      let after: UInt64?
      do throws(StorageError) { after = try inode() } catch {
        close()
        throw error
      }
      // Not made: shared memory that nobody wants to write yet.
      if before == after || before == nil && !othersMayMakeFiles { return code }
      close()
      guard before == nil else {
        throw .permissionDenied(path: path, reason: "another file was put in its place")
      }
      let again = open()
      guard again == SQLITE_OK else { return again }
      guard try inode() == after else {
        close()
        throw .permissionDenied(path: path, reason: "another file was put in its place")
      }
      return again
    } catch {
      context.fail(error)
      return SQLITE_CANTOPEN
    }
  }

  /// Makes the file for the group.
  ///
  /// Nobody removes it meanwhile: this connection has the store locked, as one that reads.
  private func make() throws(StorageError) {
    do {
      try NewFile(besides: path, owner: store.owner).publish(isDurable: false)
    } catch StorageError.exists {
      // Another member was faster.
    } catch {
      throw error as? StorageError ?? .unsupported(reason: "\(error)")
    }
  }

  /// Linux shows in a folder's mode what its access control list allows; other systems do not.
  private var othersMayMakeFiles: Bool {
    #if os(Linux)
      !FilePermissions.problems(ofFolderAbove: store.path, of: store.owner).isEmpty
    #else
      true
    #endif
  }

  /// The number of the file; nil when there is none.
  private func inode() throws(StorageError) -> UInt64? {
    var (status, database) = (stat(), stat())
    guard lstat(path, &status) == 0 else {
      guard errno == ENOENT else { throw StorageError(errno: errno, path: path) }
      return nil
    }
    guard lstat(store.path, &database) == 0 else { throw StorageError(errno: errno, path: store.path) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw .permissionDenied(path: path, reason: "it is not a regular file, as SQLite makes it; remove it")
    }
    let isMembers =
      store.owner.isShared && status.st_gid == store.owner.group && FileOwner(status).isShared && !othersMayMakeFiles
    guard status.st_uid == database.st_uid || status.st_uid == 0 || isMembers else {
      throw .permissionDenied(
        path: path,
        reason:
          "it belongs to another user (\(status.st_uid)) than the store (\(database.st_uid)), who could take commits "
          + "back; remove it")
    }
    guard status.st_mode & ~database.st_mode & 0o022 == 0 else {
      throw .permissionDenied(
        path: path, reason: "others may write it (mode \(String(status.st_mode & 0o777, radix: 8))); make that 600")
    }
    return UInt64(status.st_ino)
  }
}
