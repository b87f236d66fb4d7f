import CofferCrypto
import Synchronization

@testable import CofferFleet

/// A storage at whose requests something can happen: before they are sent, or before the answer is seen.
final class HookedStorage: ConditionalStorage {
  enum Moment { case before, after }
  enum Request: Equatable {
    case get(String)
    case put(String, PutCondition)
    case remove(String)
    case list

    var isRootPut: Bool { if case .put(PackedRoot.key, _) = self { true } else { false } }
    var isPartPut: Bool { if case .put(let key, .none) = self { key != PackedRoot.key } else { false } }
    var isPartGet: Bool { if case .get(let key) = self { key != PackedRoot.key } else { false } }
  }
  typealias Hook = @Sendable (Request, Moment) async throws -> Void

  let storage: any ConditionalStorage
  private let hook = Mutex<Hook?>(nil)

  init(_ storage: any ConditionalStorage) { self.storage = storage }

  var description: String { storage.description }

  func happens(_ body: Hook?) { hook.withLock { $0 = body } }

  private func hooked<Result>(_ request: Request, _ body: () async throws -> Result) async throws -> Result {
    try await hook.withLock(\.self)?(request, .before)
    let result = try await body()
    try await hook.withLock(\.self)?(request, .after)
    return result
  }

  func get(_ key: String, unless tag: String?, limit: Int) async throws -> StorageAnswer<ReadObject> {
    try await hooked(.get(key)) { try await storage.get(key, unless: tag, limit: limit) }
  }
  func get(_ key: String, _ range: Range<Int>) async throws -> [UInt8]? {
    try await hooked(.get(key)) { try await storage.get(key, range) }
  }
  func put(_ key: String, _ bytes: [UInt8], if condition: PutCondition) async throws -> StorageAnswer<PutResult> {
    try await hooked(.put(key, condition)) { try await storage.put(key, bytes, if: condition) }
  }
  func remove(_ key: String) async throws { try await hooked(.remove(key)) { try await storage.remove(key) } }
  func list(_ start: String, _ body: ([ListedObject]) -> Void) async throws {
    try await hooked(.list) { try await storage.list(start, body) }
  }

  /// The keys of all parts.
  func parts() async throws -> Set<String> {
    var keys: Set<String> = []
    try await storage.list(PartID.folder) { keys.formUnion($0.map(\.key)) }
    return keys
  }
}

/// Counts, on any thread.
final class Counter: Sendable {
  private let value = Mutex(0)

  /// The number before.
  func next() -> Int {
    value.withLock { value in
      value += 1
      return value - 1
    }
  }
}
