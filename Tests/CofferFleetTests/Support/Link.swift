import Synchronization

@testable import CofferFleet

/// A host's own way to a carrier, which can be cut.
final class Link: Carrier {
  let carrier: MemoryCarrier
  private let isCut = Mutex(false)

  init(_ carrier: MemoryCarrier) { self.carrier = carrier }

  func cut(_ isCut: Bool) { self.isCut.withLock { $0 = isCut } }

  private func check() throws {
    if isCut.withLock({ $0 }) { throw CarrierError.unreachable(carrier: description, reason: "the link is cut") }
  }

  var description: String { carrier.description }
  var limits: CarrierLimits { carrier.limits }

  func readAll(_ body: ([CarrierObject]) throws -> Void) async throws -> CarrierRevision {
    try check()
    return try await carrier.readAll(body)
  }

  func read(_ names: [String]) async throws -> [CarrierObject] {
    try check()
    return try await carrier.read(names)
  }

  func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool {
    try check()
    return try await carrier.commit(changes, if: condition)
  }

  func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error> {
    do {
      try check()
      return carrier.changes(after: revision)
    } catch {
      return AsyncThrowingStream { $0.finish(throwing: error) }
    }
  }
}
