import Coffer
import Dispatch
import PrefsCommands
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Opens the page in the user's browser without passing its address as an argument, which every user of the host could read.
///
/// The browser gets the name of a file that only this user can read, and that redirects to the address. The file is removed once
/// the page is open.
final class BrowserOpener: Sendable {
  private let store: String
  private let folder = Mutex<PrivateFolder?>(nil)

  private let isConfined: Bool

  /// - Parameters:
  ///   - store: The store; the file may be created beside it.
  ///   - isConfined: Whether the browser may run in a sandbox that reads only unhidden files in the user's home folder.
  init(besides store: String, isConfined: Bool = access("/snap/bin", F_OK) == 0) {
    (self.store, self.isConfined) = (store, isConfined)
  }

  /// Whether there is a screen to open a page on.
  static var hasScreen: Bool {
    #if canImport(Darwin)
      return true
    #else
      return ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].contains { StandardLocation.variable($0) != nil }
    #endif
  }

  /// - Parameter failed: Called, at any time, if no browser opens it.
  /// - Throws: ``Failure`` if the file cannot be created.
  func open(_ address: String, failed: @escaping @Sendable () -> Void) throws {
    clean()
    let home = isConfined ? Environment.variable("HOME") : nil
    let folder = try home.map { try PrivateFolder(visibleInHome: $0) } ?? PrivateFolder(besides: store)
    self.folder.withLock { $0 = folder }
    let file = "\(folder.path)/page.html"
    // The address has no character that HTML escapes.
    let text = """
      <!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Settings</title>\
      <meta http-equiv="refresh" content="0;url=\(address)">\n
      """
    try FileDescriptor.writeNewFile(Array(text.utf8), to: file)
    try start(file, failed)
  }

  private func start(_ file: String, _ failed: @escaping @Sendable () -> Void) throws {
    // The browser must not inherit the port and its connections.
    for descriptor in Int32(3)..<256 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    #if canImport(Darwin)
      let opener = "open"
    #else
      let opener = "xdg-open"
    #endif
    // In a separate session: Ctrl-C must end only the page.
    let child = try ChildProcess.start(
      "/bin/sh", ["sh", "-c", "exec \(opener) \"$1\" >/dev/null 2>&1 </dev/null", "sh", file]
    ) { _, attributes in
      ChildProcess.restore([SIGPIPE, SIGTTIN], &attributes, flags: AgentProcess.newSession)
    }
    // It may run as long as the browser.
    DispatchQueue(label: "prefs-ui.browser").async {
      var status: Int32 = 0
      while waitpid(child, &status, 0) < 0, errno == EINTR {}
      if status != 0 { failed() }
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
