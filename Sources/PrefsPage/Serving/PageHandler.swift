import Coffer
import PrefsCommands

/// Answers the requests of the page.
struct PageHandler: Sendable {
  let gate: RequestGate
  let credentials: Credentials
  let store: PageStore
  let events: EventStream
  let lifetime: PageLifetime
  /// Called when a token was traded: the file that led to the page can be removed.
  let didOpen: @Sendable () -> Void
  /// Called with the host of a request for another port.
  var atOtherPort: @Sendable (_ host: String) -> Void = { _ in }

  /// The maximum size of a request.
  static let bodyLimit = 8 << 20
  private static let tokenRequestLimit = 1 << 10
  private static let sessionHeader = "x-coffer-session"
  /// The header of requests that the page makes by itself: they do not keep it alive.
  private static let automaticHeader = "x-coffer-automatic"

  func answer(_ request: HTTPHead, _ body: (_ limit: Int) throws -> [UInt8]) -> HTTPAnswer {
    let head = RequestGate.Head(
      method: request.method, path: request.path, host: request["host"], origin: request["origin"],
      fetchSite: request["sec-fetch-site"], fetchMode: request["sec-fetch-mode"],
      fetchDestination: request["sec-fetch-dest"], contentType: request["content-type"],
      session: request[Self.sessionHeader])
    guard let passed = gate.passed(head, isSession: { credentials.channel(named: $0) != nil }) else {
      if let host = gate.otherPort(head) { atOtherPort(host) }
      return Self.refused
    }
    switch passed {
    case .file(let path):
      guard let file = PageFiles.file(path) else { return Self.refused }
      return Self.answer(200, file.type, .bytes(file.bytes))
    case .session:
      return (try? session(SealedChannel.Request(try body(Self.tokenRequestLimit)))) ?? Self.refused
    case .call(let name):
      guard let channel = head.session.flatMap(credentials.channel(named:)) else { return Self.refused }
      do {
        let sealed = SealedChannel.Request(try body(Self.bodyLimit))
        return try answer(name, sealed, channel, isAutomatic: request[Self.automaticHeader] != nil)
      } catch is PageConnection.TooLarge {
        var answer = Self.answer(413, nil, .bytes([]))
        answer.closes = true
        return answer
      } catch {
        // The request was not sealed by the page.
        return Self.refused
      }
    }
  }

  // MARK: - Calls

  private func session(_ request: SealedChannel.Request) throws -> HTTPAnswer {
    guard let session = try credentials.session(for: request) else { return Self.refused }
    lifetime.use()
    lifetime.loadTab()
    didOpen()
    let text = JSONText.object([
      ("session", JSONText.quoted(session.name)), ("key", JSONText.quoted(session.key)), ("about", store.about()),
      ("idleSeconds", "\(Int(lifetime.idleLimit / .seconds(1)))"),
    ])
    return try sealed(200, text, "session", request, session.tokenChannel)
  }

  /// - Throws: If the request is not sealed by the page.
  private func answer(
    _ name: String, _ request: SealedChannel.Request, _ channel: SealedChannel, isAutomatic: Bool
  ) throws -> HTTPAnswer {
    let outcome = try channel.open(request, for: "request \(name)") { body in
      if !isAutomatic { lifetime.use() }
      return Result { try call(name, body) }
    }
    switch outcome {
    case .success(nil): return try follow(request, channel)
    case .success(let text?): return try sealed(200, text, name, request, channel)
    case .failure(let error):
      let (status, text) = Self.failure(error)
      return try sealed(status, text, name, request, channel)
    }
  }

  private func sealed(
    _ status: Int, _ text: String, _ name: String, _ request: SealedChannel.Request, _ channel: SealedChannel
  ) throws -> HTTPAnswer {
    let outcome = status == 200 ? "answer" : "failure"
    return Self.answer(
      status, "application/octet-stream",
      .bytes(try channel.seal(text, for: "\(outcome) \(name)", answering: request)))
  }

  /// - Returns: nil for the events, which are not text.
  private func call(_ name: String, _ body: UnsafeRawBufferPointer) throws -> String? {
    switch name {
    case "events": return nil
    case "unlock":
      // The body is only the passphrase: it goes to memory that is wiped, and never into a String.
      try store.vault.unlock(SecretBytes(copying: body))
      return "{}"
    default: return try call(name, PageRequest(String(decoding: body, as: UTF8.self)))
    }
  }

  private func call(_ name: String, _ request: PageRequest) throws -> String {
    switch name {
    case "list": return try store.list(request)
    case "setting": return try store.setting(request)
    case "reveal": return try store.reveal(request)
    case "history": return try store.history(request)
    case "change": return try store.change(request)
    case "rename": return try store.rename(request)
    case "undo": return try store.undo(request)
    case "import": return try store.previewImport(request)
    case "moment": return try store.previewMoment(request)
    case "copy": return try store.previewCopy(request)
    case "fleets": return try store.fleets(request)
    case "resolve": return try store.resolve(request)
    case "apply": return try store.apply(request)
    case "timeline": return try store.timeline(request)
    case "view": return try store.keepView(request)
    case "keepHistory": return try store.keepHistory(request)
    case "export": return try store.export(request)
    case "doctor": return try store.examination()
    // The user is typing.
    case "use": return "{}"
    case "lock":
      store.vault.lock()
      return "{}"
    default: throw Failure(.usage, "unknown request.")
    }
  }

  /// The events from now on, each after its length, and bound to its position.
  private func follow(_ request: SealedChannel.Request, _ channel: SealedChannel) throws -> HTTPAnswer {
    guard let (page, queue) = events.subscribe() else {
      return try sealed(429, Self.error("busy", "Too many pages."), "events", request, channel)
    }
    var count = 0
    let next = { () -> [UInt8]? in
      guard let event = queue.next(),
        let bytes = try? channel.seal("\(event.name)\n\(event.json)", for: "event \(count)", answering: request)
      else { return nil }
      count += 1
      return withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { Array($0) } + bytes
    }
    return Self.answer(200, "application/octet-stream", .pieces(next: next, end: { events.close(page) }))
  }

  // MARK: - Answers

  /// The same for every reason, to reveal nothing.
  private static var refused: HTTPAnswer {
    var answer = answer(403, nil, .bytes([]))
    answer.closes = true
    return answer
  }

  private static func error(_ status: String, _ message: String, _ others: [(name: String, json: String)] = [])
    -> String
  {
    JSONText.object([("error", JSONText.quoted(status)), ("message", JSONText.quoted(message))] + others)
  }

  private static func failure(_ error: any Error) -> (status: Int, text: String) {
    switch error {
    case let conflict as ChangeConflict:
      return (
        409,
        self.error(
          "conflict", "It was changed elsewhere in the meantime; nothing was changed.",
          [("settings", JSONText.array(conflict.settings))])
      )
    case CofferError.vaultLocked(let collection):
      return (
        423,
        self.error("vaultLocked", "The vault is locked.", [("collection", collection.map(JSONText.quoted) ?? "null")])
      )
    case CofferError.storeNotFound(let path):
      return (
        422,
        self.error(
          "\(ExitStatus.storeNotFound)",
          "The store at \(path) is gone: its file was removed or moved. Nothing was saved; what you typed is still here."
        )
      )
    case let failure as Failure:
      return (422, self.error("\(failure.status)", failure.message))
    case CofferError.invalidValue(let collection, let key, let reason):
      return (
        422,
        self.error(
          "format", "\(KeyText.of(key, in: collection)) must be \(reason). Nothing was changed.",
          [
            ("collection", JSONText.quoted(collection)), ("key", JSONText.quoted(key)),
            ("reason", JSONText.quoted(reason)),
          ]
        )
      )
    case CofferError.undeclaredSetting(let collection, let key, let reason):
      return (
        422,
        self.error(
          "format",
          "\(KeyText.of(key, in: collection)) is \(reason) Nothing was changed; `prefs ui --undeclared` permits it.",
          [("collection", JSONText.quoted(collection)), ("key", JSONText.quoted(key))])
      )
    case let error as CofferError:
      return (422, self.error("\(error.exitStatus)", error.description))
    default:
      return (500, self.error("other", "\(error)"))
    }
  }

  private static let policy = """
    default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'
    """

  private static let headers = [
    ("Content-Security-Policy", policy), ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"), ("Cache-Control", "no-store"), ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  private static func answer(_ status: Int, _ type: String?, _ body: HTTPAnswer.Body) -> HTTPAnswer {
    HTTPAnswer(status: status, headers: headers + (type.map { [("Content-Type", $0)] } ?? []), body: body)
  }
}
