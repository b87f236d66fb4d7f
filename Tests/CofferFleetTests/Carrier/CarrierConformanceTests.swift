import CofferFleet
import Foundation
import TestSupport
import Testing

@Suite("A carrier", .timeLimit(.minutes(10)))
struct CarrierConformanceTests {
  @Test("is empty at first, and its head absent", arguments: CarrierKind.allCases)
  func empty(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    #expect(try await carrier.contents().objects.isEmpty)
    #expect(try await carrier.read(["head"]).isEmpty)
    #expect(try await carrier.read([]).isEmpty)
  }

  @Test("applies all changes of a commit if its condition holds, and none otherwise", arguments: CarrierKind.allCases)
  func conditions(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    let other = try carrier.other()
    #expect(try await carrier.swapHead(from: nil, to: [1], [.put("records/a", [10]), .put("records/b", [])]))
    #expect(try await !other.swapHead(from: nil, to: [2], [.put("records/a", [20])]))
    #expect(try await !other.swapHead(from: [9], to: [2], [.put("records/a", [20]), .remove(name: "records/b")]))
    #expect(try await other.contents().objects == ["head": [1], "records/a": [10], "records/b": []])
    #expect(try await other.swapHead(from: [1], to: [2], [.remove(name: "records/a"), .remove(name: "records/none")]))
    #expect(try await carrier.contents().objects == ["head": [2], "records/b": []])
  }

  @Test("tells by an empty commit whether a condition holds", arguments: CarrierKind.allCases)
  func emptyCommit(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    #expect(try await carrier.commit([], if: CarrierCondition(name: "head", bytes: nil)))
    #expect(try await carrier.contents().objects.isEmpty)
    try await carrier.swapHead(from: nil, to: [1])
    #expect(try await !carrier.commit([], if: CarrierCondition(name: "head", bytes: nil)))
    #expect(try await carrier.commit([], if: CarrierCondition(name: "head", bytes: [1])))
    #expect(try await carrier.contents().objects == ["head": [1]])
  }

  @Test("can remove the object of the condition", arguments: CarrierKind.allCases)
  func removal(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    try await carrier.swapHead(from: nil, to: [1])
    #expect(try await carrier.commit([.remove(name: "head")], if: CarrierCondition(name: "head", bytes: [1])))
    #expect(try await carrier.contents().objects.isEmpty)
  }

  @Test("reads those of the named objects that exist", arguments: CarrierKind.allCases)
  func reading(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    try await carrier.swapHead(from: nil, to: [1], (0..<300).prefix(100).map { .put("records/\($0)", [UInt8($0)]) })
    let names = (0..<300).map { "records/\($0)" }
    let objects = try await carrier.read(names)
    #expect(Set(objects.map(\.name)) == Set(names.prefix(100)))
    #expect(objects.allSatisfy { $0.name == "records/\($0.bytes[0])" })
  }

  @Test("passes many objects in batches, each once", arguments: CarrierKind.allCases)
  func manyObjects(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    var expected: [String: [UInt8]] = [:]
    for round in UInt8(1)...12 {
      let objects = (0..<100).map {
        CarrierObject(name: "records/\(round)-\($0)", bytes: .init(repeating: round, count: 3000))
      }
      for object in objects { expected[object.name] = object.bytes }
      try await carrier.swapHead(from: round == 1 ? nil : [round - 1], to: [round], objects.map(CarrierChange.put))
    }
    expected["head"] = [12]
    #expect(try await carrier.contents().objects == expected)
  }

  @Test("ends a read with the error that its reader throws", arguments: CarrierKind.allCases)
  func readerThrows(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    try await carrier.swapHead(from: nil, to: [1])
    await #expect(throws: StreamEnded.self) { try await carrier.readAll { _ in throw StreamEnded() } }
  }

  @Test("lets exactly one of several racing committers win", arguments: CarrierKind.allCases)
  func race(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    let other = try carrier.other()
    var head: [UInt8]?
    for round in UInt8(0)..<5 {
      let old = head
      let winners = try await withThrowingTaskGroup(of: UInt8?.self) { group in
        for racer in UInt8(0)..<6 {
          let carrier = racer % 2 == 0 ? carrier : other
          group.addTask {
            let changes = (0..<5).map { CarrierChange.put("records/\($0)", [round, racer]) }
            return try await carrier.swapHead(from: old, to: [round, racer], changes) ? racer : nil
          }
        }
        return try await group.reduce(into: [UInt8]()) { winners, racer in if let racer { winners.append(racer) } }
      }
      try #require(winners.count == 1)
      head = [round, winners[0]]
      let contents = try await carrier.contents().objects
      #expect(contents.count == 6 && contents.values.allSatisfy { $0 == head })
    }
  }

  @Test("never shows a state between two commits", arguments: CarrierKind.allCases)
  func atomicity(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    let other = try carrier.other()
    try await carrier.swapHead(from: nil, to: [0], (0..<20).map { .put("records/\($0)", [0]) })
    let isDone = Flag()
    async let mixtures = {
      var mixtures = 0
      repeat {
        if Set(try await other.contents().objects.values).count != 1 { mixtures += 1 }
      } while !isDone.isSet
      return mixtures
    }()
    for round in UInt8(1)...15 {
      try await carrier.swapHead(
        from: [round - 1], to: [round], (0..<20).map { .put("records/\($0)", [round]) })
    }
    isDone.set()
    #expect(try await mixtures == 0)
  }

  // MARK: - Changes

  @Test("reports every later change in order, none twice", arguments: CarrierKind.allCases)
  func changes(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    let other = try carrier.other()
    try await carrier.swapHead(from: nil, to: [0], [.put("records/old", [1])])
    let revision = try await other.contents().revision
    // Some come before the stream is asked for, the others while it runs.
    for round in UInt8(1)...4 {
      try await carrier.swapHead(from: [round - 1], to: [round], [.put("records/\(round)", [round])])
    }
    let log = EventLog(other, after: revision)
    async let told = log.changes(upTo: "head", [20])
    for round in UInt8(5)...20 {
      try await carrier.swapHead(from: [round - 1], to: [round], [.put("records/\(round)", [round])])
    }
    let changes = try await told
    let heads = changes.compactMap {
      if case .put(let object) = $0, object.name == "head" { object.bytes } else { nil }
    }
    #expect(heads.elementsEqual(heads.sorted { $0[0] < $1[0] }) && Set(heads).count == heads.count)
    let records = changes.compactMap {
      if case .put(let object) = $0, object.name != "head" { object.name } else { nil }
    }
    #expect(records.count == 20 && Set(records) == Set((1...20).map { "records/\($0)" }))
  }

  @Test("reports the changes of one commit in one event", arguments: CarrierKind.allCases)
  func wholeCommits(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    let other = try carrier.other()
    try await carrier.swapHead(from: nil, to: [0], [.put("records/gone", [0])])
    let log = EventLog(other, after: try await other.contents().revision)
    async let event = log.next()
    let changes: [CarrierChange] =
      (0..<100).map { .put("records/\($0)", [UInt8($0)]) } + [.remove(name: "records/gone")]
    try await carrier.swapHead(from: [0], to: [1], changes)
    guard case .changed(let told, let revision)? = try await event else { throw StreamEnded() }
    #expect(told.count == 102 && Set(told) == Set(changes + [.put("head", [1])]))
    // The stream can be taken up where it was left.
    let next = EventLog(other, after: revision)
    try await carrier.swapHead(from: [1], to: [2])
    #expect(try await next.changes(upTo: "head", [2]) == [.put("head", [2])])
  }

  @Test(
    "ends its stream of changes when the task is cancelled, also while nothing happens", arguments: CarrierKind.allCases
  )
  func cancelledStream(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    let other = try carrier.other()
    try await carrier.swapHead(from: nil, to: [0])
    let log = EventLog(other, after: try await other.contents().revision)
    let task = Task { try await log.next() }
    try await carrier.swapHead(from: [0], to: [1])
    #expect(try await task.value != nil)
    let waiting = Task { try await log.next() }
    waiting.cancel()
    #expect(try await waiting.value == nil)
  }

  @Test("does nothing for a task that was cancelled before", arguments: CarrierKind.allCases)
  func cancelledCommit(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await carrier.swapHead(from: nil, to: [1])
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try await carrier.read(["head"]).isEmpty)
  }

  // MARK: - Limits

  @Test("refuses what is too large before anything is sent", arguments: CarrierKind.allCases)
  func tooLarge(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    let limits = carrier.limits
    let large = limits.objectByteCount + 1
    await #expect(throws: CarrierError.tooLarge(name: "records/a", byteCount: large, limit: limits.objectByteCount)) {
      try await carrier.swapHead(from: nil, to: [1], [.put("records/a", .init(repeating: 0, count: large))])
    }
    let count = limits.operationCount + 1
    await #expect(throws: CarrierError.tooManyChanges(count: count, limit: limits.operationCount)) {
      try await carrier.swapHead(from: nil, to: [1], (1..<count).map { .put("records/\($0)", []) })
    }
    let parts = limits.requestByteCount / limits.objectByteCount + 1
    let object = [UInt8](repeating: 0, count: limits.objectByteCount)
    await #expect {
      try await carrier.swapHead(from: nil, to: [1], (0..<parts).map { .put("records/\($0)", object) })
    } throws: { error in
      guard case .tooLarge(nil, let byteCount, limits.requestByteCount) = error as? CarrierError else { return false }
      return byteCount > limits.requestByteCount
    }
    #expect(try await carrier.contents().objects.isEmpty)
  }

  @Test("accepts objects of the largest size", arguments: CarrierKind.allCases)
  func largest(_ kind: CarrierKind) async throws {
    let carrier = try await TestCarrier(kind)
    let limits = carrier.limits
    let object = [UInt8](repeating: 7, count: limits.objectByteCount)
    #expect(try await carrier.swapHead(from: nil, to: [1], [.put("records/large", object)]))
    #expect(try await carrier.bytes("records/large") == object)
    let changes = (1..<limits.operationCount).map { CarrierChange.put("records/\($0)", [1]) }
    #expect(try await carrier.swapHead(from: [1], to: [2], changes))
    #expect(try await carrier.contents().objects.count == limits.operationCount + 1)
    // A request of many long names and as many bytes as are allowed.
    let names = (0..<limits.operationCount - 1).map {
      String("\($0)-\(String(repeating: "n", count: 200))".prefix(200))
    }
    let space = limits.requestByteCount - names.count * 200 - 100
    let bytes = [UInt8](repeating: 5, count: min(space / names.count, limits.objectByteCount))
    #expect(try await carrier.swapHead(from: [2], to: [3], names.map { .put($0, bytes) }))
  }
}
