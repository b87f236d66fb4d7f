import Coffer

/// The stream of an etcd's changes, over as many connections as necessary.
actor EtcdWatch {
  private let carrier: EtcdCarrier
  private var session: EtcdSession { carrier.session }
  /// The revision up to which everything is known; nil at the end.
  private var revision: EtcdRevision?
  private var connection: Connection?
  private var events: ArraySlice<CarrierEvent> = []
  /// The commit whose changes are arriving.
  private var commit = (number: Int64(0), changes: [CarrierChange]())
  /// The number of consecutive connections that failed or did not last.
  private var failureCount = 0

  private struct Connection {
    let transfer: HTTPTransfer
    let endpoint: Int
    /// When the stream was established; nil before.
    var creation: ContinuousClock.Instant?
    var rest: [UInt8] = []
  }

  private static let creationLimit = Duration.seconds(10)
  /// etcd sends fragments of about 1.5 MiB, which is more in base64.
  private static let lineLimit = 32 << 20

  init(carrier: EtcdCarrier, revision: EtcdRevision?) {
    (self.carrier, self.revision) = (carrier, revision)
    // Not a revision of etcd's.
    if revision == nil { events = [.readAll] }
  }

  deinit { connection?.transfer.cancel() }

  /// The next event; nil at the end.
  func next() async throws -> CarrierEvent? {
    while true {
      if let event = events.popFirst() { return event }
      guard revision != nil else { return nil }
      do {
        try await listen()
      } catch is CancellationError {
        disconnect()
        return nil
      } catch let error as CarrierError {
        try await recover(from: error)
        if Task.isCancelled { return nil }
      }
    }
  }

  /// Waits a little, and then tries the next endpoint.
  ///
  /// - Throws: An error that affects all endpoints, and will not go away.
  private func recover(from error: CarrierError) async throws {
    if let connection {
      await session.giveUp(on: connection.endpoint)
      // A connection that breaks after a good while is no sign of trouble.
      if let creation = connection.creation, creation.duration(to: .now) > Self.creationLimit { failureCount = 0 }
    }
    disconnect()
    failureCount += 1
    switch error {
    case .unreachable: break
    default:
      guard failureCount < 2 * session.address.endpoints.count else {
        revision = nil
        throw error
      }
    }
    // All endpoints at once, then ever less often, and at random times, to spare the server.
    let round = failureCount / session.address.endpoints.count
    guard round > 0 else { return }
    if failureCount == session.address.endpoints.count { events.append(.interrupted) }
    let seconds = min(0.1 * Double(1 << min(round, 6)), 5)
    try? await Task.sleep(for: .seconds(seconds * Double.random(in: 0.5...1)))
  }

  private func disconnect() {
    connection?.transfer.cancel()
    connection = nil
    commit = (0, [])
  }

  // MARK: - Connections

  /// Reads the next lines from the stream, after starting it if necessary.
  private func listen() async throws {
    guard let revision else { return }
    if connection == nil {
      let range = EtcdJSON.range(from: session.address.prefix, toEndOf: session.address.prefix)
      let (transfer, endpoint) = try await session.stream(
        "/v3/watch",
        "{\"create_request\":{\(range),\"start_revision\":\"\(revision.number &+ 1)\",\"progress_notify\":true,\"fragment\":true}}"
      )
      connection = Connection(transfer: transfer, endpoint: endpoint)
    }
    guard let connection else { return }
    do {
      let limit = connection.creation != nil ? carrier.silenceLimit : Self.creationLimit
      guard let bytes = try await connection.transfer.next(within: limit) else {
        // An error has no line end.
        if !connection.rest.isEmpty { try await take(line: connection.rest) }
        let status = connection.transfer.status
        guard status == 200 else { throw garbled("it answered with the status \(status) alone") }
        throw CarrierError.unreachable(carrier: carrier.description, reason: "it ended the stream of changes")
      }
      try await take(bytes)
    } catch let failure as HTTPFailure {
      throw try session.carrierError(failure, of: connection.endpoint)
    }
  }

  private func take(_ bytes: [UInt8]) async throws {
    guard var rest = connection?.rest else { return }
    connection?.rest = []
    // Only the new part can have a line end.
    var searchStart = rest.count
    rest += bytes
    var lineStart = 0
    while let end = rest[searchStart...].firstIndex(of: UInt8(ascii: "\n")) {
      if end > lineStart { try await take(line: Array(rest[lineStart..<end])) }
      guard connection != nil else { return }
      (lineStart, searchStart) = (end + 1, end + 1)
    }
    guard rest.count - lineStart <= Self.lineLimit else { throw HTTPFailure.tooLong }
    connection?.rest = Array(rest[lineStart...])
  }

  // MARK: - Lines

  private func take(line: [UInt8]) async throws {
    guard let value = EtcdJSON.value(line) else { throw garbled("a line is not JSON") }
    guard let result = value["result"] else { return try await fail(try streamError(value)) }
    if result["canceled"].etcdFlag {
      guard result["compact_revision"].etcdNumber == 0 else { return end() }
      return try await fail(EtcdAnswer(text: result["cancel_reason"].etcdText, code: 0))
    }
    let header = try EtcdRevision(header: result["header"], of: session.address)
    if result["created"].etcdFlag { return try await begin(at: header) }
    guard connection?.creation != nil else { throw garbled("it sent changes before the stream began") }
    let told = result["events"].etcdList
    if told.isEmpty {
      // Nothing happened up to here, so compacting earlier revisions loses nothing if the connection breaks.
      revision?.number = max(revision?.number ?? 0, header.number)
    } else {
      try take(told, isFragment: result["fragment"].etcdFlag)
    }
  }

  /// The stream is created, and continues if it is from the etcd that returned the revision.
  private func begin(at header: EtcdRevision) async throws {
    guard let revision else { return }
    connection?.creation = .now
    guard header.cluster == revision.cluster else { return end() }
    // A member may be behind the others. All together are not, unless they were restored from a snapshot: then the stream
    // would wait in silence until the revision is reached again.
    if header.number < revision.number, try await carrier.currentRevision().number < revision.number { end() }
  }

  /// Collects changes; those of one commit have one revision.
  ///
  /// - Parameter isFragment: Whether the next line continues the last commit.
  private func take(_ told: [Value], isFragment: Bool) throws {
    for event in told {
      let pair = event["kv"]
      let number = pair["mod_revision"].etcdNumber
      let (_, object) = try carrier.object(pair)
      guard number >= commit.number else { throw garbled("its changes are out of order") }
      if number > commit.number {
        finishCommit()
        commit.number = number
      }
      guard let object else { continue }
      commit.changes.append(event["type"].etcdText == "DELETE" ? .remove(name: object.name) : .put(object))
    }
    if !isFragment { finishCommit() }
  }

  private func finishCommit() {
    defer { commit.changes = [] }
    guard var known = revision, commit.number > known.number else { return }
    known.number = commit.number
    revision = known
    if !commit.changes.isEmpty { events.append(.changed(commit.changes, known.text)) }
  }

  /// Everything must be read again.
  private func end() {
    disconnect()
    revision = nil
    events.append(.readAll)
  }

  private func fail(_ answer: EtcdAnswer) async throws {
    if answer.isTokenRefused { await session.forgetToken() }
    throw session.carrierError(answer)
  }

  private func streamError(_ value: Value) throws(CarrierError) -> EtcdAnswer {
    guard let error = value["error"] else { throw garbled("a line is neither a result nor an error") }
    // In a stream, the gateway wraps it in an object.
    guard case .dictionary = error else { return EtcdAnswer(value) }
    return EtcdAnswer(text: error["message"].etcdText, code: error["grpc_code"].etcdNumber)
  }

  private func garbled(_ reason: String) -> CarrierError { .garbled(carrier: carrier.description, reason: reason) }
}
