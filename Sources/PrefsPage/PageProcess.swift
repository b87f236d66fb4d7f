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
  private let store: PageStore
  private let server: PageServer
  private let isSocket: Bool
  private let opensBrowser: Bool
  private let options: SessionOptions
  private let credentials = Credentials()
  private let lifetime: PageLifetime
  private let events: EventStream
  private let vaultClock: VaultClock
  private let browser: BrowserOpener
  private let folder: String
  private let end = DispatchSemaphore(value: 0)
  private let failure = Mutex<Failure?>(nil)
  private let queue = DispatchQueue(label: "prefs-ui.process")

  init(
    store: PageStore, place: PageServer.Place, idleLimit: Duration, opensBrowser: Bool, talking options: SessionOptions
  ) throws {
    self.store = store
    self.opensBrowser = opensBrowser
    self.options = options
    server = try PageServer(place)
    if case .socket = place { isSocket = true } else { isSocket = false }
    lifetime = PageLifetime(idleLimit: idleLimit)
    events = EventStream(lifetime)
    vaultClock = VaultClock(store, events, time: idleLimit)
    browser = BrowserOpener(besides: store.database.path)
    folder = try RandomText.make(byteCount: 16)
  }

  /// Serves until the end.
  ///
  /// - Throws: ``Failure`` where it cannot listen, or serving broke off.
  func run() throws {
    // A browser that goes away in the middle of an answer is no reason to end.
    signal(SIGPIPE, SIG_IGN)
    let port = try waiting { try await self.server.start { self.fail($0) } }
    let gate = RequestGate(place: isSocket ? .socket : .loopback(port: port), folder: folder)
    let handler = PageHandler(
      gate: gate, credentials: credentials, store: store, events: events, lifetime: lifetime, vaultClock: vaultClock,
      didOpen: { [browser] in browser.clean() })
    try waiting { await self.server.serve(handler) }
    let registration = try store.follow { [events] commit in events.send("commit", commit) }
    defer {
      registration.cancel()
      browser.clean()
      events.close()
      // What is still on its way to a page that does not read it ends with the process.
      try? waiting(atMost: 2) { await self.server.stop() }
    }
    let sources = watchEnd() + watchTerminal(port)
    try invite(port)
    options.note("press Ctrl-C to end the page; it also ends a minute after its last tab is closed.")
    withExtendedLifetime(sources) { end.wait() }
    if let failure = failure.withLock({ $0 }) { throw failure }
  }

  private func fail(_ error: any Error) {
    failure.withLock { $0 = $0 ?? Failure(.inputOutput, "the page is no longer served: \(error).") }
    end.signal()
  }

  /// Runs `body` to its end; for the main thread alone.
  ///
  /// - Parameter seconds: How long it is waited for; nil for as long as it takes.
  private func waiting<R: Sendable>(
    atMost seconds: Int? = nil, _ body: @escaping @Sendable () async throws -> R
  ) throws -> R {
    let done = DispatchSemaphore(value: 0)
    let result = Mutex<Result<R, any Error>?>(nil)
    Task {
      let outcome: Result<R, any Error>
      do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
      result.withLock { $0 = outcome }
      done.signal()
    }
    _ = done.wait(timeout: seconds.map { .now() + .seconds($0) } ?? .distantFuture)
    guard let outcome = result.withLock({ $0 }) else { throw Failure(.other, "the page did not answer in time.") }
    return try outcome.get()
  }

  // MARK: - The way in

  /// Makes a token, prints the address, and opens it.
  private func invite(_ port: UInt16) throws {
    let token = try credentials.makeToken()
    let path = "/\(folder)/#\(token)"
    try StandardOutput.write(isSocket ? "\(path)\n" : "http://127.0.0.1:\(port)\(path)\n")
    guard opensBrowser else { return }
    do {
      try browser.open("http://127.0.0.1:\(port)\(path)")
    } catch let failure as Failure {
      options.note("no browser could be opened: \(failure.message) Open the address by hand.")
    }
    queue.asyncAfter(deadline: .now() + .seconds(Int(Credentials.tokenLifetime / .seconds(1)))) { [browser] in
      browser.clean()
    }
  }

  /// Enter asks for another page.
  private func watchTerminal(_ port: UInt16) -> [any DispatchSourceProtocol] {
    guard isatty(0) != 0 else { return [] }
    // A job in the background gets an error then, and is not stopped.
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

  private func watchEnd() -> [any DispatchSourceProtocol] {
    let signals = [SIGINT, SIGTERM, SIGHUP].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { self.end.signal() }
      source.resume()
      return source as any DispatchSourceProtocol
    }
    let timer = DispatchSource.makeTimerSource(queue: queue)
    timer.schedule(deadline: .now() + 1, repeating: 1)
    timer.setEventHandler { [lifetime, options, end] in
      guard let reason = lifetime.end else { return }
      options.note(
        reason == .idle
          ? "the page has ended: it was unused for the time of --ttl."
          : "the page has ended: its last tab was closed a minute ago.")
      end.signal()
    }
    timer.resume()
    return signals + [timer]
  }
}
