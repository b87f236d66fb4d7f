import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A plaintext file for an editor, in a private folder, of which nothing stays.
struct EditedFile {
  let path: String
  private let folder: PrivateFolder
  /// The file that the editor was given, whatever it is called in the end.
  private let descriptor: Int32

  /// Makes the folder in `$XDG_RUNTIME_DIR`, which lies in memory, or in the store's folder where that cannot be.
  init(_ bytes: [UInt8], name: String, besides store: String) throws {
    folder = try PrivateFolder(besides: store)
    path = "\(folder.path)/\(name)"
    do {
      try FileDescriptor.writeNewFile(bytes, to: path)
      descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
      guard descriptor >= 0 else { throw Failure.system(path, errno: errno) }
    } catch {
      folder.wipe()
      throw error
    }
  }

  /// What the editor has left.
  func contents() throws -> [UInt8] { try FileDescriptor.readFile(path) }

  /// Overwrites and removes the file, and all that the editor has put beside it.
  func wipe() {
    // An editor that writes another file in its place has taken its name away.
    PrivateFolder.overwrite(descriptor)
    close(descriptor)
    if !folder.wipe() { Message.error("\(folder.path) could not be removed whole; remove it by hand.") }
  }
}
