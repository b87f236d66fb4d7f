import Dispatch

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Reports commits by other processes, or changes to files, without polling.
///
/// Writes through mapped memory raise no event, and the log is written before its commit is visible, so a writer
/// raises an event after each commit. On Linux it opens and closes the log, which has no locks that closing could
/// drop. Changing a file's times, as on other systems, would make each synced commit a third slower on Linux, because
/// of the file system's own journal.
///
/// Unchecked: all properties are constants, and dispatch sources may be cancelled on any thread.
package final class FileWatcher: @unchecked Sendable {
  private let sources: [any DispatchSourceProtocol]

  #if os(Linux)
    /// Watches the folder of `path`, inotify(7), because the log is created and deleted, and the store may be replaced.
    package init(path: String, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) throws {
      let name = FilePath.lastComponent(of: path)
      let log = name + "-wal"
      let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
      guard descriptor >= 0 else { throw StorageError(errno: errno, path: path) }
      let folder = FilePath.folder(above: path)
      guard inotify_add_watch(descriptor, folder, UInt32(IN_CLOSE_NOWRITE | IN_MOVED_TO)) >= 0 else {
        let error = StorageError(errno: errno, path: path)
        close(descriptor)
        throw error
      }
      sources = [
        Self.source(descriptor, queue, handler) { event, changed in
          changed == (event.mask & UInt32(IN_MOVED_TO) != 0 ? name : log)
        }
      ]
    }

    /// Watches files and folders, existing or not, and the direct contents of the folders.
    ///
    /// A new file is reported once it is closed, so that it is not read half-written. Links themselves are watched,
    /// not followed.
    package convenience init(
      paths: [String], queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
    ) throws {
      try self.init(WatchedFolders(paths), queue, handler)
    }

    private init(
      _ folders: WatchedFolders, _ queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
    ) throws {
      let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
      guard descriptor >= 0 else {
        throw StorageError.inputOutput(
          path: folders.names.keys.min() ?? "",
          reason: "it cannot be watched: \(String(cString: strerror(errno))), see inotify(7)")
      }
      do {
        let watches = try Self.watch(folders, descriptor)
        sources = [
          Self.source(descriptor, queue, handler) { event, name in
            // An event without a name is about the folder itself, which its parent's watch also reports.
            guard let name, let (folder, names) = watches[event.wd], names.concerns(name) else { return false }
            return event.mask & UInt32(IN_CREATE) == 0 || !Self.isBeingWritten("\(folder)/\(name)")
          }
        ]
      } catch {
        close(descriptor)
        throw error
      }
    }

    /// Whether something new is a regular file, whose close is reported later; not a folder or a link.
    private static func isBeingWritten(_ path: String) -> Bool {
      var status = stat()
      return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 1
    }

    private typealias Watches = [Int32: (folder: String, names: WatchedFolders.Names)]

    /// - Returns: For each watch, its folder and the names to report.
    private static func watch(_ folders: WatchedFolders, _ descriptor: Int32) throws -> Watches {
      let events = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB
      var watches: Watches = [:]
      for (folder, names) in folders.names {
        let watch = inotify_add_watch(descriptor, folder, UInt32(events) | UInt32(IN_ONLYDIR))
        if watch >= 0 {
          // Two paths may lead to one folder.
          watches[watch] = (folder, watches[watch].map { $0.names.union(names) } ?? names)
        } else if errno == ENOSPC {
          throw StorageError.inputOutput(
            path: folder, reason: "it cannot be watched: fs.inotify.max_user_watches is reached")
        } else if ![ENOENT, ENOTDIR, EACCES].contains(errno) {
          throw StorageError(errno: errno, path: folder)
        }
      }
      return watches
    }

    private static func source(
      _ descriptor: Int32, _ queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void,
      isOfInterest: @escaping @Sendable (_ event: inotify_event, _ name: String?) -> Bool
    ) -> any DispatchSourceProtocol {
      let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
      source.setEventHandler {
        if Self.readEvents(descriptor, isOfInterest) { handler() }
      }
      source.setCancelHandler { close(descriptor) }
      source.activate()
      return source
    }

    /// Reads all pending events.
    ///
    /// - Returns: Whether one of them is relevant, or some were lost.
    private static func readEvents(
      _ descriptor: Int32, _ isOfInterest: (_ event: inotify_event, _ name: String?) -> Bool
    ) -> Bool {
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
            let name =
              event.len == 0
              ? nil : String(cString: buffer.baseAddress!.advanced(by: nameStart).assumingMemoryBound(to: CChar.self))
            if event.mask & UInt32(IN_Q_OVERFLOW) != 0 || isOfInterest(event, name) { isConcerned = true }
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
    /// Watches the file itself, kqueue(2), through a descriptor that is never closed: closing it would drop SQLite's
    /// locks on the file (https://www.sqlite.org/howtocorrupt.html, 2.2).
    package init(path: String, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) throws {
      let descriptor = open(path, O_EVTONLY | O_CLOEXEC)
      guard descriptor >= 0 else { throw StorageError(errno: errno, path: path) }
      let source = DispatchSource.makeFileSystemObjectSource(
        fileDescriptor: descriptor, eventMask: .attrib, queue: queue)
      source.setEventHandler(handler: handler)
      source.activate()
      sources = [source]
    }

    /// Watches files and folders, existing or not, and the direct contents of the folders.
    ///
    /// Files created later are not watched: make a new watcher when this one reports them.
    package convenience init(
      paths: [String], queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
    ) throws {
      try self.init(WatchedFolders(paths), queue, handler)
    }

    private init(
      _ folders: WatchedFolders, _ queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
    ) throws {
      let descriptors = try Self.open(folders.filesAndFolders)
      sources = descriptors.map { descriptor in
        let source = DispatchSource.makeFileSystemObjectSource(
          fileDescriptor: descriptor, eventMask: [.write, .extend, .attrib, .link, .rename, .delete], queue: queue)
        source.setEventHandler(handler: handler)
        source.setCancelHandler { close(descriptor) }
        source.activate()
        return source
      }
    }

    private static func open(_ paths: [String]) throws -> [Int32] {
      var descriptors: [Int32] = []
      for path in paths {
        let descriptor = Darwin.open(path, O_EVTONLY | O_CLOEXEC)
        if descriptor >= 0 {
          descriptors.append(descriptor)
        } else if ![ENOENT, ENOTDIR, EACCES].contains(errno) {
          let error = StorageError(errno: errno, path: path)
          for descriptor in descriptors { close(descriptor) }
          throw error
        }
      }
      return descriptors
    }

    /// Raises the event.
    static func announce(_ path: String) {
      _ = utimensat(AT_FDCWD, path, nil, AT_SYMLINK_NOFOLLOW)
    }
  #endif

  /// Watches the links and folders that lead to the folder of the file at `path`.
  package convenience init(
    leadingToFolderOf path: String, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
  ) throws {
    try self.init(WatchedFolders(leadingToFolderOf: path), queue, handler)
  }

  deinit {
    for source in sources { source.cancel() }
  }
}
