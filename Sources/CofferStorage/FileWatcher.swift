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
/// Each user has a limited number of inotify instances and watches, often 128 of the first. When none is left, the watcher
/// looks by itself, several times a second.
///
/// Writes through mapped memory raise no event, and the log is written before its commit is visible, so a writer
/// raises an event after each commit. On Linux it opens and closes the log, which has no locks that closing could
/// drop. Changing a file's times, as on other systems, would make each synced commit a third slower on Linux, because
/// of the file system's own journal.
///
/// Unchecked: all properties are constants, and dispatch sources may be cancelled on any thread.
package final class FileWatcher: @unchecked Sendable {
  private let sources: [any DispatchSourceProtocol]
  /// Why the watcher polls, in words; nil if the system reports changes.
  package let pollingReason: String?

  #if os(Linux)
    /// Opens an inotify instance; negative without one.
    package typealias Instance = @Sendable () -> Int32

    package static let systemInstance: Instance = { inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC)) }

    /// Watches the folder of `path`, inotify(7), because the log is created and deleted, and the store may be replaced or removed.
    package init(
      path: String, queue: DispatchQueue, instance: Instance = systemInstance,
      _ handler: @escaping @Sendable () -> Void
    ) throws {
      let name = FilePath.lastComponent(of: path)
      let (log, index) = (name + "-wal", name + "-shm")
      let descriptor = instance()
      var code = descriptor < 0 ? errno : 0
      let events = UInt32(IN_CLOSE_NOWRITE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)
      if descriptor >= 0, inotify_add_watch(descriptor, FilePath.folder(above: path), events) < 0 {
        code = errno
        close(descriptor)
      }
      pollingReason = Self.pollingReason(code)
      if pollingReason != nil {
        // The handler looks into the store, which is the only way to find out.
        sources = [Self.timer(queue, handler)]
      } else {
        guard code == 0 else { throw StorageError(errno: code, path: path) }
        sources = [
          Self.source(descriptor, queue, handler) { event, changed in
            let isMove = event.mask & UInt32(IN_MOVED_TO | IN_MOVED_FROM) != 0
            return switch changed {
            // Another store is renamed or copied there, or ours is gone; of ours, this also says that a program has closed it.
            case name: event.mask & UInt32(IN_CLOSE_NOWRITE) == 0
            case log: event.mask & UInt32(IN_CLOSE_NOWRITE) != 0 || isMove
            case index: isMove
            default: false
            }
          }
        ]
      }
    }

    // MARK: Polling

    private static let pollInterval = DispatchTimeInterval.milliseconds(250)

    /// In words; nil for a reason that does not end when others stop watching.
    private static func pollingReason(_ code: Int32) -> String? {
      switch code {
      case EMFILE, ENFILE: "no inotify instance is left, see fs.inotify.max_user_instances"
      case ENOSPC, ENOMEM: "no inotify watch is left, see fs.inotify.max_user_watches"
      default: nil
      }
    }

    private static func timer(
      _ queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
    ) -> any DispatchSourceProtocol {
      let timer = DispatchSource.makeTimerSource(queue: queue)
      timer.schedule(deadline: .now() + pollInterval, repeating: pollInterval, leeway: .milliseconds(50))
      timer.setEventHandler(handler: handler)
      timer.activate()
      return timer
    }

    /// The states of files, to find changes.
    ///
    /// Unchecked: only the watcher's queue uses it.
    private final class Poll: @unchecked Sendable {
      private let folders: WatchedFolders
      private var last: [String: [Int]]
      private var reported: [String: [Int]]

      init(_ folders: WatchedFolders) {
        self.folders = folders
        last = Self.states(folders)
        reported = last
      }

      /// Whether something has changed and stayed so since the last look: it may have been half-written before.
      func hasChanged() -> Bool {
        let states = Self.states(folders)
        defer { last = states }
        guard states == last, states != reported else { return false }
        reported = states
        return true
      }

      private static func states(_ folders: WatchedFolders) -> [String: [Int]] {
        var states: [String: [Int]] = [:]
        for (folder, names) in folders.names {
          states[folder] = state(of: folder)
          let all: [String] =
            switch names {
            case .all: ((try? FolderNames.read(folder)) ?? []).map { String(decoding: $0, as: UTF8.self) }
            case .some(let names): Array(names)
            }
          for name in all { states["\(folder)/\(name)"] = state(of: "\(folder)/\(name)") }
        }
        return states
      }

      private static func state(of path: String) -> [Int]? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        // A folder's own times change with every file in it, also with those that are of no interest.
        guard status.st_mode & S_IFMT != S_IFDIR else { return [Int(status.st_ino), Int(status.st_mode)] }
        return [
          Int(status.st_ino), Int(status.st_mode), Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
          status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
        ]
      }
    }

    // MARK: Events

    /// Watches files and folders, existing or not, and the direct contents of the folders.
    ///
    /// A new file is reported once it is closed, so that it is not read half-written.
    package convenience init(
      paths: [String], queue: DispatchQueue, instance: Instance = systemInstance,
      _ handler: @escaping @Sendable () -> Void
    ) throws {
      try self.init(WatchedFolders(paths), queue, instance, handler)
    }

    private init(
      _ folders: WatchedFolders, _ queue: DispatchQueue, _ instance: Instance,
      _ handler: @escaping @Sendable () -> Void
    ) throws {
      let descriptor = instance()
      let code = descriptor < 0 ? errno : 0
      do throws(NoWatch) {
        guard code == 0 else { throw NoWatch(code: code, folder: folders.names.keys.min() ?? "") }
        let watches = try Self.watch(folders, descriptor)
        pollingReason = nil
        sources = [
          Self.source(descriptor, queue, handler) { event, name in
            // An event without a name is about the folder itself, which its parent's watch also reports.
            guard let name, let (folder, names) = watches[event.wd], names.concerns(name) else { return false }
            return event.mask & UInt32(IN_CREATE) == 0 || !Self.isBeingWritten("\(folder)/\(name)")
          }
        ]
      } catch {
        if descriptor >= 0 { close(descriptor) }
        pollingReason = Self.pollingReason(error.code)
        guard pollingReason != nil else { throw StorageError(errno: error.code, path: error.folder) }
        let poll = Poll(folders)
        sources = [Self.timer(queue) { if poll.hasChanged() { handler() } }]
      }
    }

    private struct NoWatch: Error {
      let code: Int32
      let folder: String
    }

    /// Whether something new is a regular file, whose close is reported later; not a folder or a link.
    private static func isBeingWritten(_ path: String) -> Bool {
      var status = stat()
      return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 1
    }

    private typealias Watches = [Int32: (folder: String, names: WatchedFolders.Names)]

    /// - Returns: For each watch, its folder and the names to report.
    private static func watch(_ folders: WatchedFolders, _ descriptor: Int32) throws(NoWatch) -> Watches {
      let events = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB
      var watches: Watches = [:]
      for (folder, names) in folders.names {
        let watch = inotify_add_watch(descriptor, folder, UInt32(events) | UInt32(IN_ONLYDIR))
        if watch >= 0 {
          // Two paths may lead to one folder.
          watches[watch] = (folder, watches[watch].map { $0.names.union(names) } ?? names)
        } else if case let code = errno, ![ENOENT, ENOTDIR, EACCES].contains(code) {
          throw NoWatch(code: code, folder: folder)
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
      pollingReason = nil
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
      pollingReason = nil
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

  /// Watches the folders and links that lead to the folder of the file at `path`.
  package convenience init(
    leadingToFolderOf path: String, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
  ) throws {
    #if os(Linux)
      try self.init(WatchedFolders(leadingToFolderOf: path), queue, Self.systemInstance, handler)
    #else
      try self.init(WatchedFolders(leadingToFolderOf: path), queue, handler)
    #endif
  }

  /// Watches files in one folder, existing or not, and nothing on the way to it, where others may change much.
  ///
  /// When the folder is removed, the last report is of the files in it.
  package convenience init(
    folder: String, names: Set<String>, queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
  ) throws {
    let folders = WatchedFolders(folder: folder, names: names)
    #if os(Linux)
      try self.init(folders, queue, Self.systemInstance, handler)
    #else
      try self.init(folders, queue, handler)
    #endif
  }

  deinit {
    for source in sources { source.cancel() }
  }
}
