import ArgumentParser
import Coffer

/// The other process of `CoherentReads`: commits with pauses until its input ends, and prints how often.
struct CommitNowAndThen: ParsableCommand {
  static let configuration = CommandConfiguration(shouldDisplay: false)

  @Argument var path: String
  @Argument var keyFile: String

  func run() throws {
    let connection = try Database.open(at: path, key: .keyFile(keyFile)).makeConnection()
    var number: Int = try connection.read { transaction in
      try transaction.object(forKey: CoherentReads.otherKey, inCollection: Samples.collection) ?? 0
    }
    let first = number + 1
    repeat {
      number += 1
      try connection.readWrite {
        try $0.setObject(number, forKey: CoherentReads.otherKey, inCollection: Samples.collection)
      }
      if number == first { ChildProcess.say("ready") }
    } while !ChildProcess.isInputAtEnd(afterMilliseconds: CoherentReads.pauseMilliseconds)
    ChildProcess.say("\(number)")
  }
}
