import ArgumentParser
import Coffer

/// Opens settings, declared or not, and reads a first one, as the first thing that a process does; says how many
/// microseconds it took.
struct DeclareOnce: ParsableCommand {
  static let configuration = CommandConfiguration(shouldDisplay: false)

  @Argument var store: String
  @Argument var keyFile: String
  @Argument var contender: String

  func run() throws {
    // The keys are constants of the program, declared or not.
    let settings = DeclaredSettings.settings()
    let isDeclaring = contender == DeclaredSettings.declaring
    let start = Measure.nanoseconds()
    let preferences = try Preferences.open(
      application: "shop", at: store, key: .keyFile(keyFile), layers: [],
      declaring: isDeclaring ? settings : nil)
    let rate = preferences[DeclaredSettings.rate]
    let elapsed = Measure.nanoseconds() - start
    try require(rate == 7, "another value was read")
    try preferences.close()
    ChildProcess.say("\(Double(elapsed) / 1000)")
  }
}
