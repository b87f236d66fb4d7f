import CofferCrypto

/// A carrier on a storage with the interface of Amazon S3 that has conditional writes (`If-Match` and `If-None-Match`), such as
/// Amazon's own, MinIO, Ceph or Cloudflare R2.
///
///     let carrier = try S3Carrier(
///       address: "s3://bucket/fleets/web?endpoint=https://minio:9000&region=eu-central-1", credentials: { key })
///
/// The address has the bucket, which must exist, and the prefix of the carrier's keys: here `fleets/web/`. Options are
///
/// - `region`: of the bucket; by default `us-east-1`.
/// - `endpoint`: `https://` or `http://`, and the host of the storage; by default Amazon's for the region. The bucket is then the first part of
///   the path of a URL.
/// - `ca`: a file with the authorities that the endpoint is checked against, in PEM; by default the system's.
/// - `poll`: the number of seconds after which a host looks for changes, about: 5 by default. Each look is a GET request without contents if
///   there are none: 520,000 a month, for which Amazon charges about 0.20 USD.
///
/// Requests are signed with the access key (AWS Signature Version 4); the secret is never sent. It needs the permissions to get, put and
/// delete objects with the prefix, and to list the bucket. Environment variables are not used, for proxies or anything else.
///
/// A commit is a PUT request, and one for each two megabytes if it is large. Objects are packed, so that reading 100,000 settings takes some
/// dozen requests; the layout is in Documentation/PackedCarrier.md.
public final class S3Carrier: Carrier {
  private let packed: PackedCarrier

  /// The address.
  public var description: String { packed.description }
  /// The limits of a commit: 8,192 changes, 8 MiB, and 1 MiB per object.
  public var limits: CarrierLimits { packed.limits }

  /// A carrier at this address; it is not contacted yet.
  ///
  /// - Parameter credentials: Called for the access key, and again when the storage no longer accepts it, as it does with a temporary one.
  /// - Throws: ``CarrierError/badAddress(_:reason:)``, also without an access key; errors of `credentials`.
  public convenience init(
    address: String, credentials: @escaping @Sendable () throws -> S3Credentials?
  ) throws {
    let address = try S3Address(address)
    self.init(
      PackedCarrier(try S3Bucket(address: address, credentials: credentials), pollInterval: address.pollInterval))
  }

  init(_ packed: PackedCarrier) { self.packed = packed }

  /// Reads all objects, in batches of about a megabyte.
  ///
  /// If other hosts merge packs meanwhile, and it takes longer than ten minutes, it throws ``CarrierError/unreachable(carrier:reason:)``: start
  /// over.
  public func readAll(_ body: ([CarrierObject]) throws -> Void) async throws -> CarrierRevision {
    try await packed.readAll(body)
  }

  /// Those of the named objects that exist.
  public func read(_ names: [String]) async throws -> [CarrierObject] { try await packed.read(names) }

  /// Applies all changes, or none.
  ///
  /// If an answer is lost, it finds out whether the commit was made.
  public func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool {
    try await packed.commit(changes, if: condition)
  }

  /// The changes since a revision; changes between two looks are one event.
  public func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error> {
    packed.changes(after: revision)
  }
}
