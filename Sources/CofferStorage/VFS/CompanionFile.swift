import CSQLite

/// The log or the shared memory beside a store, which SQLite opens by name, or creates.
///
/// In a folder writable by others, another user could have created it first, and could then undo or change commits.
/// So it must belong to the store's owner or to root, and may not be writable by more users than the store itself.
/// For a store shared by a group, it must belong to that group, and may belong to any of its members. SQLite would
/// give it the creating user's primary group, so it is created before SQLite opens it.
///
/// SQLite's descriptor is not accessible, and closing one of our own would drop SQLite's locks. So the name is
/// checked before SQLite opens it, and again afterwards. If the right file already has the name, other users cannot
/// swap it: in a sticky folder only its owner can, and in a folder where others may rename files, they could replace
/// the store as well. If the file did not exist, SQLite created it, or opened one that was created just before and
/// may be gone again: it is then opened once more, now that the name is taken. In a folder that only the owner may
/// write, it is the right file at once.
struct CompanionFile {
  let path: String
  let store: Store

  /// How often a file is opened that has another inode afterwards than before: a restore, or the last program that closes the
  /// store, removes it, and the next one makes another.
  private static let openingLimit = 100

  /// Runs `open`; if the file was exchanged meanwhile, or was missing and others could have created it, runs `close` and `open`
  /// again.
  ///
  /// - Parameter opened: Set to the file's identity; to nil if it was not created.
  /// - Returns: The code of `open`; `SQLITE_CANTOPEN` for a file that is not the owner's, with the failure in
  ///   `context`.
  func open(
    _ context: ConnectionContext, as opened: inout FileIdentity?, _ open: () -> Int32, close: () -> Void
  ) -> Int32 {
    context.acting { openAsOwner(context, as: &opened, open, close: close) }
  }

  private func openAsOwner(
    _ context: ConnectionContext, as opened: inout FileIdentity?, _ open: () -> Int32, close: () -> Void
  ) -> Int32 {
    do throws(StorageError) {
      var before = try identity()
      for _ in 0..<Self.openingLimit {
        if before == nil, store.owner.isShared {
          try make()
          before = try identity()
        }
        let code = open()
        guard code == SQLITE_OK else { return code }
        do throws(StorageError) { opened = try identity() } catch {
          close()
          throw error
        }
        // Not created: shared memory that is not needed for writing yet.
        if before == opened || before == nil && !othersMayMakeFiles { return code }
        close()
        before = opened
      }
      throw .permissionDenied(path: path, reason: "it was replaced by another file, again and again")
    } catch {
      context.fail(error)
      return SQLITE_CANTOPEN
    }
  }

  /// Creates the file for the group.
  ///
  /// It cannot be removed meanwhile: this connection holds a reader's lock on the store.
  private func make() throws(StorageError) {
    do {
      try NewFile(besides: path, owner: store.owner).publish(isDurable: false)
    } catch StorageError.exists {
      // Another member was faster.
    } catch {
      throw error as? StorageError ?? .unsupported(reason: "\(error)")
    }
  }

  /// Linux reflects a folder's access control list in its mode; other systems do not.
  private var othersMayMakeFiles: Bool {
    #if os(Linux)
      !FilePermissions.problems(ofFolderAbove: store.path, of: store.owner).isEmpty
    #else
      true
    #endif
  }

  /// The file's identity; nil if it does not exist.
  ///
  /// - Throws: `permissionDenied` for a file that is not the owner's, and for what is not a file: a pipe would block.
  func identity() throws(StorageError) -> FileIdentity? {
    var (status, database) = (stat(), stat())
    guard lstat(path, &status) == 0 else {
      guard errno == ENOENT else { throw StorageError(errno: errno, path: path) }
      return nil
    }
    guard lstat(store.path, &database) == 0 else { throw StorageError(errno: errno, path: store.path) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw .permissionDenied(path: path, reason: "it is not a regular file; remove it")
    }
    let isMembers =
      store.owner.isShared && status.st_gid == store.owner.group && FileOwner(status).isShared && !othersMayMakeFiles
    guard status.st_uid == database.st_uid || status.st_uid == 0 || isMembers else {
      throw .permissionDenied(
        path: path,
        reason:
          "it belongs to another user (\(SystemName.user(status.st_uid))) than the store "
          + "(\(SystemName.user(database.st_uid))), who could undo commits; remove it")
    }
    guard status.st_mode & ~database.st_mode & 0o022 == 0 else {
      throw .permissionDenied(
        path: path,
        reason: "others can write to it (mode \(String(status.st_mode & 0o777, radix: 8))); change that to 600")
    }
    return FileIdentity(status)
  }
}
