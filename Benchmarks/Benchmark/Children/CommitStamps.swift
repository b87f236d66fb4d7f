import ArgumentParser
import Coffer
import Foundation

/// The other process of `Latency`: commits with pauses, and prints the number, start and end of each commit.
struct CommitStamps: ParsableCommand {
  static let configuration = CommandConfiguration(shouldDisplay: false)

  @Argument var path: String
  @Argument var count: Int

  func run() throws {
    let key = KeySource.keyFile(CofferPeer.keyFile(of: path))
    let connection = try Database.open(at: path, key: key).makeConnection()
    for number in 0..<count {
      let begun = Measure.nanoseconds()
      try connection.readWrite { try $0.setObject(number, forKey: "k") }
      let returned = Measure.nanoseconds()
      let snapshot = try connection.read { try $0.commitNumber() }
      ChildProcess.say("\(snapshot) \(begun) \(returned)")
      usleep(2000)
    }
  }
}
