import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferFleet

@Suite("A carrier of packs", .timeLimit(.minutes(10)))
struct PackedCarrierTests {
  let storage: HookedStorage

  init() async throws { storage = HookedStorage(try await S3Bucket.test()) }

  /// Another host's carrier at the same place.
  private func other(_ sizes: PackedCarrier.Sizes = .small, hooked: Bool = false) -> PackedCarrier {
    PackedCarrier(hooked ? storage : storage.storage, pollInterval: .milliseconds(10), sizes: sizes)
  }

  private struct Killed: Error {}

  // MARK: - A writer that is killed

  @Test("shows a commit whose writer was killed at any moment completely or not at all", arguments: [true, false])
  func killedWriter(_ isBeforeRequest: Bool) async throws {
    let large = [UInt8](repeating: 7, count: 60_000)
    let changes: [CarrierChange] =
      (0..<10).map { .put("records/\($0)", .init(repeating: 2, count: 50)) } + [
        .remove(name: "records/old"), .put("pieces/large", large),
      ]
    var results: Set<Bool> = []
    var isFinished = false
    var step = 0
    while !isFinished {
      let storage = HookedStorage(try await S3Bucket.test())
      let before = PackedCarrier(storage.storage, pollInterval: .milliseconds(10), sizes: .small)
      try await before.swapHead(from: nil, to: [1], [.put("records/old", [1]), .put("records/1", [1])])
      try await before.swapHead(from: [1], to: [2], [.put("records/2", .init(repeating: 1, count: 300))])
      let old = try await before.contents()
      let log = EventLog(before, after: old.revision)
      let writer = PackedCarrier(storage, pollInterval: .milliseconds(10), sizes: .small)
      let (count, last) = (Counter(), step)
      storage.happens { _, moment in
        guard (moment == .before) == isBeforeRequest else { return }
        // From then on nothing is sent.
        if count.next() >= last { throw Killed() }
      }
      let isMade = try? await writer.swapHead(from: [2], to: [3], changes)
      isFinished = isMade == true && count.next() <= last
      let after = PackedCarrier(storage.storage, pollInterval: .milliseconds(10), sizes: .small)
      let contents = try await after.contents().objects
      var expected = old.objects
      if contents["head"] == [3] {
        for change in changes { expected[change.name] = change.object?.bytes }
        expected["head"] = [3]
        #expect(Set(try await log.changes(upTo: "head", [3])) == Set(changes + [.put("head", [3])]))
      }
      #expect(contents == expected, "step \(step)")
      results.insert(contents["head"] == [3])
      #expect(try await after.swapHead(from: contents["head"], to: [4], [.put("records/1", [4])]))
      #expect(try await before.bytes("records/1") == [4])
      step += 1
    }
    #expect(results == [true, false] && step > 3)
  }

  @Test("finds its commit again if the answer is lost, also under the commits of others")
  func lostAnswer() async throws {
    let (writer, other) = (other(hooked: true), other())
    try await writer.swapHead(from: nil, to: [1])
    for number in UInt8(2)...4 {
      let isFirst = Counter()
      storage.happens { request, moment in
        guard request.isRootPut, moment == .after, isFirst.next() == 0 else { return }
        if number == 3 {
          _ = try await other.commit([.put("other", [1])], if: CarrierCondition(name: "other", bytes: nil))
        }
        if number == 4 { try await other.swapHead(from: [4], to: [9]) }
        throw CarrierError.unreachable(carrier: "", reason: "lost")
      }
      #expect(try await writer.swapHead(from: [number - 1], to: [number], [.put("records/\(number)", [number])]))
    }
    storage.happens(nil)
    let objects = try await writer.contents().objects
    #expect(objects == ["head": [9], "records/2": [2], "records/3": [3], "records/4": [4], "other": [1]])
  }

  @Test("takes no other commit for its own if the answer is lost")
  func lostRequest() async throws {
    let (writer, other) = (other(hooked: true), other())
    try await writer.swapHead(from: nil, to: [1])
    let isFirst = Counter()
    storage.happens { request, moment in
      guard request.isRootPut, moment == .before, isFirst.next() == 0 else { return }
      try await other.swapHead(from: [1], to: [2])
      throw CarrierError.unreachable(carrier: "", reason: "lost")
    }
    #expect(try await !writer.swapHead(from: [1], to: [2], [.put("records/a", [1])]))
    storage.happens(nil)
    #expect(try await writer.contents().objects == ["head": [2]])
  }

  @Test("says so if no answer comes, and the commit is there or not")
  func noAnswer() async throws {
    let writer = other(hooked: true)
    try await writer.swapHead(from: nil, to: [1])
    storage.happens { request, moment in
      if request.isRootPut, moment == .before { throw CarrierError.unreachable(carrier: "", reason: "lost") }
    }
    await #expect(throws: CarrierError.self) { try await writer.swapHead(from: [1], to: [2], [.put("records/a", [1])]) }
    storage.happens(nil)
    #expect(try await writer.contents().objects == ["head": [1]])
  }

  @Test("commits over changes of other objects that came between reading and replacing the root")
  func between() async throws {
    let (writer, other) = (other(hooked: true), other())
    try await writer.swapHead(from: nil, to: [1])
    let count = Counter()
    storage.happens { request, moment in
      guard request.isRootPut, moment == .before else { return }
      let number = count.next()
      guard number < 3 else { return }
      _ = try await other.commit(
        [.put("joins/\(number)", [1])], if: CarrierCondition(name: "joins/\(number)", bytes: nil))
    }
    #expect(try await writer.swapHead(from: [1], to: [2], [.put("records/a", .init(repeating: 3, count: 500))]))
    storage.happens(nil)
    let objects = try await writer.contents().objects
    #expect(objects["head"] == [2] && objects["records/a"]?.count == 500 && objects.count == 5)
  }

  // MARK: - Merging

  @Test("keeps all objects through many commits and merges, and removes the parts that it no longer needs")
  func merging() async throws {
    var sizes = PackedCarrier.Sizes.small
    sizes.retirement = -1
    let (writer, reader) = (other(sizes), other(sizes))
    var expected: [String: [UInt8]] = [:]
    let log = EventLog(reader, after: PackedCarrier.noRevision)
    for round in UInt8(1)...40 {
      let count = round % 7 == 0 ? 60 : 2
      var changes: [CarrierChange] = (0..<count).map {
        .put("records/\((Int(round) * 13 + $0) % 90)", .init(repeating: round, count: 20 + Int(round)))
      }
      if let gone = expected.keys.filter({ $0 != "head" }).sorted().first, round % 3 == 0 {
        changes = changes.filter { $0.name != gone } + [.remove(name: gone)]
      }
      if round % 9 == 0 { changes.append(.put("pieces/\(round)", .init(repeating: round, count: 60_000))) }
      if round % 9 == 1, round > 9 { changes.append(.remove(name: "pieces/\(round - 1)")) }
      try await writer.swapHead(from: round == 1 ? nil : [round - 1], to: [round], changes)
      for change in changes { expected[change.name] = change.object?.bytes }
      expected["head"] = [round]
      if round % 5 == 0 { #expect(try await reader.contents().objects == expected, "round \(round)") }
      #expect(
        Set(try await reader.read(Array(expected.keys))) == Set(expected.map { CarrierObject(name: $0, bytes: $1) }))
    }
    let root = try #require(try await reader.refresh().root)
    #expect(root.mergeCount > 10 && root.runs.count <= sizes.runCount + 1)
    let needed = Set(root.named.map(\.key))
    #expect(try await storage.parts().isSubset(of: needed))
    // Either all changes came, or that they are no longer known.
    var told: [String: [UInt8]] = [:]
    while told["head"] != [40], case .changed(let changes, _)? = try await log.next() {
      for change in changes { told[change.name] = change.object?.bytes }
    }
    #expect(told == expected || told["head"] != [40])
  }

  @Test("does not bring back what was removed, by a merge that began before")
  func overtakenMerge() async throws {
    let (slow, fast) = (other(hooked: true), other())
    try await slow.swapHead(from: nil, to: [1], [.put("records/a", .init(repeating: 1, count: 150))])
    let isFirst = Counter()
    storage.happens { request, moment in
      // The merge after the commit has read everything, and not written it.
      guard request.isPartPut, moment == .before, isFirst.next() == 0 else { return }
      try await fast.swapHead(from: [2], to: [3], [.remove(name: "records/a")])
      try await fast.swapHead(from: [3], to: [4], [.put("records/b", .init(repeating: 1, count: 150))])
      try await fast.swapHead(from: [4], to: [5], [.put("records/c", [1])])
    }
    #expect(try await slow.swapHead(from: [1], to: [2]))
    storage.happens(nil)
    #expect(isFirst.next() > 0)
    let objects = try await fast.contents().objects
    #expect(objects["records/a"] == nil && objects.keys.sorted() == ["head", "records/b", "records/c"])
    #expect(try await other().read(["records/a"]).isEmpty)
  }

  /// Says that it has refused each merge that it has written, as a proxy does that has repeated a request.
  private final class Doubting: ConditionalStorage {
    let storage: any ConditionalStorage
    let mergeCount = Lock<UInt64>(0)
    var description: String { storage.description }

    init(_ storage: any ConditionalStorage) { self.storage = storage }

    func get(_ key: String, unless tag: String?, limit: Int) async throws -> StorageAnswer<ReadObject> {
      try await storage.get(key, unless: tag, limit: limit)
    }
    func get(_ key: String, _ range: Range<Int>) async throws -> [UInt8]? { try await storage.get(key, range) }
    func put(_ key: String, _ bytes: [UInt8], if condition: PutCondition) async throws -> StorageAnswer<PutResult> {
      let answer = try await storage.put(key, bytes, if: condition)
      guard key == PackedRoot.key, case .stored = answer.content else { return answer }
      let count = try PackedRoot(bytes, of: description).mergeCount
      let isMerge = mergeCount.withLock { known in
        defer { known = count }
        return count > known
      }
      return isMerge ? StorageAnswer(content: .refused, date: answer.date) : answer
    }
    func remove(_ key: String) async throws { try await storage.remove(key) }
    func list(_ start: String, _ body: ([ListedObject]) -> Bool) async throws { try await storage.list(start, body) }
  }

  @Test("keeps the packs of a merge that the storage has written and says that it has refused")
  func doubtedMerge() async throws {
    let doubting = Doubting(storage)
    let carrier = PackedCarrier(doubting, pollInterval: .seconds(1), sizes: .small)
    for round in UInt8(0)..<20 {
      let change = CarrierChange.put("records/\(round)", .init(repeating: round, count: 150))
      #expect(try await carrier.swapHead(from: round == 0 ? nil : [round - 1], to: [round], [change]))
      #expect(try await other().contents().objects.count == Int(round) + 2)
    }
    #expect(doubting.mergeCount.withLock(\.self) > 0)
  }

  @Test("is not written so that no host reads it any more, while its packs cannot be merged; then it goes on")
  func unmerged() async throws {
    let writer = other(hooked: true)
    storage.happens { request, moment in
      guard request.isPartGet, moment == .before else { return }
      throw CarrierError.refused(carrier: "the storage", reason: "AccessDenied")
    }
    var round = UInt8(0)
    func commit() async throws -> Bool {
      let change = CarrierChange.put("records/\(round)", .init(repeating: round, count: 2000))
      let isMade = try await writer.swapHead(from: round == 0 ? nil : [round - 1], to: [round], [change])
      round += 1
      return isMade
    }
    do {
      while round < 100 { #expect(try await commit()) }
      Issue.record("it was never refused")
    } catch CarrierError.refused(_, let reason) {
      #expect(reason == "AccessDenied")
    }
    let count = Int(round)
    #expect(try await other().contents().objects.count == count + 1)
    storage.happens(nil)
    for _ in 0..<40 { #expect(try await commit()) }
    #expect(try await other().contents().objects.count == count + 41)
  }

  @Test("refuses a root with numbers and times that no writer could go on from")
  func extremes() throws {
    let change: [(inout PackedRoot) -> Void] = [
      { $0.mergeCount = .max }, { $0.sequence = .max },
      { $0.retired = [(PartID(bytes: .init(repeating: 1, count: 16)), .min)] },
      { $0.retired = [(PartID(bytes: .init(repeating: 1, count: 16)), .max)] },
    ]
    for change in change {
      var root = PackedRoot(lineage: .init(repeating: 1, count: PackedRoot.idByteCount))
      _ = try PackedRoot(root.bytes, of: "a storage")
      change(&root)
      #expect {
        try PackedRoot(root.bytes, of: "a storage")
      } throws: { error in
        if case .garbled = error as? CarrierError { true } else { false }
      }
    }
  }

  @Test("has no number above those that are read")
  func lastNumber() async throws {
    let carrier = other()
    try await carrier.swapHead(from: nil, to: [1])
    var state = try await carrier.refresh()
    var root = try #require(state.root)
    root.sequence = PackedRoot.maximumSequence - 1
    #expect(try await carrier.replace(state, by: root))
    await #expect {
      try await carrier.swapHead(from: [1], to: [2])
    } throws: { error in
      if case .full(_, let reason) = error as? CarrierError { reason.contains("number") } else { false }
    }
    state = try await other().refresh()
    #expect(state.root?.sequence == root.sequence)
  }

  @Test("is read as of one state, while others merge and remove what is being read")
  func readDuringMerge() async throws {
    let (reader, writer) = (other(hooked: true), other())
    let objects = (0..<8).map { CarrierChange.put("records/\($0)", .init(repeating: 1, count: 100)) }
    try await writer.swapHead(from: nil, to: [1], objects)
    let isFirst = Counter()
    let changeAll: HookedStorage.Hook = { request, moment in
      guard request.isPartGet, moment == .before, isFirst.next() == 0 else { return }
      for round in UInt8(1)...3 { try await writer.swapHead(from: [round], to: [round + 1], objects) }
      _ = try await writer.commit([.put("other", [1])], if: CarrierCondition(name: "other", bytes: nil))
      // As after ten minutes.
      let root = try #require(try await writer.refresh().root)
      #expect(!root.retired.isEmpty)
      for (id, _) in root.retired { try await writer.storage.remove(id.key) }
    }
    storage.happens(changeAll)
    let read = try await reader.contents().objects
    #expect(read.count == 10 && read["head"] == [4] && read["other"] == [1])
    #expect(try await reader.read(["records/3", "none"]).map(\.name) == ["records/3"])
  }

  @Test("removes parts of killed writers once they are old, page by page")
  func orphans() async throws {
    var sizes = PackedCarrier.Sizes.small
    let bucket = try await S3Bucket.test(pageSize: 7)
    let storage = HookedStorage(bucket)
    for _ in 0..<30 { _ = try await bucket.put(try PartWriter.newID().key, [1], if: .none) }
    let young = PackedCarrier(storage, pollInterval: .milliseconds(10), sizes: sizes)
    try await young.swapHead(from: nil, to: [1], [.put("records/a", .init(repeating: 1, count: 300))])
    try await young.swapHead(from: [1], to: [2], [.put("records/b", .init(repeating: 1, count: 150))])
    try await young.swapHead(from: [2], to: [3])
    #expect(try await storage.parts().count >= 31)
    sizes.orphanAge = -1000
    let old = PackedCarrier(storage, pollInterval: .milliseconds(10), sizes: sizes)
    try await old.swapHead(from: [3], to: [4], [.put("records/c", .init(repeating: 1, count: 150))])
    try await old.swapHead(from: [4], to: [5])
    let root = try #require(try await old.refresh().root)
    #expect(try await storage.parts() == Set(root.named.map(\.key)))
    #expect(try await old.contents().objects.count == 4)
  }

  @Test("is read by a program that knows only its layout")
  func otherReader() async throws {
    guard let server = try await S3Server.common() else { try Test.cancel("moto is not installed") }
    let bucket = try #require(storage.storage as? S3Bucket)
    let writer = other()
    for round in UInt8(1)...20 {
      let changes: [CarrierChange] = (0..<UInt8(6)).map { number in
        number == round % 6
          ? .remove(name: "records/\(number)")
          : .put("records/\(number)", .init(repeating: round, count: round % 7 == 0 ? 50_000 : 30))
      }
      try await writer.swapHead(from: round == 1 ? nil : [round - 1], to: [round], changes)
      guard round % 4 == 0 else { continue }
      let objects = try await writer.contents().objects
      #expect(try server.objects(prefix: String(bucket.address.prefix.dropLast())) == objects.mapValues(\.hex))
    }
    #expect(try await writer.refresh().root?.mergeCount ?? 0 > 2)
  }

  // MARK: - Other states

  @Test("must be read again when it was put back, made again, or no longer knows what was removed")
  func unknownChanges() async throws {
    let writer = other()
    try await writer.swapHead(from: nil, to: [1], [.put("records/a", [1])])
    let first = try await writer.contents().revision
    guard case .present(let root, _) = try await storage.get(PackedRoot.key, unless: nil, limit: 1 << 20).content else {
      throw StreamEnded()
    }
    try await writer.swapHead(from: [1], to: [2], [.remove(name: "records/a")])
    try await writer.swapHead(from: [2], to: [3], [.put("records/b", .init(repeating: 1, count: 150))])
    try await writer.swapHead(from: [3], to: [4])
    let last = try await writer.contents().revision
    for revision in [first, CarrierRevision(text: "1-8"), CarrierRevision(text: "")] {
      let log = EventLog(other(), after: revision)
      #expect(try await log.next() == .readAll)
      #expect(try await log.next() == nil)
    }
    // An earlier state, with other commits since.
    _ = try await storage.put(PackedRoot.key, root, if: .none)
    #expect(try await EventLog(other(), after: last).next() == .readAll)
    let second = other()
    for number in UInt8(1)...6 { try await second.swapHead(from: [number], to: [number + 1]) }
    #expect(try await EventLog(other(), after: last).next() == .readAll)
    try await storage.remove(PackedRoot.key)
    #expect(try await EventLog(other(), after: last).next() == .readAll)
    try await other().swapHead(from: nil, to: [1])
    #expect(try await EventLog(other(), after: last).next() == .readAll)
  }

  @Test("whose storage does not heed a condition is refused before the first commit")
  func withoutConditions() async throws {
    struct Careless: ConditionalStorage {
      let storage: any ConditionalStorage
      let ignored: PutCondition?
      var description: String { storage.description }
      func get(_ key: String, unless tag: String?, limit: Int) async throws -> StorageAnswer<ReadObject> {
        try await storage.get(key, unless: tag, limit: limit)
      }
      func get(_ key: String, _ range: Range<Int>) async throws -> [UInt8]? { try await storage.get(key, range) }
      func put(_ key: String, _ bytes: [UInt8], if condition: PutCondition) async throws -> StorageAnswer<PutResult> {
        try await storage.put(key, bytes, if: (condition == .absent) == (ignored == .absent) ? .none : condition)
      }
      func remove(_ key: String) async throws { try await storage.remove(key) }
      func list(_ start: String, _ body: ([ListedObject]) -> Bool) async throws { try await storage.list(start, body) }
    }
    for ignored in [PutCondition.absent, nil] {
      let carrier = PackedCarrier(Careless(storage: storage, ignored: ignored), pollInterval: .seconds(1))
      await #expect {
        try await carrier.swapHead(from: nil, to: [1])
      } throws: { error in
        if case .badAddress(_, let reason) = error as? CarrierError { reason.contains("If-Match") } else { false }
      }
    }
    #expect(try await other().contents().objects.isEmpty)
    #expect(try await storage.parts().isEmpty)
  }

  @Test("reports a part that is missing or damaged, and takes it for no object")
  func damagedParts() async throws {
    let carrier = other()
    try await carrier.swapHead(from: nil, to: [1], [.put("records/a", .init(repeating: 1, count: 300))])
    let part = try #require(try await storage.parts().first)
    guard case .present(let whole, _) = try await storage.get(part, unless: nil, limit: 1 << 20).content else {
      throw StreamEnded()
    }
    for bytes in [nil, Array(whole.dropLast()), whole.map { _ in 9 }] {
      if let bytes { _ = try await storage.put(part, bytes, if: .none) } else { try await storage.remove(part) }
      for read in [{ _ = try await other().contents() }, { _ = try await other().read(["records/a"]) }] {
        await #expect {
          try await read()
        } throws: { error in
          if case .garbled = error as? CarrierError { true } else { false }
        }
      }
    }
  }
}
