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

/// The page from its start to its end.
final class PageProcess: Sendable {
  /// Why it ends, in the words of the page's protocol.
  private enum End: String {
    case idle, lastTab, ended
  }

  private let store: PageStore
  private let server: PageServer
  private let isSocket: Bool
  private let opensBrowser: Bool
  private let options: SessionOptions
  private let credentials = Credentials()
  private let lifetime: PageLifetime
  private let events: EventStream
  private let browser: BrowserOpener
  private let folder: String
  private let end = DispatchSemaphore(value: 0)
  private let reason = Mutex<End?>(nil)
  private let warnings = Atomic(false)
  private let queue = DispatchQueue(label: "prefs-ui.process")

  /// - Throws: ``Failure`` if it cannot listen.
  init(
    store: PageStore, place: PageServer.Place, lifetime: PageLifetime, events: EventStream, opensBrowser: Bool,
    talking options: SessionOptions
  ) throws {
    self.store = store
    self.lifetime = lifetime
    self.events = events
    self.opensBrowser = opensBrowser
    self.options = options
    server = try PageServer(place)
    if case .socket = place { isSocket = true } else { isSocket = false }
    browser = BrowserOpener(besides: store.database.path)
    folder = try RandomText.make(byteCount: 16)
  }

  /// Serves until the end.
  func run() throws {
    // A browser that disconnects in the middle of an answer must not end the program.
    signal(SIGPIPE, SIG_IGN)
    // Before the address is printed.
    let signals = try EndingSignals([SIGINT, SIGTERM, SIGHUP]) { self.end(.ended) }
    let port = server.port
    let gate = RequestGate(place: isSocket ? .socket : .loopback(port: port), folder: folder)
    let handler = PageHandler(
      gate: gate, credentials: credentials, store: store, events: events, lifetime: lifetime,
      didOpen: { [browser] in browser.clean() }, atOtherPort: { [weak self] in self?.warn(ofPort: $0, port) })
    let registration = try store.follow { [events] commit in events.send("commit", commit) }
    server.serve { handler.answer($0, $1) }
    defer {
      registration.cancel()
      browser.clean()
      events.end((reason.withLock { $0 } ?? .ended).rawValue)
      server.stop()
    }
    let sources = watchLifetime() + watchTerminal(port)
    try invite(port)
    options.note("press Ctrl-C to end the page; it also ends a minute after its last tab is closed.")
    withExtendedLifetime((signals, sources)) { end.wait() }
  }

  private func end(_ reason: End) {
    self.reason.withLock { $0 = $0 ?? reason }
    end.signal()
    // Unfinished work, such as the check of a large store, must not delay the end.
    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Self.patience)) { [browser] in
      browser.clean()
      _exit(ExitStatus.success.rawValue)
    }
  }

  /// How long the end may take, in seconds.
  private static let patience = 5

  // MARK: - Addresses

  /// Makes a token, prints the address, and opens it.
  private func invite(_ port: UInt16) throws {
    let token = try credentials.makeToken()
    let path = "/\(folder)/#\(token)"
    try StandardOutput.write(isSocket ? "\(path)\n" : "http://127.0.0.1:\(port)\(path)\n")
    queue.asyncAfter(deadline: .now() + .seconds(Int(Credentials.tokenLifetime / .seconds(1)))) { [self] in
      browser.clean()
      if credentials.isUnused(token) {
        options.note("the address was not opened within a minute, and is void.\(another)")
      }
    }
    guard opensBrowser else { return explain(port) }
    do {
      try browser.open("http://127.0.0.1:\(port)\(path)") { [self] in
        options.note("no browser has opened.")
        explain(port)
      }
    } catch let failure as Failure {
      options.note("no browser could be opened: \(failure.message)")
      explain(port)
    }
  }

  /// How to get another address.
  private var another: String { isatty(0) == 0 ? "" : " Press Enter for another one." }

  /// Prints how to open the page by hand.
  private func explain(_ port: UInt16) {
    options.note(
      isSocket
        ? "open the address within a minute, behind that of the proxy.\(another)"
        : "open the address within a minute.\(another) On another computer, forward the same port first: "
          + "ssh -L \(port):127.0.0.1:\(port) HOST")
  }

  /// Warns once that a request came for another port, and was refused.
  private func warn(ofPort asked: String, _ port: UInt16) {
    guard warnings.exchange(true, ordering: .relaxed) == false else { return }
    options.note(
      "the page was asked for at \(asked), and is answered only at its own port. Forward that: "
        + "ssh -L \(port):127.0.0.1:\(port) HOST")
  }

  /// Enter asks for another page.
  private func watchTerminal(_ port: UInt16) -> [any DispatchSourceProtocol] {
    guard isatty(0) != 0 else { return [] }
    // A background job gets an error then, instead of being stopped.
    signal(SIGTTIN, SIG_IGN)
    let source = DispatchSource.makeReadSource(fileDescriptor: 0, queue: queue)
    source.setEventHandler {
      var bytes = [UInt8](repeating: 0, count: 256)
      let count = read(0, &bytes, bytes.count)
      guard count > 0 else {
        source.cancel()
        return
      }
      if bytes[..<count].contains(UInt8(ascii: "\n")) { try? self.invite(port) }
    }
    source.resume()
    return [source]
  }

  // MARK: - The end

  /// Called every moment: checks whether the time of the page, or of the vault, is over.
  private func watchLifetime() -> [any DispatchSourceProtocol] {
    let timer = DispatchSource.makeTimerSource(queue: queue)
    timer.schedule(deadline: .now() + .milliseconds(500), repeating: .milliseconds(500))
    timer.setEventHandler { [self] in
      store.vault.check()
      switch lifetime.end {
      case .idle:
        options.note("the page has ended: it was unused for the time of --ttl.")
        end(.idle)
      case .lastTabClosed:
        options.note("the page has ended: its last tab was closed a minute ago.")
        end(.lastTab)
      case nil: return
      }
      timer.cancel()
    }
    timer.resume()
    return [timer]
  }
}
