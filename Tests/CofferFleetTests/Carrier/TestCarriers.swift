import CofferCrypto
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CofferFleet

/// The kinds of carriers that keep the same promises.
enum CarrierKind: CaseIterable, CustomTestStringConvertible {
  case file, etcd, s3
  /// With packs so small that all commits go through them.
  case mergingS3

  /// Those that the program has.
  static let ofProgram: [CarrierKind] = [.file, .etcd, .s3]

  var testDescription: String {
    switch self {
    case .file: "a folder"
    case .etcd: "etcd"
    case .s3: "S3"
    case .mergingS3: "S3, always merging"
    }
  }
}

/// A new empty carrier, with its storage, on which something can happen before and after each commit.
struct TestCarrier: Carrier {
  private let carrier: any Carrier
  private let makeOther: @Sendable () throws -> any Carrier
  private let folder: ScratchFolder?
  private let happening = Happening()

  init(_ kind: CarrierKind) async throws {
    switch kind {
    case .file:
      let folder = try ScratchFolder()
      self.folder = folder
      makeOther = { try FileCarrier(in: folder) }
    case .etcd:
      guard EtcdServer.isInstalled else { try Test.cancel("etcd is not installed") }
      let address = try await EtcdServer.common().address(prefix: "test-\(UUID().uuidString)")
      folder = nil
      makeOther = { try EtcdCarrier(address: address) }
    case .s3, .mergingS3:
      let bucket = try await S3Bucket.test()
      let sizes = kind == .s3 ? PackedCarrier.Sizes() : .small
      folder = nil
      makeOther = { S3Carrier(PackedCarrier(bucket, pollInterval: .milliseconds(20), sizes: sizes)) }
    }
    carrier = try makeOther()
  }

  /// One in front of another.
  init(over carrier: any Carrier) {
    (self.carrier, makeOther, folder) = (carrier, { carrier }, nil)
  }

  private init(_ carrier: any Carrier, like other: TestCarrier) {
    (self.carrier, makeOther, folder) = (carrier, other.makeOther, other.folder)
  }

  func happens(_ body: Happening.Body?) { happening.body.withLock { $0 = body } }
  /// The same after each commit.
  func happensAfterwards(_ body: Happening.Body?) { happening.bodyAfterwards.withLock { $0 = body } }

  /// Another one at the same place, as another host has it.
  func other() throws -> TestCarrier { TestCarrier(try makeOther(), like: self) }

  var description: String { carrier.description }
  var limits: CarrierLimits { carrier.limits }

  func readAll(_ body: ([CarrierObject]) throws -> Void) async throws -> CarrierRevision {
    try await carrier.readAll(body)
  }
  func read(_ names: [String]) async throws -> [CarrierObject] { try await carrier.read(names) }

  func commit(_ changes: [CarrierChange], if condition: CarrierCondition) async throws -> Bool {
    try await happening.body.withLock { $0 }?()
    let isMade = try await carrier.commit(changes, if: condition)
    try await happening.bodyAfterwards.withLock { $0 }?()
    return isMade
  }

  func changes(after revision: CarrierRevision) -> AsyncThrowingStream<CarrierEvent, any Error> {
    carrier.changes(after: revision)
  }
}

/// What happens on all copies of a carrier before and after each commit.
final class Happening: Sendable {
  typealias Body = @Sendable () async throws -> Void

  let body = Mutex<Body?>(nil)
  let bodyAfterwards = Mutex<Body?>(nil)
}

extension FileCarrier {
  /// One that looks often.
  convenience init(in folder: ScratchFolder) throws {
    try self.init(address: CarrierAddress("file://\(folder.path)"), pollInterval: .milliseconds(5))
  }
}

extension S3Bucket {
  /// An unused place on the storage that tests share.
  static func test(pageSize: Int? = nil) async throws -> S3Bucket {
    guard let server = try await S3Server.common() else { try Test.cancel("moto is not installed") }
    let key = S3Credentials(accessKey: server.writer.name, secretKey: SecretBytes(copying: server.writer.secret))
    let address = try S3Address(server.address(prefix: "test-\(UUID().uuidString)"))
    return try S3Bucket(address: address, pageSize: pageSize, credentials: { key })
  }
}

extension PackedCarrier.Sizes {
  /// Everything happens all the time.
  static let small = PackedCarrier.Sizes(
    inlineByteCount: 200, recentByteCount: 100, largeByteCount: 50_000, runCount: 2, removedCount: 2, sweepOdds: 1)
}

extension Carrier {
  /// All objects, and the revision.
  func contents() async throws -> (objects: [String: [UInt8]], revision: CarrierRevision) {
    var all: [String: [UInt8]] = [:]
    let revision = try await readAll { objects in
      for object in objects {
        guard all.updateValue(object.bytes, forKey: object.name) == nil else {
          throw HandedOverTwice(name: object.name)
        }
      }
    }
    return (all, revision)
  }

  func bytes(_ name: String) async throws -> [UInt8]? { try await read([name]).first?.bytes }

  /// Swaps `head`, with changes beside it.
  @discardableResult
  func swapHead(from old: [UInt8]?, to new: [UInt8], _ changes: [CarrierChange] = []) async throws -> Bool {
    try await commit(
      changes + [.put(CarrierObject(name: "head", bytes: new))], if: CarrierCondition(name: "head", bytes: old))
  }
}

extension CarrierChange {
  static func put(_ name: String, _ bytes: [UInt8]) -> CarrierChange { .put(CarrierObject(name: name, bytes: bytes)) }
}

private struct HandedOverTwice: Error { let name: String }

/// The events of a stream, for a test that makes changes meanwhile.
actor EventLog {
  private var iterator: AsyncThrowingStream<CarrierEvent, any Error>.Iterator
  /// Kept, with its storage.
  private let carrier: any Carrier

  init(_ carrier: any Carrier, after revision: CarrierRevision) {
    self.carrier = carrier
    iterator = carrier.changes(after: revision).makeAsyncIterator()
  }

  /// The next event; interruptions are passed over.
  func next() async throws -> CarrierEvent? {
    var iterator = self.iterator
    defer { self.iterator = iterator }
    while true {
      let event = try await iterator.next(isolation: self)
      if event != .interrupted { return event }
    }
  }

  /// The changes of all events up to the one that puts `bytes` into `name`.
  func changes(upTo name: String, _ bytes: [UInt8]) async throws -> [CarrierChange] {
    var all: [CarrierChange] = []
    while case .changed(let changes, _)? = try await next() {
      all += changes
      if changes.contains(.put(name, bytes)) { return all }
    }
    throw StreamEnded()
  }
}

struct StreamEnded: Error {}
