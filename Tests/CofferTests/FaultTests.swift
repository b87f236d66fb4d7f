import Coffer
import CofferStorage
import Foundation
import TestSupport
import Testing

/// System calls and allocations that fail one after the other; see TESTING.md.
///
/// `make soak` lets each one fail; otherwise some, spread over the session.
@Suite("A fault") struct FaultTests {
  private static let isSoak = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil

  @Test(
    "of the disk ends in an error that names it, loses nothing, and the operation can be repeated",
    arguments: FaultPlan.Kind.allCases, [false, true])
  func disk(_ kind: FaultPlan.Kind, isLasting: Bool) throws {
    // About five of each kind.
    let step = Self.isSoak ? 1 : kind == .inputOutput ? 173 : 47
    var counts: [String: Int] = [:]
    for number in stride(from: min(step, 11), to: .max, by: step) {
      let run = try FaultRun(FaultPlan(kind: kind, number: number, isLasting: isLasting))
      if run.isUntouched { break }
      counts[run.failure == nil ? "no step fails" : "a step fails", default: 0] += 1
    }
    print("faults, \(kind)\(isLasting ? ", lasting" : ""): \(counts)")
    #expect(counts.values.reduce(0, +) >= 3)
  }

  @Test("of reading the source of a backup names the source, not the copy")
  func backup() throws {
    let folder = try ScratchFolder()
    let recorder = RecordingVFS()
    let key = KeySource.key(try .random(count: 32))
    let vfs = recorder.encrypting()
    let writer = try Database.create(at: folder.file("settings.coffer"), key: key, options: .quiet, vfs: vfs)
    try writer.makeConnection().readWrite { try $0.setObject(Data(count: 400_000), forKey: "key") }
    // One whose connection has read nothing yet.
    let database = try Database.open(at: writer.path, key: key, options: .quiet, vfs: vfs)
    let faults: [(RecordingVFS.Fault, (CofferError) -> Bool)] = [
      (.error(errno: EIO), { if case .inputOutput(database.path, _) = $0 { true } else { false } }),
      (.half(errno: 0), { if case .damaged(let part, _) = $0 { part.hasPrefix("page") } else { false } }),
    ]
    // The very first read, which goes to the log.
    let connection = try writer.makeConnection()
    try connection.readWrite { try $0.setObject(1, forKey: "logged") }
    let ofLog = Self.failReads(of: "/settings.coffer-wal", in: recorder, .error(errno: EIO))
    #expect(throws: CofferError.self) { try database.backup(to: folder.file("backup.coffer"), key: key) }
    ofLog.stop()
    for (fault, isRight) in faults {
      var injector: FaultInjector?
      let error = #expect(throws: CofferError.self) {
        // After the first pages.
        try database.backup(to: folder.file("backup.coffer"), key: key) { _ in
          injector = injector ?? Self.failReads(of: "/settings.coffer", in: recorder, fault)
        }
      }
      injector?.stop()
      #expect(error.map(isRight) ?? false, "\(String(describing: error))")
    }
    try database.backup(to: folder.file("backup.coffer"), key: key)
    try database.close()
    try withExtendedLifetime(connection) { try writer.close() }
  }

  @Test("of reading the log notice does not damage it: the store is not taken for one that was written over")
  func notice() throws {
    let folder = try ScratchFolder()
    let recorder = RecordingVFS()
    let key = KeySource.key(try .random(count: 32))
    let database = try Database.create(
      at: folder.file("settings.coffer"), key: key, options: .quiet, vfs: recorder.encrypting())
    let connection = try database.makeConnection()
    for number in 1...4 {
      try connection.readWrite { try $0.setObject(number, forKey: "key") }
      let injector = FaultInjector(in: recorder, count: .max) { call in
        call.kind == .read && call.offset == LogNotice.range.lowerBound ? .half(errno: 0) : nil
      }
      // Where only the second copy of the envelope cannot be written, this succeeds.
      try? database.setLabel("\(number)", forSlot: 0)
      injector.stop()
      #expect(!injector.failedCalls.isEmpty)
      #expect(try connection.read { try $0.object(forKey: "key") } == number)
    }
    try connection.readWrite { try $0.setObject(5, forKey: "key") }
    #expect(try database.verify().problems.isEmpty)
    try database.close()
  }

  private static func failReads(
    of suffix: String, in recorder: RecordingVFS, _ fault: RecordingVFS.Fault
  ) -> FaultInjector {
    FaultInjector(in: recorder, count: .max) { call in
      call.kind == .read && call.path.hasSuffix(suffix) ? fault : nil
    }
  }

  #if os(Linux)
    @Test("of a signal that interrupts system calls has no effect")
    func interrupted() throws {
      let worker = try TemporaryStore().worker("interrupt-calls")
      #expect(worker.status == 0)
      #expect(try #require(Int(worker.text.trimmingCharacters(in: .whitespacesAndNewlines))) > 100)
    }

    @Test(
      "of an allocation in SQLite or OpenSSL ends in an error, loses nothing, and the operation can be repeated",
      arguments: AllocationFaults.Library.allCases, ["once", "lasting"])
    func allocation(_ library: AllocationFaults.Library, _ manner: String) throws {
      let step = library == .sqlite ? Self.isSoak ? 7 : 1999 : Self.isSoak ? 1 : 107
      let store = try TemporaryStore()
      let worker = try store.worker("fail-allocations", library.rawValue, manner, "3", "\(step)", "100000")
      let outcomes = worker.text.split(separator: "\n")
      #expect(worker.status == 0 && outcomes.last?.hasSuffix("untouched") ?? false)
      for outcome in outcomes { #expect(!outcome.contains("FAILED"), "\(outcome)") }
      let errors = outcomes.count { $0.contains("survived") && !$0.contains("without an error") }
      print("faults, allocations of \(library), \(manner): \(outcomes.count - 1), of which \(errors) fail a step")
      #expect(errors >= 1)
    }
  #endif
}
