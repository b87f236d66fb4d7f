import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A file in clear for an editor, in a folder that nobody else may enter, and of which nothing stays.
struct EditedFile {
  let path: String
  private let folder: String

  /// Makes the folder in `$XDG_RUNTIME_DIR`, which lies in memory, or where that cannot be, in `fallback`.
  init(_ bytes: [UInt8], name: String, fallback: String) throws {
    let runtime = Environment.variable("XDG_RUNTIME_DIR").flatMap { try? Self.makeFolder(in: $0) }
    folder = try runtime ?? Self.makeFolder(in: fallback)
    path = "\(folder)/\(name)"
    do {
      try FileDescriptor.writeNewFile(bytes, to: path)
    } catch {
      wipe()
      throw error
    }
  }

  private static let prefix = ".prefs-edit-"

  /// The folders of this user that are still there, where an editor is at work, or was when the tool was killed.
  ///
  /// - Parameter path: A store.
  static func leftovers(besides path: String) -> [String] {
    let parents = [Environment.variable("XDG_RUNTIME_DIR"), StoreLocation.folder(of: path)].compactMap { $0 }
    return Set(parents).sorted().flatMap { parent in
      names(in: parent).filter { $0.hasPrefix(prefix) }.sorted().map { "\(parent)/\($0)" }
    }
  }

  private static func names(in folder: String) -> [String] {
    guard let entries = opendir(folder) else { return [] }
    defer { closedir(entries) }
    var names: [String] = []
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  private static func makeFolder(in parent: String) throws -> String {
    var template = Array("\(parent)/\(prefix)XXXXXX".utf8CString)
    // mkdtemp(3) makes it with mode 0700.
    guard mkdtemp(&template) != nil else { throw Failure.system(parent, errno: errno) }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// What the editor has left.
  func contents() throws -> [UInt8] { try FileDescriptor.readFile(path) }

  /// Overwrites and removes the file, and what the editor has put beside it.
  func wipe() {
    for name in Self.names(in: folder) { Self.wipe("\(folder)/\(name)") }
    rmdir(folder)
  }

  private static func wipe(_ path: String) {
    // Never through a link to somewhere else.
    let descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    if descriptor >= 0 {
      var status = stat()
      if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
        try? FileDescriptor.writeAll(
          [UInt8](repeating: 0, count: Int(status.st_size)), to: descriptor, named: path)
        fsync(descriptor)
      }
      close(descriptor)
    }
    unlink(path)
  }
}
