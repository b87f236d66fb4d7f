import Coffer
import PrefsCommands

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// One client: reads its requests, and answers them one after another.
struct ServedClient {
  private let store: ServedStore
  private let outbox: Outbox
  private let watches: ClientWatches
  private let handler: RequestHandler
  private let input: Int32
  /// The first line.
  private let greeting: String

  /// The version of the protocol.
  private static let version = 1

  init(_ store: ServedStore, input: Int32, output: Int32) throws {
    (self.store, self.input) = (store, input)
    outbox = Outbox(output)
    watches = try ClientWatches(store, outbox)
    handler = try RequestHandler(store, watches)
    let (id, position) = try store.database.makeConnection().read { ($0.session.storeID, try $0.position()) }
    greeting = JSONText.object([
      ("serve", "\(Self.version)"), ("program", JSONText.quoted("prefs \(PrefsTool.version)")),
      ("store", JSONText.quoted(id)),
      ("path", JSONText.quoted(store.database.path)), ("position", JSONText.quoted(position.description)),
      ("maximum", "\(LineReader.limit)"),
    ])
  }

  /// Serves a socket's connection until either end closes, and closes it.
  static func serve(_ store: ServedStore, connection: Int32) {
    defer { close(connection) }
    guard let client = try? ServedClient(store, input: connection, output: connection) else { return }
    try? client.serve()
    // What waits for a client that does not read is dropped.
    shutdown(connection, Int32(SHUT_RDWR))
    client.outbox.close()
  }

  /// Serves until either end closes.
  ///
  /// - Throws: ``Failure`` if the client cannot be read, or cannot be written to, for another reason than that it has closed its end.
  func serve() throws {
    defer { watches.end() }
    try answerAll()
    if let failure = outbox.failure { throw failure }
  }

  private func answerAll() throws {
    guard outbox.answer(greeting) else { return }
    var reader = LineReader(input)
    while let line = try reader.next() {
      guard case .whole(let bytes) = line else {
        let failure = Failure(.usage, "the request has more than \(LineReader.limit) bytes; this ends the connection.")
        _ = outbox.answer(answer("null", ("error", store.json(of: failure))))
        return
      }
      // Nothing is changed for a client that would not learn of it.
      guard !outbox.isClosed, answer(bytes) else { return }
    }
  }

  /// - Returns: Whether the client can still be written to.
  private func answer(_ line: ArraySlice<UInt8>) -> Bool {
    var id = "null"
    do {
      guard let text = String(validating: line, as: UTF8.self) else {
        throw Failure(.usage, "the request is not valid UTF-8.")
      }
      let request = try JSONMembers(text)
      id = try Self.id(of: request)
      let result = try handler.answer(request)
      guard outbox.answer(answer(id, ("ok", result.json))) else { return false }
      result.then()
      return true
    } catch {
      return outbox.answer(answer(id, ("error", store.json(of: error))))
    }
  }

  private func answer(_ id: String, _ member: (name: String, json: String)) -> String {
    JSONText.object([("id", id), member])
  }

  private static func id(of request: JSONMembers) throws -> String {
    switch request["id"] {
    case .int(let number)?: return "\(number)"
    case .uint64(let number)?: return "\(number)"
    case .string(let text)?: return JSONText.quoted(text)
    default: throw Failure(.usage, "\"id\" is missing, or neither an integer nor text.")
    }
  }
}
