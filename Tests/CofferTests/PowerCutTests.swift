import Foundation
import TestSupport
import Testing

/// The state of a store after a power cut at any point; see TESTING.md.
///
/// `make soak` looks at every disk; otherwise at some, spread evenly.
@Suite("A power cut") struct PowerCutTests {
  private static let isSoak = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil

  @Test(
    "loses nothing that was promised, leaves nothing partial, and a usable store",
    arguments: PowerCutScenario.allCases)
  func cut(_ scenario: PowerCutScenario) throws {
    let script = try PowerCutScript()
    try scenario.run(script)
    for seed in Self.isSoak ? 1...3 : 1...1 as ClosedRange<UInt64> {
      var cuts = try PowerCuts(script)
      try cuts.run(seed: seed, subsetCount: Self.isSoak ? 8 : 2, limit: Self.isSoak ? nil : 50)
      print("power cut, \(scenario): seed \(seed), \(cuts.cutCount) cuts, \(cuts.stateCount) different disks")
      #expect(cuts.stateCount >= 40)
    }
  }

  @Test("is noticed by these tests if a disk reports syncs of the log, or of the store, without making them")
  func lies() throws {
    let script = try PowerCutScript()
    try PowerCutScenario.checkpoints.run(script)
    for suffix in ["-wal", "settings.coffer"] {
      var cuts = try PowerCuts(script) { path, _ in path.hasSuffix(suffix) }
      #expect(throws: PowerCuts.Failure.self, "\(suffix)") { try cuts.run(seed: 1, subsetCount: 2, limit: nil) }
    }
  }

  @Test("is noticed by these tests if the header of a log that starts over is not synced before its frames")
  func headers() throws {
    let script = try PowerCutScript()
    try PowerCutScenario.restarts.run(script)
    var cuts = try PowerCuts(script) { path, previous in
      guard case .write(let written, 0, let bytes)? = previous, written == path else { return false }
      return path.hasSuffix("-wal") && bytes.count == 32 && bytes.first == 0x37
    }
    #expect(throws: PowerCuts.Failure.self) { try cuts.run(seed: 1, subsetCount: 8, limit: nil) }
  }

  @Test("is taken for a rollback by these tests if the record of the store is ahead of the disk")
  func witnessAhead() throws {
    let script = try PowerCutScript()
    try PowerCutScenario.commits.run(script)
    var cuts = try PowerCuts(script) { path, _ in path.hasSuffix("-wal") }
    let failure = #expect(throws: PowerCuts.Failure.self) { try cuts.run(seed: 1, subsetCount: 2, limit: nil) }
    // Or the log itself shows it: a later frame says that a lost one had been synced.
    let signs = ["older than the one last used here", "alarm: The log did not authenticate"]
    #expect(signs.contains { failure?.description.contains($0) ?? false })
  }
}
