import CofferCrypto
import Synchronization

@testable import CofferFleet

/// A carrier in this process that can be made to misbehave: what is kept can be changed, cut off, put back to an earlier state,
/// and shown to some clients only.
final class MemoryCarrier: Carrier {
  let description: String
  let limits: CarrierLimits
  private let state = Mutex(State())

  struct State {
    var objects: [String: [UInt8]] = [:]
    var revision = 0
    var log: [(revision: Int, changes: [CarrierChange])] = []
    var listeners: [Int: AsyncThrowingStream<CarrierEvent, any Error>.Continuation] = [:]
    var lastListener = 0
    var isCut = false
    /// Everything that was ever sent.
    var sent: [UInt8] = []
    /// Decides which commits fail: before they are applied, or afterwards.
    var failure: (@Sendable ([CarrierChange]) -> Failure?)?
    var requestCount = 0
    var isFull = false
  }

  enum Failure { case before, after }

  init(
    _ description: String = "memory:team",
    limits: CarrierLimits = CarrierLimits(operationCount: 128, requestByteCount: 1 << 20, objectByteCount: 1 << 20)
  ) {
    (self.description, self.limits) = (description, limits)
  }

  // MARK: What tests do to it

  var objects: [String: [UInt8]] {
    get { state.withLock { $0.objects } }
    set { putBack(newValue) }
  }

  var sent: [UInt8] { state.withLock { $0.sent } }
  var requestCount: Int { state.withLock { $0.requestCount } }

  func cut(_ isCut: Bool) { state.withLock { $0.isCut = isCut } }

  /// Takes nothing more, or takes it again.
  func fill(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

  func fail(_ failure: (@Sendable ([CarrierChange]) -> Failure?)?) { state.withLock { $0.failure = failure } }

  /// Forgets what changed, as after a compaction.
  func compact() { state.withLock { $0.log = [] } }

  /// Drops the changes, and tells all listeners to read everything.
  func forget() {
    let listeners = state.withLock { state in
      state.log = []
      defer { state.listeners = [:] }
      return state.listeners.values
    }
    for listener in listeners {
      listener.yield(.readAll)
      listener.finish()
    }
  }

  /// Tells all listeners that the connection is lost.
  func interrupt() { for listener in state.withLock({ $0.listeners.values }) { listener.yield(.interrupted) } }

  /// Resets everything to `objects`, as restoring a backup does; the changes are then unknown.
  func putBack(_ objects: [String: [UInt8]]) {
    state.withLock { state in
      state.objects = objects
      state.revision += 1
      state.log = []
    }
  }

  // MARK: Carrier

  private func unreachable() -> CarrierError { .unreachable(carrier: description, reason: "it was cut off") }

  func readAll(_ body: ([CarrierObject]) throws -> Void) async throws -> CarrierRevision {
    let (objects, revision) = try state.withLock { state in
      guard !state.isCut else { throw unreachable() }
      return (state.objects, state.revision)
    }
    try body(objects.map { CarrierObject(name: $0.key, bytes: $0.value) })
    return CarrierRevision(text: "\(revision)")
  }

  func read(_ names: [String]) async throws -> [CarrierObject] {
    try state.withLock { state in
      guard !state.isCut else { throw unreachable() }
      return names.compactMap { name in state.objects[name].map { CarrierObject(name: name, bytes: $0) } }
    }
  }

  func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool {
    try state.withLock { state in
      guard !state.isCut else { throw unreachable() }
      state.requestCount += 1
      if state.isFull { throw CarrierError.full(carrier: description, reason: "No space left on device") }
      let failure = state.failure?(changes)
      if failure == .before { throw unreachable() }
      let byteCount = changes.reduce(0) { sum, change in
        guard case .put(let object) = change else { return sum + change.name.utf8.count }
        return sum + object.name.utf8.count + object.bytes.count
      }
      precondition(changes.count <= limits.operationCount && byteCount <= limits.requestByteCount, "too much")
      precondition(Set(changes.map(\.name)).count == changes.count, "a name is in it twice")
      guard state.objects[condition.name] == condition.bytes else { return false }
      for change in changes {
        switch change {
        case .put(let object):
          precondition(object.bytes.count <= limits.objectByteCount, "too large")
          state.objects[object.name] = object.bytes
          state.sent += Array(object.name.utf8) + object.bytes
        case .remove(let name): state.objects[name] = nil
        }
      }
      state.revision += 1
      state.log.append((state.revision, changes))
      for listener in state.listeners.values {
        listener.yield(.changed(changes, CarrierRevision(text: "\(state.revision)")))
      }
      if failure == .after { throw unreachable() }
      return true
    }
  }

  func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error> {
    AsyncThrowingStream { continuation in
      state.withLock { state in
        let start = Int(revision.text) ?? 0
        let missed = state.log.filter { $0.revision > start }
        guard start == state.revision || missed.first?.revision == start + 1 else {
          continuation.yield(.readAll)
          return continuation.finish()
        }
        for entry in missed { continuation.yield(.changed(entry.changes, CarrierRevision(text: "\(entry.revision)"))) }
        state.lastListener += 1
        let number = state.lastListener
        state.listeners[number] = continuation
        continuation.onTermination = { [weak self] _ in
          // Outside of the lock, which a cancelled `yield` may hold.
          Task { self?.state.withLock { _ = $0.listeners.removeValue(forKey: number) } }
        }
      }
    }
  }
}
