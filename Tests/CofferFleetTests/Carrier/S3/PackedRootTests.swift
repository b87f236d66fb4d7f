import CofferCrypto
import TestSupport
import Testing

@testable import CofferFleet

@Suite("The root of a carrier of packs")
struct PackedRootTests {
  private func root() throws -> PackedRoot {
    var root = PackedRoot(lineage: [1, 2, 3, 4, 5, 6, 7, 8])
    (root.sequence, root.forgotten, root.mergeCount) = (9, 2, 3)
    root.commitIDs = [.init(repeating: 8, count: 8), .init(repeating: 9, count: 8)]
    let entries = ["head", "r/a", "r/b"].map {
      PackEntry(name: $0, sequence: 0, content: $0 == "r/b" ? .removed : .bytes(Array($0.utf8)))
    }
    let pack = Pack(entries, id: try PartWriter.newID())
    #expect(pack.sections.map(\.first) == ["head", "r/a"] && pack.byteCount == Pack.bytes(entries).count)
    root.runs = [PackedRoot.Run(sequence: 7, entryCount: 3, removedCount: 1, packs: [pack])]
    root.set("pieces/1", .large(LargeObject(id: try PartWriter.newID(), byteCount: 300_000)), at: 5)
    root.set("pieces/2", .large(LargeObject(id: try PartWriter.newID(), byteCount: 300_000)), at: 5)
    root.set("pieces/2", .removed, at: 6)
    root.set("head", .bytes([1, 2, 3]), at: 6)
    return root
  }

  @Test("is the same when it is read, and has what was set")
  func reading() throws {
    let root = try root()
    let read = try PackedRoot(root.bytes, of: "here")
    #expect(read.bytes == root.bytes && read.revision == root.revision)
    #expect(read.large.keys.sorted() == ["pieces/1"] && read.retired.map(\.date) == [6])
    #expect(read.recent.keys.sorted() == ["head", "pieces/2"] && read.recent["pieces/2"]?.isRemoved == true)
    #expect(read.parts.count == 2)
  }

  @Test("is refused when it is truncated or of a newer version, and no byte of it makes reading fail otherwise")
  func damage() throws {
    let bytes = try root().bytes
    for count in bytes.indices {
      #expect(throws: CarrierError.self, "\(count) bytes") { try PackedRoot(Array(bytes.prefix(count)), of: "here") }
    }
    #expect {
      try PackedRoot([2] + bytes.dropFirst(), of: "here")
    } throws: { error in
      if case .garbled("here", let reason) = error as? CarrierError { reason.contains("newer version") } else { false }
    }
    for index in bytes.indices {
      for bit in 0..<8 {
        var changed = bytes
        changed[index] ^= 1 << bit
        do { _ = try PackedRoot(changed, of: "here") } catch {
          guard case .garbled = error else { throw error }
        }
      }
    }
  }

  @Test("names packs that are read as they were written")
  func packs() throws {
    var random = SplitMix64(state: 1)
    let entries = Set((0..<3000).map { _ in "r/\(UInt64.random(in: 0...UInt64.max, using: &random))" }).sorted().map {
      PackEntry(
        name: $0, sequence: 5, content: .bytes(.init(repeating: 1, count: Int.random(in: 0...500, using: &random))))
    }
    let bytes = Pack.bytes(entries)
    let pack = Pack(entries, id: try PartWriter.newID())
    #expect(pack.sections.count > 1 && pack.sections.last?.range.upperBound == bytes.count)
    let read: [PackEntry] = try pack.sections.flatMap { try Pack.entries(Array(bytes[$0.range]), sequence: 5) }
    #expect(read.map(\.name) == entries.map(\.name))
    #expect(throws: MalformedObject.self) { try Pack.entries(bytes + bytes, sequence: 5) }
    #expect(throws: MalformedObject.self) { try Pack.entries(Array(bytes.dropLast()), sequence: 5) }
  }
}
