#if os(Linux)
  import Dispatch
  import Foundation
  import Glibc
  import Testing

  @testable import CofferStorage

  @Suite("Watching files") struct FileWatcherTests {
    /// No instance is left, as inotify_init1(2) says it.
    private static let none: FileWatcher.Instance = {
      errno = EMFILE
      return -1
    }

    private let folder = NSTemporaryDirectory() + "coffer-watch-\(UUID().uuidString)"
    private let queue = DispatchQueue(label: "test")

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }

    @Test("of a store calls its handler again and again when no inotify instance is left, and says why")
    func store() throws {
      let calls = DispatchSemaphore(value: 0)
      let watcher = try FileWatcher(path: folder + "/store", queue: queue, instance: Self.none) { calls.signal() }
      #expect(watcher.pollingReason?.contains("max_user_instances") ?? false)
      for _ in 0..<3 { calls.wait() }
      let ordinary = try FileWatcher(path: folder + "/store", queue: queue) {}
      #expect(ordinary.pollingReason == nil)
    }

    @Test("and folders finds new, changed and removed files without inotify")
    func files() throws {
      let calls = DispatchSemaphore(value: 0)
      let (inside, path) = (folder + "/app.d", folder + "/app.json")
      let watcher = try FileWatcher(paths: [path, inside], queue: queue, instance: Self.none) { calls.signal() }
      #expect(watcher.pollingReason != nil)
      try Data("1".utf8).write(to: URL(filePath: path))
      calls.wait()
      try Data("12".utf8).write(to: URL(filePath: path))
      calls.wait()
      try FileManager.default.createDirectory(atPath: inside, withIntermediateDirectories: true)
      calls.wait()
      try Data("1".utf8).write(to: URL(filePath: inside + "/a.json"))
      calls.wait()
      try FileManager.default.removeItem(atPath: path)
      calls.wait()
      withExtendedLifetime(watcher) {}
    }

    @Test("fails for another reason")
    func others() throws {
      #expect(throws: StorageError.self) { try FileWatcher(path: folder + "/none/store", queue: queue) {} }
      #expect(throws: StorageError.self) {
        try FileWatcher(
          paths: [folder], queue: queue,
          instance: {
            errno = EINVAL
            return -1
          }
        ) {}
      }
    }
  }
#endif
