import CofferCrypto

/// A file that holds a random key: one line, `coffer-key-1:` and 64 hexadecimal digits.
///
/// A line of text survives copy and paste, mail and configuration management, where raw bytes often don't; 32 raw bytes
/// are read too.
public enum KeyFile {
  /// What each begins with, except those of raw bytes.
  static let prefix = Array("coffer-key-1:".utf8)
  private static let keyByteCount = 32
  /// Far more than any key file holds; keeps a huge file from being read into locked memory by mistake.
  private static let maximumByteCount = 1024

  /// Makes a key file, unless there is one; see `Coffer`'s `KeyFile.create(at:group:)`.
  ///
  /// - Returns: Whether this call made it.
  @discardableResult
  package static func make(at path: String, group: String? = nil) throws -> Bool {
    if isPresent(at: path) { return false }
    let key = try SecretBytes.random(count: keyByteCount)
    let text = SecretBytes(count: prefix.count + 2 * keyByteCount + 1) { buffer in
      buffer.copyBytes(from: prefix)
      key.withUnsafeBytes { bytes in
        for (index, byte) in bytes.enumerated() {
          buffer[prefix.count + 2 * index] = hexadecimalDigit(byte >> 4)
          buffer[prefix.count + 2 * index + 1] = hexadecimalDigit(byte & 0xf)
        }
      }
      buffer[buffer.count - 1] = UInt8(ascii: "\n")
    }
    let owner = try FileOwner(ofNewFileAt: path, sharedGroup: group.map(FileOwner.group))
    StoreCopies.removeAbandoned(besides: path, owner)
    let file = try NewFile(besides: path, owner: owner, mode: owner.keyFileMode)
    try text.withUnsafeBytes { try file.write($0) }
    do {
      try file.publish()
      return true
    } catch StorageError.exists {
      if isDangling(path) { throw dangling(path) }
      // A key that another process just created is as good, and may already be in use.
      return false
    }
  }

  /// Checks that a file that this user makes can take the place of the key file at `path`.
  ///
  /// - Throws: `StorageError.belongsToAnother`; the errors of the system.
  package static func checkReplaceable(at path: String) throws {
    let owner = try FileOwner(ofNewFileAt: path)
    var status = stat()
    guard try owner.acting({ lstat(path, &status) }) == 0 else { throw StorageError(errno: errno, path: path) }
    guard status.st_uid == owner.user else { throw StorageError.belongsToAnother(path: path, user: status.st_uid) }
  }

  /// Checks that the key file at `new` can take the place of the one at `path`.
  ///
  /// - Throws: `StorageError.unsupported` when it has another owner or mode, so that a program might be unable to read it;
  ///   the errors of the system.
  package static func checkReplacement(of path: String, by new: String) throws {
    try FileOwner(ofNewFileAt: path).acting { _ = try status(of: path, replacedBy: new) }
  }

  private static func status(of path: String, replacedBy new: String) throws -> stat {
    var (before, after) = (stat(), stat())
    guard lstat(path, &before) == 0, lstat(new, &after) == 0 else { throw StorageError(errno: errno, path: path) }
    guard before.st_uid == after.st_uid, before.st_gid == after.st_gid, before.st_mode == after.st_mode else {
      throw StorageError.unsupported(
        reason: "\(new) in the place of \(path) would have another owner, group or mode. Nothing was changed")
    }
    return before
  }

  /// The user whom the file at `path` belongs to; nil if there is none.
  package static func owner(at path: String) -> UInt32? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_uid : nil
  }

  /// Whether both are names of one file.
  package static func isSame(_ one: String, _ other: String) -> Bool {
    var (first, second) = (stat(), stat())
    return lstat(one, &first) == 0 && lstat(other, &second) == 0
      && first.st_ino == second.st_ino && first.st_dev == second.st_dev
  }

  /// Puts the key file at `new` in the place of the one at `path`, which is kept beside it, with a number.
  ///
  /// There is a whole key file at `path` at every moment; the former one opens copies of stores that were made before. `new`
  /// stays as another name of the file at `path`: it tells that what this is a step of is not completed.
  ///
  /// - Returns: The new path of the former key file.
  /// - Throws: As `checkReplacement(of:by:)`.
  package static func replace(at path: String, by new: String) throws -> String {
    try FileOwner(ofNewFileAt: path).acting {
      let former = try keepAside(path, status(of: path, replacedBy: new))
      let moved = try NewFile.temporaryPath(
        for: FilePath.lastComponent(of: path), in: FilePath.folder(above: path))
      guard link(new, moved) == 0, rename(moved, path) == 0 else { throw StorageError(errno: errno, path: path) }
      try FilePath.syncFolder(above: path)
      return former
    }
  }

  /// The files that killed programs left while they made the key file at `path`, or one to replace it: each holds a key.
  package static func leftovers(besides path: String) -> [String] {
    let name = FilePath.lastComponent(of: path)
    return FilePath.temporary(besides: path) { $0 == Array(name.utf8) || $0 == Array((name + replacementMark).utf8) }
  }

  /// Removes what killed programs left beside the key file at `path`, except what a program may be writing at this moment.
  ///
  /// - Returns: What was removed.
  package static func removeLeftovers(besides path: String) -> [String] {
    leftovers(besides: path).filter { file in
      var status = stat()
      guard lstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
      // With a second name, it is whole, and the temporary one is about to be removed anyway.
      let isDone =
        status.st_nlink > 1 || Int64(status.modificationTime.tv_sec) + 60 < Clock.millisecondsSince1970 / 1000
      return isDone && (try? FileOwner(ofNewFileAt: path).acting { unlink(file) }) == 0
    }
  }

  private static func keepAside(_ path: String, _ status: stat) throws -> String {
    for number in 1... {
      let aside = "\(path)\(replacedMark)\(number)"
      if link(path, aside) == 0 { return aside }
      guard errno == EEXIST else { throw StorageError(errno: errno, path: aside) }
      // Kept by a call that was interrupted.
      var kept = stat()
      if lstat(aside, &kept) == 0, kept.st_ino == status.st_ino, kept.st_dev == status.st_dev { return aside }
    }
    throw StorageError.exists(path: path)
  }

  private static let replacedMark = "-replaced-"

  /// What follows a key file's name in that of the one which is to replace it.
  package static let replacementMark = "-replacement"

  /// The key files that `replace` has kept beside the one at `path`.
  package static func replaced(at path: String) -> [String] { FilePath.numbered(path + replacedMark) }

  /// The path behind all links; nil if it leads to no regular file.
  package static func regularFile(at path: String) -> String? {
    guard FilePath.isRegularFile(path), let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// The group that may read the key file; nil for its owner alone.
  package static func group(at path: String) -> String? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & 0o040 != 0 else { return nil }
    return String(status.st_gid)
  }

  package static func isPresent(at path: String) -> Bool {
    access(path, F_OK) == 0
  }

  /// Whether `path` is a symbolic link to nothing.
  package static func isDangling(_ path: String) -> Bool {
    var status = stat()
    return !isPresent(at: path) && lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
  }

  private static func dangling(_ path: String) -> StorageError {
    .keyUnavailable(reason: "the key file \(path) is a dangling symbolic link; fix the link or remove it")
  }

  /// The key in the file at `path`, which may be a pipe.
  ///
  /// - Parameter limit: How long to wait for a pipe.
  package static func read(at path: String, within limit: Duration = KeySource.timeLimit) throws -> SecretBytes {
    let deadline = ContinuousClock.now + limit
    // Opening a named pipe would otherwise block until a writer opens it.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      let text = systemErrorText()
      throw isDangling(path)
        ? dangling(path) : StorageError.keyUnavailable(reason: "the key file \(path) cannot be read (\(text))")
    }
    defer { close(descriptor) }
    var count = 0
    let contents = try SecretBytes(count: maximumByteCount + 1) { buffer in
      while count < buffer.count {
        guard KeySource.waitForInput(descriptor, until: deadline) else {
          throw StorageError.keyUnavailable(reason: "the key file \(path) gave no data within \(limit)")
        }
        let result = Platform.read(descriptor, buffer.baseAddress! + count, buffer.count - count)
        if result < 0, errno == EINTR || errno == EAGAIN { continue }
        guard result >= 0 else {
          throw StorageError.keyUnavailable(reason: "the key file \(path) cannot be read (\(systemErrorText()))")
        }
        if result == 0 { break }
        count += result
      }
    }
    do {
      guard count <= maximumByteCount else { throw StorageError.keyUnavailable(reason: "it is too long") }
      return try decode(contents.slice(0..<count))
    } catch StorageError.keyUnavailable {
      throw StorageError.keyUnavailable(reason: "\(path) is not a key file")
    }
  }

  /// Whether these are the text of a key file, or 32 raw bytes.
  package static func isKey(_ contents: SecretBytes) -> Bool { (try? decode(contents)) != nil }

  /// Decodes the text of a key file, or 32 raw bytes, into the key.
  static func decode(_ contents: SecretBytes) throws -> SecretBytes {
    if contents.count == keyByteCount { return contents }
    return try contents.withUnsafeBytes { bytes in
      var text = bytes[...]
      while let last = text.last, last == 0x0a || last == 0x0d || last == 0x20 { text.removeLast() }
      guard text.starts(with: prefix), text.count == prefix.count + 2 * keyByteCount else {
        throw StorageError.keyUnavailable(reason: "it is neither 32 bytes nor the text of a key file")
      }
      let digits = text.dropFirst(prefix.count)
      return try SecretBytes(count: keyByteCount) { buffer in
        for index in 0..<keyByteCount {
          let position = digits.startIndex + 2 * index
          guard let high = value(ofDigit: digits[position]), let low = value(ofDigit: digits[position + 1]) else {
            throw StorageError.keyUnavailable(reason: "the text of the key file has a character that is not a digit")
          }
          buffer[index] = high << 4 | low
        }
      }
    }
  }

  private static func hexadecimalDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  private static func value(ofDigit digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
