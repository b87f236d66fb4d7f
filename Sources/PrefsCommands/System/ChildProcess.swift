#if canImport(Darwin)
  @preconcurrency import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// A program started beside this one, with its environment.
enum ChildProcess {
  #if canImport(Darwin)
    typealias Actions = posix_spawn_file_actions_t?
    typealias Attributes = posix_spawnattr_t?
  #else
    typealias Actions = posix_spawn_file_actions_t
    typealias Attributes = posix_spawnattr_t
  #endif

  /// Starts the program at `path`.
  ///
  /// - Parameters:
  ///   - words: Its name and its arguments.
  ///   - configure: Says what is different for it (posix_spawn(3)).
  /// - Throws: ``Failure`` when it cannot be started.
  static func start(
    _ path: String, _ words: [String], configure: (inout Actions, inout Attributes) -> Void = { _, _ in }
  ) throws -> pid_t {
    #if canImport(Darwin)
      var actions: Actions = nil
      var attributes: Attributes = nil
    #else
      var actions = Actions()
      var attributes = Attributes()
    #endif
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    configure(&actions, &attributes)
    let words = words.map { (word: String) in strdup(word) } + [nil]
    defer { for word in words { free(word) } }
    var child: pid_t = 0
    let code = posix_spawn(&child, path, &actions, &attributes, words, environ)
    guard code == 0 else { throw Failure.system(path, errno: code) }
    return child
  }
}
