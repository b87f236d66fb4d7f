import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A plaintext file for an editor, in a private folder, wiped afterwards.
struct EditedFile {
  let path: String
  private let folder: PrivateFolder
  /// The file given to the editor, even if it was renamed since.
  private let descriptor: Int32

  /// Makes the folder in `$XDG_RUNTIME_DIR`, which is in memory, or else in the store's folder.
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

  /// The contents after editing.
  func contents() throws -> [UInt8] { try FileDescriptor.readFile(path) }

  /// Overwrites and removes the file, and all files that the editor put beside it.
  func wipe() {
    // An editor that saves to a new file has unlinked this one.
    PrivateFolder.overwrite(descriptor)
    close(descriptor)
    if !folder.wipe() { Message.error("\(folder.path) could not be removed completely; remove it by hand.") }
  }
}
