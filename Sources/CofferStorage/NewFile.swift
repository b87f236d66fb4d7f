import CofferCrypto

/// A system call made while creating or replacing a store: outside SQLite, and so not seen by any VFS.
package enum FileCall: Equatable, Sendable {
  case create(path: String)
  case write(path: String, offset: Int, bytes: [UInt8])
  case sync(path: String)
  case link(from: String, to: String)
  case rename(from: String, to: String)
  case syncFolder(path: String)
  case remove(path: String)

  /// Called before each call; a result other than nil makes the call fail with that error.
  package typealias Observer = @Sendable (FileCall) -> Int32?
}

extension StorageError {
  /// The same error of the system about the file that was to be made, if it is about a temporary one.
  package var aboutFinalFile: StorageError {
    switch self {
    case .diskFull(let path): .diskFull(path: NewFile.shownPath(path))
    case .permissionDenied(let path, let reason): .permissionDenied(path: NewFile.shownPath(path), reason: reason)
    case .inputOutput(let path, let reason): .inputOutput(path: NewFile.shownPath(path), reason: reason)
    default: self
    }
  }
}

/// A file that gets its name only once it is whole: written under a temporary name beside it, synced, and linked into
/// place without replacing an existing file.
///
/// `link(2)` fails when the name exists, on every file system that supports it; `rename(2)` would replace.
final class NewFile {
  let path: String
  let temporaryPath: String
  private let owner: FileOwner
  private let observer: FileCall.Observer?
  private var descriptor: Int32 = -1
  private var byteCount = 0

  /// Creates the temporary file and any missing folders above it, owned by `owner`.
  ///
  /// - Parameter mode: By default 0600, and 0660 for a group that shares a store.
  init(besides path: String, owner: FileOwner, mode: mode_t? = nil, observer: FileCall.Observer? = nil) throws {
    let folder = try owner.acting { try FilePath.makeFolder(above: path, owner) }
    self.path = path
    self.owner = owner
    self.observer = observer
    temporaryPath = try Self.temporaryPath(for: FilePath.lastComponent(of: path), in: folder)
    try announce(.create(path: temporaryPath))
    try owner.acting {
      descriptor = open(temporaryPath, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else {
        // The folder is there: a file system without new files, such as /proc, says so.
        throw errno == ENOENT
          ? StorageError.inputOutput(path: path, reason: "no file can be created there")
          : StorageError(errno: errno, path: path)
      }
      if owner.isShared { try owner.share(descriptor, path: path) }
      // The umask may have removed even the owner's rights.
      guard fchmod(descriptor, mode ?? owner.mode) == 0 else { throw StorageError(errno: errno, path: path) }
    }
  }

  /// A temporary path that no other file has, beside the file `name`.
  static func temporaryPath(for name: String, in folder: String) throws -> String {
    let tag = try RandomSource.bytes(count: 8).map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
    return "\(folder)/.\(name).\(tag).tmp"
  }

  /// The name of the file that a killed program was making under the temporary name `name`; nil for any other name.
  static func finalName(ofTemporary name: [UInt8]) -> [UInt8]? {
    let parts = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count >= 4, parts[0].isEmpty, parts[parts.count - 1].elementsEqual("tmp".utf8) else { return nil }
    let tag = parts[parts.count - 2]
    let isTag = tag.count == 16 && tag.allSatisfy { "0123456789abcdef".utf8.contains($0) }
    return isTag ? Array(name[1..<(tag.startIndex - 1)]) : nil
  }

  /// The same as paths.
  static func finalPath(ofTemporary path: String) -> String? {
    let folder = FilePath.folder(above: path)
    return finalName(ofTemporary: Array(FilePath.lastComponent(of: path).utf8)).map {
      (folder == "/" ? folder : folder + "/") + String(decoding: $0, as: UTF8.self)
    }
  }

  /// The path as errors show it: where it is a temporary one, with its log and index, that of the file that was to be made.
  static func shownPath(_ path: String) -> String {
    let base = ["-wal", "-shm"].first { path.hasSuffix($0) }.map { String(path.dropLast($0.count)) } ?? path
    return finalPath(ofTemporary: base) ?? path
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws {
    var written = 0
    while written < bytes.count {
      try announce(.write(path: temporaryPath, offset: byteCount + written, bytes: Array(bytes[written...])))
      let count = Platform.write(descriptor, bytes.baseAddress! + written, bytes.count - written)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw StorageError(errno: errno, path: path) }
      written += count
    }
    byteCount += written
  }

  /// Leaves a hole before the next write, or at the end.
  func skip(_ count: Int) throws {
    guard count > 0 else { return }
    guard lseek(descriptor, off_t(count), SEEK_CUR) >= 0, ftruncate(descriptor, off_t(byteCount + count)) == 0 else {
      throw StorageError(errno: errno, path: path)
    }
    byteCount += count
  }

  /// Gives the file the times of the original it was copied from.
  func takeTime(of original: stat) throws {
    var times = [original.modificationTime, original.modificationTime]
    guard futimens(descriptor, &times) == 0 else { throw StorageError(errno: errno, path: path) }
  }

  /// Links the contents to their final name, and makes both durable.
  ///
  /// The descriptor is closed before the name exists: closing it later would drop the POSIX locks of any code in this
  /// process that opened the file by its name (https://www.sqlite.org/howtocorrupt.html, 2.2).
  ///
  /// - Parameters:
  ///   - isDurable: Whether the contents must survive a power cut.
  ///   - naming: Runs its argument, which links the file to its name.
  /// - Throws: `StorageError.exists` when the name is taken; the temporary file is removed either way.
  func publish(
    isDurable: Bool = true, naming: (_ name: () throws -> Void) throws -> Void = { name in try name() }
  ) throws {
    try finish(isDurable: isDurable)
    try naming {
      try announce(.link(from: temporaryPath, to: path))
      try owner.acting {
        guard link(temporaryPath, path) == 0 else {
          throw errno == EEXIST ? StorageError.exists(path: path) : StorageError(errno: errno, path: path)
        }
      }
    }
    if isDurable { try syncFolder() }
  }

  /// Makes the contents durable under the temporary name, and closes the file.
  func finish(isDurable: Bool = true) throws {
    guard descriptor >= 0 else { return }
    if isDurable {
      try announce(.sync(path: temporaryPath))
      guard fsync(descriptor) == 0 else { throw StorageError(errno: errno, path: path) }
    }
    close(descriptor)
    descriptor = -1
  }

  /// Renames the finished file over an existing one.
  ///
  /// The name is durable only after `syncFolder`.
  func replace() throws {
    try announce(.rename(from: temporaryPath, to: path))
    try owner.acting {
      guard rename(temporaryPath, path) == 0 else { throw StorageError(errno: errno, path: path) }
    }
  }

  func syncFolder() throws {
    try announce(.syncFolder(path: FilePath.folder(above: path)))
    try owner.acting { try FilePath.syncFolder(above: path) }
  }

  /// Reports the next system call to the observer.
  ///
  /// - Throws: The error that the observer injects.
  private func announce(_ call: @autoclosure () -> FileCall) throws {
    guard let code = observer?(call()) else { return }
    throw StorageError(errno: code, path: path)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    removeTemporaryName()
  }

  func removeTemporaryName() {
    guard (try? announce(.remove(path: temporaryPath))) != nil else { return }
    _ = try? owner.acting { unlink(temporaryPath) }
  }
}
