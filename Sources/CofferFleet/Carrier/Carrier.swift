/// What lies between the hosts of a fleet: it keeps objects by name, and changes several at once on the condition that one of
/// them, the head, is what the writer has seen.
///
/// A carrier is not trusted: what it keeps is sealed, and its answers are verified by those who hold the keys. It can withhold,
/// and say that it fails.
///
/// Names consist of `a-z`, `0-9`, `-`, `.` and `/`, where `/` begins a folder; none begins with `.` or `/`, and none is longer
/// than 200 characters.
public protocol Carrier: Sendable {
  /// What messages call it: its address, without a password.
  var description: String { get }
  /// What one request may hold.
  var limits: CarrierLimits { get }

  /// Hands over all objects, in pieces, as they were at one revision.
  ///
  /// - Parameter body: Gets the next objects, in any order, each once. What it throws ends the reading and is thrown.
  /// - Returns: The revision, from which ``changes(after:)`` goes on.
  /// - Throws: ``CarrierError``, `CancellationError`.
  func readAll(_ body: (_ objects: [CarrierObject]) throws -> Void) async throws -> CarrierRevision

  /// The objects of these names that there are, as of one revision.
  ///
  /// - Throws: ``CarrierError``, `CancellationError`.
  func read(_ names: [String]) async throws -> [CarrierObject]

  /// Makes all changes, or none.
  ///
  /// A reader that sees one of them sees all, and sees `condition.name` change last.
  ///
  /// - Parameters:
  ///   - changes: At most ``CarrierLimits/operationCount``, each name once.
  ///   - condition: What must be so, else nothing is changed.
  /// - Returns: Whether the condition was met, and the changes are made. Where the answer is lost, an error is thrown and both are
  ///   possible: read the object of the condition to know.
  /// - Throws: ``CarrierError``, `CancellationError`.
  func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool

  /// What changes from a revision on, in its order, until the task that iterates is cancelled.
  ///
  /// The stream goes on by itself when a connection is lost and made again, and throws where that has no prospect: a password that is
  /// refused, for instance.
  func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error>
}

/// An object of a carrier.
public struct CarrierObject: Hashable, Sendable {
  /// What it is called on the carrier.
  public var name: String
  /// What is kept: as a rule, sealed.
  public var bytes: [UInt8]

  /// An object of this name.
  public init(name: String, bytes: [UInt8]) { (self.name, self.bytes) = (name, bytes) }
}

/// What becomes of an object.
public enum CarrierChange: Hashable, Sendable {
  /// It is there with these bytes, whether it was there before or not.
  case put(CarrierObject)
  /// It is not there any more.
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
  /// What it has to have; nil where it has to be absent.
  public var bytes: [UInt8]?

  /// A condition on the object of this name.
  public init(name: String, bytes: [UInt8]?) { (self.name, self.bytes) = (name, bytes) }
}

/// A moment in a carrier's life.
///
/// Only the carrier knows what the text means. It does not only go up: a carrier can be restored from a backup.
public struct CarrierRevision: Hashable, Sendable {
  /// What the carrier calls the moment.
  public var text: String

  /// A revision that a carrier has given before.
  public init(text: String) { self.text = text }
}

/// What a carrier's stream of changes says.
public enum CarrierEvent: Hashable, Sendable {
  /// These objects changed, as of a revision, each name once and in no particular order. What one commit changed comes in one
  /// event, which may be that of several commits.
  case changed([CarrierChange], CarrierRevision)
  /// What changed is no longer known: everything has to be read anew. The stream ends.
  case readAll
}

/// What one request to a carrier may hold.
public struct CarrierLimits: Hashable, Sendable {
  /// How many changes a commit may make.
  public var operationCount: Int
  /// How many bytes the names and objects of a commit may have together.
  public var requestByteCount: Int
  /// How many bytes an object may have.
  public var objectByteCount: Int

  /// The limits of a carrier.
  public init(operationCount: Int, requestByteCount: Int, objectByteCount: Int) {
    (self.operationCount, self.requestByteCount, self.objectByteCount) = (
      operationCount, requestByteCount, objectByteCount
    )
  }
}

/// Why a carrier does not do what it is asked.
public enum CarrierError: Error, Hashable, Sendable {
  /// It cannot be reached now; trying again later may help.
  case unreachable(carrier: String, reason: String)
  /// It does not let this client in: the user, the password or a certificate is refused.
  case refused(carrier: String, reason: String)
  /// The address, or an option of it, is wrong.
  case badAddress(String, reason: String)
  /// An object, or without a name a whole commit, has more bytes than the carrier takes; nothing was sent.
  case tooLarge(name: String?, byteCount: Int, limit: Int)
  /// A commit has more changes than the carrier takes at once; nothing was sent.
  case tooManyChanges(count: Int, limit: Int)
  /// It answers with something that makes no sense.
  case garbled(carrier: String, reason: String)
}
