import Coffer
import CofferCrypto

/// A carrier on an etcd, version 3.4 or later, through the JSON gateway of its members.
///
///     let carrier = try EtcdCarrier(
///       address: "etcds://coffer@etcd-1,etcd-2,etcd-3/fleets/web?ca=/etc/coffer/etcd-ca.pem", password: password)
///
/// The address has the members, with a port unless it is 2379, each used if the previous one fails, and the prefix of the
/// carrier's keys: here `/fleets/web/`. `etcds` means TLS: `ca` is a file with the authorities that members are checked
/// against, by default the system's; `cert` and `key` are those of this client, in PEM. The gateway refuses a client
/// certificate with a common name.
///
/// A user's password is passed separately, kept in locked memory that is wiped, and sent only to get a token.
/// Environment variables are not used, for proxies or anything else.
///
/// etcd streams changes. If the stream breaks, it continues at the next member where it was; if etcd no longer has the
/// changes in between, or was restored from a snapshot, it ends with ``CarrierEvent/readAll``. A restored etcd that has
/// reached the revision of the lost one without a connected client looks the same if its cluster ID is the same: compare
/// everything occasionally.
public final class EtcdCarrier: Carrier {
  /// The address.
  public var description: String { address.text }
  /// The limits of a commit: 128 changes and 1.5 MB, which are etcd's limits, and 1 MiB per object.
  public let limits = CarrierLimits(operationCount: 128, requestByteCount: 1_500_000, objectByteCount: 1 << 20)

  let session: EtcdSession
  /// How long a stream may be silent: etcd reports progress every ten minutes.
  let silenceLimit: Duration
  private var address: EtcdAddress { session.address }

  /// A carrier at this address; it is not contacted yet.
  ///
  /// - Parameter password: The user's, in UTF-8, if the address names one.
  /// - Throws: ``CarrierError/badAddress(_:reason:)``, also if only one of user and password is given.
  public convenience init(address: String, password: SecretBytes? = nil) throws(CarrierError) {
    try self.init(address: address, password: password, silenceLimit: .seconds(900))
  }

  init(address text: String, password: SecretBytes?, silenceLimit: Duration) throws(CarrierError) {
    let address = try EtcdAddress(text)
    guard address.user == nil || password != nil else {
      throw .badAddress(text, reason: "the user's password is missing")
    }
    guard password == nil || address.user != nil else {
      throw .badAddress(text, reason: "there is a password without a user: write etcd://user@host/prefix")
    }
    session = EtcdSession(address: address, password: password)
    self.silenceLimit = silenceLimit
  }

  // MARK: - Reading

  /// Reads all objects, in batches of about a megabyte.
  ///
  /// If etcd's history is compacted meanwhile, it throws ``CarrierError/unreachable(carrier:reason:)``: start over.
  public func readAll(_ body: ([CarrierObject]) throws -> Void) async throws -> CarrierRevision {
    var page = try await page(from: address.prefix, limit: 16, at: nil)
    let revision = page.revision
    while let start = page.next {
      let (pairs, limit) = (page.pairs, page.nextLimit)
      // Fetched while the caller uses this page's objects.
      async let next = self.page(from: start, limit: limit, at: revision)
      try body(try pairs.compactMap { try object($0).object })
      page = try await next
    }
    try body(try page.pairs.compactMap { try object($0).object })
    return revision.text
  }

  /// A range of the carrier's keys, in order.
  private struct Page {
    let pairs: [Value]
    let revision: EtcdRevision
    /// The start of the next page; nil after the last.
    var next: [UInt8]?
    /// The number of keys to request then.
    var nextLimit = 0
  }

  /// - Parameter limit: The number of keys to request; fewer are returned if they are too large together.
  private func page(from start: [UInt8], limit: Int, at revision: EtcdRevision?) async throws -> Page {
    let range = EtcdJSON.range(from: start, toEndOf: address.prefix)
    let request = "{\(range),\"limit\":\"\(limit)\",\"revision\":\"\(revision?.number ?? 0)\"}"
    guard let answer = try await session.ask("/v3/kv/range", request, mayBeTooLong: limit > 1) else {
      return try await page(from: start, limit: max(1, limit / 8), at: revision)
    }
    var page = Page(
      pairs: answer["kvs"].etcdList, revision: try EtcdRevision(header: answer["header"], of: address))
    guard answer["more"].etcdFlag, let last = page.pairs.last else { return page }
    let key = try object(last).key
    guard !key.lexicographicallyPrecedes(start) else {
      throw CarrierError.garbled(carrier: description, reason: "it sent the same keys twice")
    }
    page.next = key + [0]
    // base64 takes four bytes for three.
    let byteCount = page.pairs.reduce(0) {
      $0 + ($1["key"].etcdText.utf8.count + $1["value"].etcdText.utf8.count) * 3 / 4 + 64
    }
    page.nextLimit = min(max(1, (page.pairs.count << 20) / byteCount), limit * 8, 5000)
    return page
  }

  /// Those of the named objects that exist.
  public func read(_ names: [String]) async throws -> [CarrierObject] {
    for name in names { checkName(name) }
    var (rest, count, revision, objects) = (names[...], limits.operationCount, Int64(0), [CarrierObject]())
    while !rest.isEmpty {
      let ranges = rest.prefix(count).map { name in
        "{\"request_range\":{\(EtcdJSON.bytes("key", address.key(of: name))),\"revision\":\"\(revision)\"}}"
      }
      guard
        let answer = try await session.ask(
          "/v3/kv/txn", "{\"success\":[\(ranges.joined(separator: ","))]}", mayBeTooLong: count > 1)
      else {
        count = max(1, count / 8)
        continue
      }
      if revision == 0 { revision = try EtcdRevision(header: answer["header"], of: address).number }
      for response in answer["responses"].etcdList {
        objects += try response["response_range"]["kvs"].etcdList.compactMap { try object($0).object }
      }
      rest = rest.dropFirst(count)
    }
    return objects
  }

  /// The object at a key; nil for a key that is not the carrier's.
  func object(_ pair: Value?) throws(CarrierError) -> (key: [UInt8], object: CarrierObject?) {
    guard let key = pair["key"].etcdBytes, let bytes = pair["value"].etcdBytes, key.starts(with: address.prefix) else {
      throw .garbled(carrier: description, reason: "it sent a key that was not requested, or invalid base64")
    }
    return (key, address.name(of: key).map { CarrierObject(name: $0, bytes: bytes) })
  }

  // MARK: - Writing

  /// Applies all changes, or none, in one transaction of etcd.
  public func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool {
    try check(changes, condition)
    try Task.checkCancellation()
    let key = EtcdJSON.bytes("key", address.key(of: condition.name))
    let target = condition.bytes.map { "\"target\":\"VALUE\",\(EtcdJSON.bytes("value", $0))" }
    let compare = "{\(key),\"result\":\"EQUAL\",\(target ?? "\"target\":\"CREATE\",\"create_revision\":\"0\"")}"
    let ordered = changes.filter { $0.name != condition.name } + changes.filter { $0.name == condition.name }
    let operations = ordered.map(operation).joined(separator: ",")
    let answer = try await session.ask(
      "/v3/kv/txn", "{\"compare\":[\(compare)],\"success\":[\(operations)]}", isRepeatable: false)
    // An answer of etcd has a header.
    _ = try EtcdRevision(header: answer["header"], of: address)
    return answer["succeeded"].etcdFlag
  }

  private func operation(_ change: CarrierChange) -> String {
    let key = EtcdJSON.bytes("key", address.key(of: change.name))
    return switch change {
    case .put(let object): "{\"request_put\":{\(key),\(EtcdJSON.bytes("value", object.bytes))}}"
    case .remove: "{\"request_delete_range\":{\(key)}}"
    }
  }

  // MARK: - Changes

  /// The changes since a revision, an event for each commit.
  public func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error> {
    let watch = EtcdWatch(carrier: self, revision: EtcdRevision(revision))
    return AsyncThrowingStream { try await watch.next() }
  }

  /// The revision of the whole cluster, whichever member answers.
  func currentRevision() async throws -> EtcdRevision {
    let answer = try await session.ask(
      "/v3/kv/range", "{\(EtcdJSON.bytes("key", address.prefix)),\"count_only\":true}")
    return try EtcdRevision(header: answer["header"], of: address)
  }
}

/// A revision of one cluster: `cluster id-revision`.
struct EtcdRevision: Equatable, Sendable {
  let cluster: String
  var number: Int64

  /// - Throws: ``CarrierError/garbled(carrier:reason:)`` if it is not an answer of etcd.
  init(header: Value?, of address: EtcdAddress) throws(CarrierError) {
    (cluster, number) = (header["cluster_id"].etcdText, header["revision"].etcdNumber)
    guard !cluster.isEmpty, number > 0 else {
      throw .garbled(carrier: address.text, reason: "the cluster ID or the revision is missing")
    }
  }

  /// Nil for a revision of another carrier.
  init?(_ revision: CarrierRevision) {
    let parts = revision.text.split(separator: "-")
    guard parts.count == 2, let number = Int64(parts[1]), number > 0 else { return nil }
    (cluster, self.number) = (String(parts[0]), number)
  }

  var text: CarrierRevision { CarrierRevision(text: "\(cluster)-\(number)") }
}
