import CSQLite

/// A registered VFS.
///
/// Never changed or freed, and SQLite's own calls on it are thread-safe.
package struct VFSPointer: @unchecked Sendable {
  package let pointer: UnsafeMutablePointer<sqlite3_vfs>

  package init(pointer: UnsafeMutablePointer<sqlite3_vfs>) {
    self.pointer = pointer
  }
}

/// A file of the VFS below.
package struct RealFile {
  package let file: UnsafeMutablePointer<sqlite3_file>

  @inline(__always)
  package var methods: sqlite3_io_methods { file.pointee.pMethods.pointee }

  /// Opens `name` below and passes it to `body`; frees everything on failure.
  package static func open(
    _ name: UnsafePointer<CChar>, _ below: VFSPointer, _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?,
    _ body: (RealFile) -> Void
  ) -> Int32 {
    let byteCount = Int(below.pointer.pointee.szOsFile)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
    memset(memory, 0, byteCount)
    let file = memory.assumingMemoryBound(to: sqlite3_file.self)
    let result = below.pointer.pointee.xOpen(below.pointer, name, file, flags, outFlags)
    guard result == SQLITE_OK else {
      if file.pointee.pMethods != nil { _ = file.pointee.pMethods.pointee.xClose(file) }
      memory.deallocate()
      return result
    }
    body(RealFile(file: file))
    return SQLITE_OK
  }

  package func close() -> Int32 {
    let result = methods.xClose(file)
    UnsafeMutableRawPointer(file).deallocate()
    return result
  }

  @inline(__always)
  package func read(_ buffer: UnsafeMutableRawPointer, _ count: Int, at offset: Int64) -> Int32 {
    methods.xRead(file, buffer, Int32(count), offset)
  }

  @inline(__always)
  package func write(_ buffer: UnsafeRawPointer, _ count: Int, at offset: Int64) -> Int32 {
    methods.xWrite(file, buffer, Int32(count), offset)
  }

  func sync() -> Int32 {
    methods.xSync(file, SQLITE_SYNC_FULL)
  }

  package func byteCount(_ result: inout Int64) -> Int32 {
    methods.xFileSize(file, &result)
  }
}
