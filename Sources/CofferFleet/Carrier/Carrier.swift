/// The storage between the hosts of a fleet: it stores objects by name, and changes several atomically on the condition that
/// one of them, the head, is the one that the writer has seen.
///
/// A carrier is not trusted: its objects are sealed, and its answers verified by holders of the keys. It can withhold data,
/// and fail.
///
/// Names consist of `a-z`, `0-9`, `-`, `.` and `/`, where `/` begins a folder; no name begins with `.` or `/`, or is longer
/// than 200 characters.
public protocol Carrier: Sendable {
  /// Its name in messages: its address, without a password.
  var description: String { get }
  /// The limits of one request.
  var limits: CarrierLimits { get }

  /// Reads all objects, in batches, as of one revision.
  ///
  /// - Parameter body: Called with the next objects, in any order, each once. An error that it throws ends the read and is
  ///   rethrown.
  /// - Returns: The revision, from which ``changes(after:)`` continues.
  /// - Throws: ``CarrierError``, `CancellationError`.
  func readAll(_ body: (_ objects: [CarrierObject]) throws -> Void) async throws -> CarrierRevision

  /// Those of the named objects that exist, as of one revision.
  ///
  /// - Throws: ``CarrierError``, `CancellationError`.
  func read(_ names: [String]) async throws -> [CarrierObject]

  /// Applies all changes, or none.
  ///
  /// A reader that sees one of them sees all, and sees `condition.name` change last.
  ///
  /// - Parameters:
  ///   - changes: At most ``CarrierLimits/operationCount``, each name once; none to learn whether the condition holds.
  ///   - condition: Must hold, or nothing is changed.
  /// - Returns: Whether the condition held, and the changes were applied. If the answer is lost, an error is thrown and both
  ///   are possible: read the object of the condition to find out.
  /// - Throws: ``CarrierError``, `CancellationError`.
  func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool

  /// The changes since a revision, in order, until the iterating task is cancelled.
  ///
  /// The stream reconnects by itself if a connection is lost, and throws if that is pointless, for example because of a
  /// rejected password.
  func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error>
}

/// An object of a carrier.
public struct CarrierObject: Hashable, Sendable {
  /// Its name on the carrier.
  public var name: String
  /// Its contents, usually sealed.
  public var bytes: [UInt8]

  /// An object with this name.
  public init(name: String, bytes: [UInt8]) { (self.name, self.bytes) = (name, bytes) }
}

/// A change of an object.
public enum CarrierChange: Hashable, Sendable {
  /// It is created or replaced with these bytes.
  case put(CarrierObject)
  /// It is removed.
  case remove(name: String)

  /// The object's name.
  public var name: String {
    switch self {
    case .put(let object): object.name
    case .remove(let name): name
    }
  }
}

/// An object has exactly these bytes; with nil, it is absent.
public struct CarrierCondition: Hashable, Sendable {
  /// The object's name.
  public var name: String
  /// The required bytes; nil if it must be absent.
  public var bytes: [UInt8]?

  /// A condition on the object with this name.
  public init(name: String, bytes: [UInt8]?) { (self.name, self.bytes) = (name, bytes) }
}

/// A state in a carrier's history.
///
/// The text is opaque. Revisions can go back, if a carrier is restored from a backup.
public struct CarrierRevision: Hashable, Sendable {
  /// The carrier's name for the state.
  public var text: String

  /// A revision returned by a carrier before.
  public init(text: String) { self.text = text }
}

/// An event in a carrier's stream of changes.
public enum CarrierEvent: Hashable, Sendable {
  /// These objects changed, as of a revision, each name once and in no particular order. The changes of one commit are in
  /// one event, which may include several commits.
  case changed([CarrierChange], CarrierRevision)
  /// The changes are no longer known: everything must be read again. The stream ends.
  case readAll
  /// The connection is lost, and could not be restored at once. The stream continues when it is, and misses nothing.
  case interrupted
}

/// The limits of one request to a carrier.
public struct CarrierLimits: Hashable, Sendable {
  /// The maximum number of changes in a commit.
  public var operationCount: Int
  /// The maximum total size of the names and objects of a commit, in bytes.
  public var requestByteCount: Int
  /// The maximum size of an object, in bytes.
  public var objectByteCount: Int

  /// The limits of a carrier.
  public init(operationCount: Int, requestByteCount: Int, objectByteCount: Int) {
    (self.operationCount, self.requestByteCount, self.objectByteCount) = (
      operationCount, requestByteCount, objectByteCount
    )
  }
}

/// Why a request to a carrier failed.
public enum CarrierError: Error, Hashable, Sendable {
  /// It cannot be reached; a later retry may succeed.
  case unreachable(carrier: String, reason: String)
  /// It denies access to this client: the user, the password or a certificate is refused.
  case refused(carrier: String, reason: String)
  /// It has no room for what was sent; nothing was written, and reading works.
  case full(carrier: String, reason: String)
  /// It is a folder that a tool copies between hosts, which this was found by; nothing was written.
  case copied(carrier: String, tool: String, sign: String)
  /// The address, or an option of it, is wrong.
  case badAddress(String, reason: String)
  /// An object, or without a name a whole commit, has more bytes than the carrier accepts; nothing was sent.
  case tooLarge(name: String?, byteCount: Int, limit: Int)
  /// A commit has more changes than the carrier accepts; nothing was sent.
  case tooManyChanges(count: Int, limit: Int)
  /// Its answer is invalid.
  case garbled(carrier: String, reason: String)
}
