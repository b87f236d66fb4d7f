import ArgumentParser
import Coffer

/// The command `prefs compact`.
struct CompactCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Release the space of removed values.",
    discussion: """
      Rebuilds the store file. This needs space for a second copy, and other writers wait meanwhile.

      Examples:
        prefs compact
      """)

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let session = try CommandSession(common)
    let before = StoreLocation.byteCount(session.path)
    try session.using(try session.open()) { try $0.makeConnection().vacuum() }
    let sizes = [before, StoreLocation.byteCount(session.path)].map(DisplayText.byteCount)
    common.note("the store took \(sizes[0]), and takes \(sizes[1]).")
  }
}
