/// What a ``PackedCarrier`` is made of: a storage of whole objects, each replaced on the condition that it is still the one that was read.
///
/// All methods throw ``CarrierError`` and `CancellationError`. A failure that may pass is ``CarrierError/unreachable(carrier:reason:)``.
protocol ConditionalStorage: Sendable {
  /// Its name in messages: its address.
  var description: String { get }

  /// Reads an object.
  ///
  /// - Parameters:
  ///   - tag: That of the version that is known, which is not sent again.
  ///   - limit: The maximum size; more is refused.
  func get(_ key: String, unless tag: String?, limit: Int) async throws -> StorageAnswer<ReadObject>

  /// Reads a part of an object; nil if there is no such object.
  func get(_ key: String, _ range: Range<Int>) async throws -> [UInt8]?

  /// Creates or replaces an object.
  ///
  /// If it throws ``CarrierError/unreachable(carrier:reason:)``, the object may have been written, or may still be.
  func put(_ key: String, _ bytes: [UInt8], if condition: PutCondition) async throws -> StorageAnswer<PutResult>

  /// Removes an object, if it exists.
  func remove(_ key: String) async throws

  /// All objects whose keys begin with this, in parts.
  func list(_ start: String, _ body: ([ListedObject]) -> Void) async throws
}

struct StorageAnswer<Content: Sendable>: Sendable {
  let content: Content
  /// The time by the storage's clock, in seconds since 1970.
  let date: Int64
}

enum ReadObject: Sendable {
  case absent
  /// It has the tag that is known.
  case unchanged
  /// - Parameter tag: Identifies these contents.
  case present([UInt8], tag: String)
}

enum PutCondition: Sendable, Equatable {
  case none
  case absent
  case unchanged(tag: String)
}

enum PutResult: Sendable, Equatable {
  case stored(tag: String)
  /// The condition does not hold, or another writer was at it at the same time.
  case refused
}

struct ListedObject: Sendable {
  let key: String
  /// When it was written, in seconds since 1970.
  let date: Int64
}
