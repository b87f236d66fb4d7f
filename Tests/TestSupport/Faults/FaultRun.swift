import Coffer
import CofferCrypto
import CofferMaintenance
import CofferStorage
import Foundation

/// One session in which a call fails, with all checks that must hold afterwards.
package struct FaultRun {
  /// A violated check.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Whether the session ended before the call was reached.
  package private(set) var isUntouched = false
  /// The step that failed, and its error; nil when none did.
  package private(set) var failure: (step: FaultSession.Step, error: String)?
  private let plan: FaultPlan
  private let recorder = RecordingVFS()
  private let folder: ScratchFolder
  private let session: FaultSession
  private var text: String {
    "\(plan.kind.rawValue) at call \(plan.number)\(plan.isLasting ? " and later" : "")"
  }

  /// Runs the session.
  ///
  /// - Throws: `Failure` when an error was of the wrong kind, or data was lost.
  package init(_ plan: FaultPlan) throws {
    self.plan = plan
    folder = try ScratchFolder()
    let keys = try (0..<4).map { _ in KeySource.key(try .random(count: 32)) }
    session = FaultSession(in: folder.path, vfs: recorder.encrypting(), keys: keys)
    let injector = FaultInjector(plan, in: recorder)
    // The recorder itself stays for the life of the process.
    defer { recorder.forgetEvents() }
    for step in FaultSession.Step.allCases {
      do {
        try session.perform(step)
      } catch {
        failure = (step, "\(error)")
        try check(error, of: step, injector.failedCalls)
        // Half of the time the program gives up before the disk has recovered.
        if plan.isLasting, plan.number % 2 == 0 { try? session.close() }
        injector.stop()
        try checkStore("after \(step)", newest: session.states.count - 1)
        try retry(step)
        try checkDisk("after \(step) was tried again")
      }
    }
    isUntouched = injector.failedCalls.isEmpty
    injector.stop()
    try checkStore("at the end", newest: session.states.count - 1, isSettled: true)
    try checkDisk("at the end")
  }

  private func fail(_ what: String, _ call: RecordingVFS.Call? = nil) -> Failure {
    let place = call.map {
      " (\($0.kind) of \($0.path.split(separator: "/").last ?? ""), \($0.byteCount) at \($0.offset))"
    }
    return Failure(
      description: "\(text)\(place ?? "")\(failure.map { ", \($0.step): \($0.error)" } ?? ""): \(what)")
  }

  private func retry(_ step: FaultSession.Step) throws {
    do {
      try session.perform(step)
    } catch {
      throw fail("tried again, it fails: \(error)")
    }
  }

  private func check(_ error: any Error, of step: FaultSession.Step, _ calls: [RecordingVFS.Call]) throws {
    guard let call = calls.first else { throw fail("\(step) fails without a fault: \(error)") }
    let isRight =
      if let error = error as? CofferError {
        plan.explains(error)
      } else if let error = error as? StorageError, step == .checkpoint {
        // The only step that uses the storage layer directly.
        plan.explains(error)
      } else {
        false
      }
    guard isRight else { throw fail("it is the wrong error", call) }
  }

  private func checkStore(_ when: String, newest: Int, isSettled: Bool = false) throws {
    guard access(session.path, F_OK) == 0 else {
      guard session.states.count == 1 else { throw fail("\(when), the store is gone") }
      return
    }
    do {
      // Also through the recorder: what this database checkpoints is on the disk.
      let database = try Database.open(at: session.path, key: session.keys[0], options: .quiet, vfs: session.vfs)
      let contents = try database.contents().withoutScratch
      let allowed = isSettled ? newest...newest : max(0, newest - 1)...newest
      guard allowed.contains(where: { session.states[$0] == contents }) else {
        throw fail("\(when), it holds \(contents)")
      }
      let problems = try database.verify().problems
      guard problems.isEmpty else { throw fail("\(when), verified: \(problems)") }
      try database.close()
    } catch let error as CofferError {
      throw fail("\(when), the store: \(error)")
    }
  }

  /// The durable contents have everything promised: no later sync hides a failed one.
  private func checkDisk(_ when: String) throws {
    let place = try ScratchFolder()
    try Disk.write(Disk(recorder).surely, of: folder, to: place.path)
    let path = place.path + session.path.dropFirst(folder.path.count)
    let inspection = StoreInspection(keys: session.keys, vaultKey: session.keys[0])
    switch inspection.find(at: path) {
    case .absent:
      // If its folder could not be synced, a store's name becomes durable with the first sync of its log.
      guard session.durableState == 0 else { throw fail("\(when), the disk has no store") }
    case .broken(let why): throw fail("\(when), on the disk: \(why)")
    case .whole(let contents, _):
      let found = session.states.indices.filter { session.states[$0] == contents.withoutScratch }
      let promised = session.durableState..<session.states.count
      guard found.contains(where: promised.contains) else {
        throw fail("\(when), the disk holds state \(found), and \(promised) was promised")
      }
    }
  }
}
