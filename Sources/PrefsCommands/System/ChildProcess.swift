#if canImport(Darwin)
  @preconcurrency import Darwin
#elseif canImport(Musl)
  @preconcurrency import Musl
#else
  @preconcurrency import Glibc
#endif

/// Starts programs, with this process's environment variables.
package enum ChildProcess {
  #if canImport(Darwin)
    package typealias Actions = posix_spawn_file_actions_t?
    package typealias Attributes = posix_spawnattr_t?
  #else
    package typealias Actions = posix_spawn_file_actions_t
    package typealias Attributes = posix_spawnattr_t
  #endif

  /// Starts the program at `path`.
  ///
  /// - Parameters:
  ///   - words: Its name and its arguments.
  ///   - configure: Sets its file actions and attributes (posix_spawn(3)).
  /// - Throws: ``Failure`` when it cannot be started.
  package static func start(
    _ path: String, _ words: [String], configure: (inout Actions, inout Attributes) -> Void = { _, _ in }
  ) throws -> pid_t {
    var child: pid_t = 0
    let words = CStringList(words.map { Array($0.utf8) })
    let code = spawn(&child, path, words.pointers, environ, configure)
    guard code == 0 else { throw missingLoader(of: path, errno: code) ?? Failure.system(path, errno: code) }
    return child
  }

  /// Has the program start with the default actions of signals, which it would otherwise ignore as this process does.
  ///
  /// - Parameter flags: Those of its other attributes (posix_spawnattr_setflags(3)); they replace earlier ones.
  package static func restore(_ signals: [Int32], _ attributes: inout Attributes, flags: Int32 = 0) {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    posix_spawnattr_setsigdefault(&attributes, &set)
    posix_spawnattr_setflags(&attributes, Int16(flags | Int32(POSIX_SPAWN_SETSIGDEF)))
  }

  /// Why the program at `path` cannot be started, where the system reports it as missing and it is not.
  ///
  /// execve(2) does so if the interpreter of a script, or the loader of a program's libraries, is missing: as where a
  /// program for one C library is started beside another one.
  static func missingLoader(of path: String, errno code: Int32) -> Failure? {
    guard code == ENOENT, access(path, X_OK) == 0 else { return nil }
    return Failure(.notExecutable, "\(path): the loader or interpreter that it needs is not on this system.")
  }

  /// Where a program may be: in the folders of `PATH`, unless its name has a slash.
  package static func candidates(_ name: String) -> [String] {
    if name.utf8.contains(UInt8(ascii: "/")) { return [name] }
    let folders = (Environment.variable("PATH") ?? "/usr/bin:/bin").split(
      separator: ":", omittingEmptySubsequences: false)
    return folders.map { $0.isEmpty ? "./\(name)" : "\($0)/\(name)" }
  }

  /// posix_spawn(3), with its result.
  static func spawn(
    _ child: inout pid_t, _ path: String, _ words: [UnsafeMutablePointer<CChar>?],
    _ environment: UnsafePointer<UnsafeMutablePointer<CChar>?>,
    _ configure: (inout Actions, inout Attributes) -> Void
  ) -> Int32 {
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
    return posix_spawn(&child, path, &actions, &attributes, words, environment)
  }
}

/// A NULL-terminated array of C strings.
final class CStringList {
  let pointers: [UnsafeMutablePointer<CChar>?]

  /// - Parameter strings: Without NULs.
  init(_ strings: [[UInt8]]) {
    pointers =
      strings.map { bytes in
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
        for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
        copy[bytes.count] = 0
        return copy
      } + [nil]
  }

  deinit {
    for pointer in pointers { pointer?.deallocate() }
  }
}
