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

  private static func makeFolder(in parent: String) throws -> String {
    var template = Array("\(parent)/.prefs-edit-XXXXXX".utf8CString)
    // mkdtemp(3) makes it with mode 0700.
    guard mkdtemp(&template) != nil else { throw Failure.system(parent, errno: errno) }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// What the editor has left.
  func contents() throws -> [UInt8] { try FileDescriptor.readFile(path) }

  /// Overwrites and removes the file, and what the editor has put beside it.
  func wipe() {
    if let entries = opendir(folder) {
      defer { closedir(entries) }
      while let entry = readdir(entries) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { Self.wipe("\(folder)/\(name)") }
      }
    }
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
