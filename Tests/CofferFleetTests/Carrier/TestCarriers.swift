import Foundation
import TestSupport
import Testing

@testable import CofferFleet

/// The kinds of carriers that keep the same promises.
enum CarrierKind: CaseIterable, CustomTestStringConvertible {
  case file, etcd

  var testDescription: String { self == .file ? "a folder" : "etcd" }
}

/// An empty carrier of its own.
struct TestCarrier {
  let carrier: any Carrier
  /// Another one at the same place, as another host has it.
  let other: any Carrier
  private let folder: ScratchFolder?

  init(_ kind: CarrierKind) async throws {
    switch kind {
    case .file:
      let folder = try ScratchFolder()
      (carrier, other) = (try FileCarrier(in: folder), try FileCarrier(in: folder))
      self.folder = folder
    case .etcd:
      guard EtcdServer.isInstalled else { try Test.cancel("etcd is not installed") }
      let address = try await EtcdServer.common().address(prefix: "test-\(UUID().uuidString)")
      (carrier, other) = (try EtcdCarrier(address: address), try EtcdCarrier(address: address))
      folder = nil
    }
  }
}

extension FileCarrier {
  /// One that looks often.
  convenience init(in folder: ScratchFolder) throws {
    try self.init(address: CarrierAddress("file://\(folder.path)"), pollInterval: .milliseconds(5))
  }
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

/// Events of a stream, as they come, for a test that makes changes meanwhile.
actor EventLog {
  private var iterator: AsyncThrowingStream<CarrierEvent, any Error>.Iterator
  private(set) var changes: [CarrierChange] = []

  init(_ carrier: any Carrier, after revision: CarrierRevision) {
    iterator = carrier.changes(after: revision).makeAsyncIterator()
  }

  func next() async throws -> CarrierEvent? {
    var iterator = self.iterator
    defer { self.iterator = iterator }
    return try await iterator.next(isolation: self)
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
