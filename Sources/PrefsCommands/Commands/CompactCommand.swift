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
    let isWhole = try session.using(try session.open()) { database in
      let connection = try database.makeConnection()
      try connection.vacuum()
      // The file shrinks only then; closing does the same, but not while others have the store open.
      return try connection.checkpoint()
    }
    guard isWhole else {
      return common.note(
        "rebuilt the store. The file shrinks when the programs that still read the old one have finished.")
    }
    let sizes = [before, StoreLocation.byteCount(session.path)].map(DisplayText.byteCount)
    common.note("the store took \(sizes[0]) with its log, and takes \(sizes[1]).")
  }
}
