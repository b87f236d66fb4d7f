import Coffer
import CofferCrypto
import CofferMaintenance
import CofferStorage
import Foundation

/// Cuts the power after each operation of a recorded script, and checks every disk state that this may leave.
package struct PowerCuts {
  /// A disk state that violates a promise.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// The number of distinct disk states checked.
  package private(set) var stateCount = 0
  /// The number of operations after which the power was cut.
  package private(set) var cutCount = 0
  private let script: PowerCutScript
  private let folder: ScratchFolder
  private let events: [RecordingVFS.Event]
  private var found: [Int: [String: FoundStore]] = [:]

  /// - Parameter lies: Which syncs the disk reports without making them, by the file and what happened before.
  package init(
    _ script: PowerCutScript, lies: (_ path: String, _ previous: RecordingVFS.Event?) -> Bool = { _, _ in false }
  ) throws {
    self.script = script
    folder = try ScratchFolder()
    var previous: RecordingVFS.Event?
    events = script.recorder.events.filter { event in
      defer { previous = event }
      return if case .sync(let path) = event { !lies(path, previous) } else { true }
    }
  }

  /// - Parameters:
  ///   - subsetCount: How many random parts of the unsynced data are tried at each cut.
  ///   - limit: How many images to look at, evenly spread over the script; nil for all.
  /// - Throws: `Failure` with the cut, the seed and what was found.
  package mutating func run(seed: UInt64, subsetCount: Int, limit: Int?) throws {
    let imageCount = limit == nil ? 0 : Self.count(events, seed, subsetCount)
    let step = max(1, imageCount / (limit ?? 1))
    var generator = SplitMix64(state: seed)
    var disk = Disk()
    var expectation = 0
    var number = 0
    // The newest of all kept records requires the most of a disk.
    var witness: [UInt8]?
    for (index, event) in events.enumerated() {
      if case .mark(let mark) = event { expectation = mark }
      if case .witness(let record) = event { witness = record }
      guard disk.apply(event) else { continue }
      cutCount += 1
      try disk.images(subsetCount: subsetCount, using: &generator) { image in
        number += 1
        guard number % step == 0 else { return }
        if let problem = try problem(of: image, witness, script.expectations[expectation]) {
          throw Failure(
            description: "seed \(seed), image \(number), cut after event \(index) (\(Self.text(event))): \(problem)")
        }
      }
    }
  }

  private static func count(_ events: [RecordingVFS.Event], _ seed: UInt64, _ subsetCount: Int) -> Int {
    var generator = SplitMix64(state: seed)
    var disk = Disk()
    var count = 0
    for event in events where disk.apply(event) {
      disk.images(subsetCount: subsetCount, using: &generator) { _ in count += 1 }
    }
    return count
  }

  private static func text(_ event: RecordingVFS.Event) -> String {
    guard case .write(let path, let offset, let bytes) = event else { return "\(event)" }
    return "write(\(path), \(bytes.count) bytes at \(offset))"
  }

  // MARK: Looking

  private mutating func problem(
    of image: Disk.Image, _ witness: [UInt8]?, _ expected: [String: StoreExpectation]
  ) throws -> String? {
    let stores = try find(image, witness)
    for (path, expectation) in expected.sorted(by: { $0.key < $1.key }) {
      if let problem = expectation.problem(of: stores[path] ?? .absent, states: script.states) {
        return "\(path): \(problem)"
      }
    }
    return nil
  }

  /// What is found on a disk with this record of the store; each is checked once.
  private mutating func find(_ image: Disk.Image, _ witness: [UInt8]?) throws -> [String: FoundStore] {
    var hasher = Hasher()
    hasher.combine(witness)
    for (path, bytes) in image.sorted(by: { $0.key < $1.key }) {
      hasher.combine(path)
      bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
    let hash = hasher.finalize()
    if let stores = found[hash] { return stores }
    stateCount += 1
    let place = folder.file("\(stateCount)")
    defer { try? FileManager.default.removeItem(atPath: place) }
    try Disk.write(image, of: script.folder, to: place)
    var stores: [String: FoundStore] = [:]
    for path in [script.path, script.backupPath, script.replacedPath] {
      stores[path] = StoreInspection(script, witness: path == script.path ? witness : nil).find(
        at: place + path.dropFirst(script.folder.path.count))
    }
    found[hash] = stores
    return stores
  }
}

/// Opens a store as it was left, with everything that can be said about it.
package struct StoreInspection {
  private let keys: [KeySource]
  private let vaultKey: KeySource
  private let options: Database.Options

  /// - Parameter witness: The record of the store.
  package init(_ script: PowerCutScript, witness: [UInt8]?) {
    keys = script.keys
    vaultKey = script.vaultKey
    options = .quiet.anchored(RecordedAnchor(witness))
  }

  package init(keys: [KeySource], vaultKey: KeySource) {
    self.keys = keys
    self.vaultKey = vaultKey
    options = .quiet
  }

  /// Checks the store, verifies it completely, and keeps writing.
  package func find(at path: String) -> FoundStore {
    guard access(path, F_OK) == 0 else { return .absent }
    do {
      return try inspect(path)
    } catch {
      return .broken("\(error)")
    }
  }

  private func inspect(_ path: String) throws -> FoundStore {
    let opening = try Set(keys.indices.filter { try opens(path, keys[$0]) })
    guard let key = opening.min() else { return .broken("no key opens it") }
    let database = try open(path, keys[key])
    let contents = try database.contents()
    // What a power cut tore was not synced.
    if let alarm = try database.status().logProblem { return .broken("alarm: \(alarm)") }
    let report = try database.verify()
    guard report.problems.isEmpty else { return .broken("verified: \(report.problems)") }
    try database.makeConnection().readWrite { try $0.setObject("yes", forKey: "went on", inCollection: "afterwards") }
    try database.close()
    let reopened = try open(path, keys[key])
    var later = try reopened.contents()
    guard later.removeValue(forKey: "afterwards") == ["went on": .string("yes")], later == contents else {
      return .broken("what was committed afterwards is not there, or something else is")
    }
    let problems = try reopened.verify().problems
    guard problems.isEmpty else { return .broken("verified afterwards: \(problems)") }
    try reopened.close()
    return .whole(contents, keys: opening)
  }

  private func open(_ path: String, _ key: KeySource) throws -> Database {
    let database = try Database.open(at: path, key: key, options: options)
    if try database.vault.exists() { try database.vault.unlock(vaultKey) }
    return database
  }

  private func opens(_ path: String, _ key: KeySource) throws -> Bool {
    do {
      _ = try Store.open(at: path, key: key)
      return true
    } catch StorageError.wrongKey {
      return false
    }
  }
}
