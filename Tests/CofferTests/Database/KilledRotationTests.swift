import CofferStorage
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance

@Suite("A rotation that is killed") struct KilledRotationTests {
  private static let isSoak = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil

  @Test("loses nothing, 4 times with 2 MB (50 times with 20 MB with COFFER_SOAK), beside a reader and writer")
  func killed() throws {
    let store = try TemporaryStore()
    let (rounds, megabytes) = Self.isSoak ? (50, 20) : (4, 2)
    let count = megabytes * 500
    try store.open().makeConnection().readWrite { transaction in
      for number in 0..<count {
        try transaction.setObject(Data(repeating: UInt8(number & 255), count: 2000), forKey: "\(number)")
      }
    }
    let neighbour = try store.startWorker("churn")
    for round in 0..<rounds {
      // From the first pages that it rewrites to nine tenths of its work; the new key is in force then, and the old one needed.
      let rotator = try store.startWorker("rotate", "\(0.9 * Double(round) / Double(rounds - 1))")
      #expect(rotator.readLine() == "begins" && rotator.readLine() == "there")
      // Before it is killed: the neighbour may continue at once, and be done before this looks.
      #expect(try Store.peekEnvelope(at: store.path).epochs.count > 1)
      rotator.kill()
      // The neighbour has committed so much, and reads all of it.
      try neighbour.write("check")
      let answer = try #require(neighbour.readLine())
      #expect(answer.hasPrefix("whole"), "\(answer)")
      // The next writer continues it: the neighbour eventually, or one that is asked to.
      let database = try store.open()
      if Bool.random() { try database.rotate() }
      try database.makeConnection().readWrite { try $0.setObject("next", forKey: "next") }
      try database.close()
    }
    try neighbour.write("end")
    _ = neighbour.readLine()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject("last", forKey: "last") }
    try database.close()
    let reopened = try store.open()
    let whole = try reopened.makeConnection().read { transaction in
      try (0..<count).filter {
        try transaction.object(forKey: "\($0)") == Data(repeating: UInt8($0 & 255), count: 2000)
      }.count
    }
    #expect(whole == count)
    #expect(try reopened.verify().problems.isEmpty)
    let envelope = try Store.peekEnvelope(at: store.path)
    #expect(envelope.epochs.count == 1)
    #expect(try StoreFiles.epochs(store) == [envelope.currentEpoch])
  }
}
