import Dispatch

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Tells when another process has committed, without polling.
///
/// Writes through mapped memory raise no event, and the log is written before its commit can be seen: a writer therefore
/// raises one after each commit. On Linux it opens and closes the log, on which no locks lie that closing would drop; to
/// change a file's times, as it does elsewhere, would make each synced commit a third slower there, for the file system's
/// own journal.
package final class FileWatcher {
  private let source: any DispatchSourceProtocol

  #if os(Linux)
    /// Watches the folder of `path`, inotify(7): the log comes and goes.
    package init(path: String, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) throws {
      let name = FilePath.lastComponent(of: path) + "-wal"
      let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
      guard descriptor >= 0 else { throw StorageError(errno: errno, path: path) }
      let folder = String(path.dropLast(name.count - 4))
      guard inotify_add_watch(descriptor, folder.isEmpty ? "." : folder, UInt32(IN_CLOSE_NOWRITE)) >= 0 else {
        let error = StorageError(errno: errno, path: path)
        close(descriptor)
        throw error
      }
      let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
      source.setEventHandler {
        if Self.readEvents(descriptor, name: name) { handler() }
      }
      source.setCancelHandler { close(descriptor) }
      source.activate()
      self.source = source
    }

    /// Takes all events that wait.
    ///
    /// - Returns: Whether one of them, or an overflow, concerns the file called `name`.
    private static func readEvents(_ descriptor: Int32, name: String) -> Bool {
      let byteCount = 4096
      return withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: MemoryLayout<inotify_event>.alignment) {
        buffer in
        var isConcerned = false
        while true {
          let count = read(descriptor, buffer.baseAddress, byteCount)
          guard count > 0 else { return isConcerned }
          var offset = 0
          while offset < count {
            let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let nameStart = offset + MemoryLayout<inotify_event>.size
            if event.mask & UInt32(IN_Q_OVERFLOW) != 0 {
              isConcerned = true
            } else if event.len > 0,
              String(cString: buffer.baseAddress!.advanced(by: nameStart).assumingMemoryBound(to: CChar.self)) == name
            {
              isConcerned = true
            }
            offset = nameStart + Int(event.len)
          }
        }
      }
    }

    /// Raises the event.
    static func announce(_ path: String) {
      let log = Platform.openForReading(path + "-wal")
      if log >= 0 { close(log) }
    }
  #else
    /// Watches the file itself, kqueue(2), through a descriptor that is never closed: closing one would drop SQLite's
    /// locks on the file (https://www.sqlite.org/howtocorrupt.html, 2.2).
    package init(path: String, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) throws {
      let descriptor = open(path, O_EVTONLY | O_CLOEXEC)
      guard descriptor >= 0 else { throw StorageError(errno: errno, path: path) }
      let source = DispatchSource.makeFileSystemObjectSource(
        fileDescriptor: descriptor, eventMask: .attrib, queue: queue)
      source.setEventHandler(handler: handler)
      source.activate()
      self.source = source
    }

    /// Raises the event.
    static func announce(_ path: String) {
      _ = utimensat(AT_FDCWD, path, nil, AT_SYMLINK_NOFOLLOW)
    }
  #endif

  deinit {
    source.cancel()
  }
}
