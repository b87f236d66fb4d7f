import Coffer
import PrefsCommands
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Opens the page in the user's browser, without its address in any program's arguments, where every user of the host could
/// read it.
///
/// The browser gets the name of a file that only this user can read, and which leads on to the address. The file goes away
/// once the page is open.
final class BrowserOpener: Sendable {
  private let store: String
  private let folder = Mutex<PrivateFolder?>(nil)

  /// - Parameter store: The store that the file may lie beside.
  init(besides store: String) {
    self.store = store
  }

  /// Whether there is a screen to open a page on.
  static var hasScreen: Bool {
    #if canImport(Darwin)
      return true
    #else
      return ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].contains { StandardLocation.variable($0) != nil }
    #endif
  }

  /// - Throws: ``Failure`` where the file cannot be made or nothing opens it.
  func open(_ address: String) throws {
    clean()
    let folder = try PrivateFolder(besides: store)
    self.folder.withLock { $0 = folder }
    let file = "\(folder.path)/page.html"
    // The address has no letter that HTML would take for its own.
    let text = """
      <!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Settings</title>\
      <meta http-equiv="refresh" content="0;url=\(address)">\n
      """
    try FileDescriptor.writeNewFile(Array(text.utf8), to: file)
    try start(file)
  }

  private func start(_ file: String) throws {
    // The port and its connections are not the browser's.
    for descriptor in Int32(3)..<256 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    // The program is not waited for.
    signal(SIGCHLD, SIG_IGN)
    #if canImport(Darwin)
      let opener = "open"
    #else
      let opener = "xdg-open"
    #endif
    // A session of its own: Ctrl-C is for the page alone.
    _ = try ChildProcess.start(
      "/bin/sh", ["sh", "-c", "exec \(opener) \"$1\" >/dev/null 2>&1 </dev/null", "sh", file]
    ) { _, attributes in
      posix_spawnattr_setflags(&attributes, Int16(AgentProcess.newSession))
    }
  }

  /// Removes the file.
  func clean() {
    folder.withLock { folder in
      folder?.wipe()
      folder = nil
    }
  }
}
