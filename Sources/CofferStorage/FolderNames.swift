/// Lists folders.
package enum FolderNames {
  /// The names in a folder, as bytes, without `.` and `..`.
  ///
  /// - Throws: The `errno` of open(2) or readdir(3).
  package static func read(_ path: String) throws(Failure) -> [[UInt8]] {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(errno: errno) }
    return try read(closing: descriptor)
  }

  /// The same for a folder that is open; its position stays.
  package static func read(_ descriptor: Int32) throws(Failure) -> [[UInt8]] {
    let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0 else { throw Failure(errno: errno) }
    return try read(closing: copy)
  }

  package struct Failure: Error {
    package let errno: Int32
  }

  private static func read(closing descriptor: Int32) throws(Failure) -> [[UInt8]] {
    guard let folder = fdopendir(descriptor) else {
      defer { close(descriptor) }
      throw Failure(errno: errno)
    }
    defer { closedir(folder) }
    var names: [[UInt8]] = []
    while true {
      errno = 0
      guard let entry = readdir(folder) else { break }
      let name = Self.name(of: entry)
      if name != [UInt8(ascii: ".")], name != Array("..".utf8) { names.append(name) }
    }
    guard errno == 0 else { throw Failure(errno: errno) }
    return names
  }

  /// The bytes up to the NUL.
  ///
  /// An entry is only as long as its name: a copy of all of `d_name` reads beyond it (readdir(3)).
  private static func name(of entry: UnsafePointer<dirent>) -> [UInt8] {
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return [] }
    let name = UnsafeRawPointer(entry) + offset
    return Array(UnsafeRawBufferPointer(start: name, count: strlen(name.assumingMemoryBound(to: CChar.self))))
  }
}
