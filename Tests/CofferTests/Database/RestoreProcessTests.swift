import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

@Suite("A restore beside other processes", .serialized) struct RestoreProcessTests {
  private static let isSoak = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil

  private let store: TemporaryStore
  private var backup: String { store.folder + "/backup.coffer" }

  /// A backup that is a copy of the file: its log would be of the same keys.
  init() throws {
    store = try TemporaryStore()
    let database = try store.open()
    try database.makeConnection().readWrite { try $0.setObject("old", forKey: "k") }
    try database.close()
    try FileManager.default.copyItem(atPath: store.path, toPath: backup)
  }

  // MARK: Many

  enum Company: String, CaseIterable, CustomTestStringConvertible {
    case shortPrograms, allPrograms

    var testDescription: String { rawValue }
    var force: String { self == .allPrograms ? "force" : "-" }
  }

  @Test(
    "loses no commit, damages nothing and ends no program, 20 times each (5,000 with COFFER_SOAK, at syncs of 0 to 2 s)",
    arguments: Company.allCases)
  func many(_ company: Company) throws {
    // Each with this many restores at most so many milliseconds per sync.
    let rounds: [(count: Int, delay: Int)] =
      Self.isSoak ? [(3800, 0), (1000, 5), (190, 50), (10, 2000)] : [(15, 0), (5, 5)]
    for (count, delay) in rounds { try run(company, count, delay) }
  }

  private func run(_ company: Company, _ count: Int, _ delay: Int) throws {
    let prefixes = ["a.", "b.", "c."].map { "\(delay).\($0)" }
    var others = try prefixes.dropLast().map { try store.startWorker("write-shortly", $0) }
    if company == .allPrograms {
      others.append(try store.startWorker("write-long", prefixes[2]))
      others.append(try store.startWorker("hold-snapshots"))
    }
    var (kept, acknowledged): (Set<String>, [String]) = ([], [])
    let lines = DispatchQueue(label: "lines")
    let readers = DispatchGroup()
    nonisolated(unsafe) var written: [String] = []
    for other in others {
      readers.enter()
      Thread.detachNewThread {
        while let line = other.readLine() { lines.sync { written.append(line) } }
        readers.leave()
      }
    }
    let restorer = try store.startWorker("restore-often", backup, company.force, "\(count)", "\(delay)")
    var last = ""
    while let line = restorer.readLine() {
      if line.hasPrefix("has ") { kept.insert(String(line.dropFirst(4))) } else { last = line }
      if !line.hasPrefix("has "), line != "done" { Issue.record("\(line)") }
    }
    #expect(restorer.end() == 0 && last == "done")
    for other in others { try other.input.close() }
    readers.wait()
    for other in others { #expect(other.end() == 0) }
    for line in written {
      if line.hasPrefix("wrote ") { acknowledged.append(String(line.dropFirst(6))) } else { Issue.record("\(line)") }
    }
    for line in try store.worker("look-at").text.split(separator: "\n") {
      if line.hasPrefix("has ") { kept.insert(String(line.dropFirst(4))) } else { Issue.record("\(line)") }
    }
    let lost = acknowledged.filter { !kept.contains($0) }
    #expect(lost.isEmpty, "\(lost.prefix(10))")
    print("restored \(count) times beside \(company), syncs up to \(delay) ms: \(acknowledged.count) commits")
  }

  // MARK: Kills

  enum Situation: String, CaseIterable, CustomTestStringConvertible {
    case closed, crashed, open, read, otherKey

    var testDescription: String { rawValue }
    var force: String { self == .open || self == .read ? "force" : "-" }
  }

  @Test(
    "that is killed before any of its steps leaves the old store with all commits or the new one, and programs go on",
    arguments: Situation.allCases)
  func killed(_ situation: Situation) throws {
    var number = 0
    var isCut = true
    while isCut {
      number += 1
      isCut = try cut(situation, number)
      try #require(number < 60, "it does not end")
    }
    #expect(number > 8)
  }

  /// - Returns: Whether the restore was cut off.
  private func cut(_ situation: Situation, _ number: Int) throws -> Bool {
    let place = try TemporaryStore()
    for (from, to) in [(store.path, place.path), (store.keyFile, place.keyFile)] {
      try? FileManager.default.removeItem(atPath: to)
      try FileManager.default.copyItem(atPath: from, toPath: to)
    }
    let writer = try place.startWorker("write-long", "w.")
    #expect(writer.readLine() == "wrote w.1")
    let reader = situation == .read ? try place.startWorker("hold-snapshot") : nil
    if let reader { #expect(reader.readLine() == "pinned") }
    switch situation {
    case .crashed: writer.kill()
    case .closed, .otherKey: try writer.input.close()
    case .open, .read: break
    }
    var acknowledged = 1
    if situation != .open, situation != .read {
      while let line = writer.readLine() { acknowledged = Int(line.dropFirst(8)) ?? 0 }
      writer.end()
    }
    if situation == .otherKey {
      // The backup's key opens nothing there; its owner has another one now.
      let other = place.folder + "/other"
      try KeyFile.create(at: other)
      let database = try place.open()
      try database.changeSlot(0, to: .keyFile(other))
      try database.makeConnection().readWrite { try $0.setObject(1, forKey: "w.0", inCollection: "kept") }
      try database.close()
    }
    let restore = try place.worker("cut-restore", backup, situation.force, "\(number)")
    guard restore.status == -SIGKILL || restore.status == 0 else {
      Issue.record("\(situation), step \(number): it ended with \(restore.status)")
      return false
    }
    if situation == .open || situation == .read {
      // It goes on, in the store that has the name.
      for _ in 0..<3 {
        let line = writer.readLine() ?? "nothing"
        #expect(line.hasPrefix("wrote "), "\(situation), step \(number): \(line)")
      }
      try writer.input.close()
      while let line = writer.readLine() { acknowledged = Int(line.dropFirst(8)) ?? acknowledged }
      #expect(writer.end() == 0)
    }
    try reader?.input.close()
    try check(place, situation, number, acknowledged)
    // It can be done again.
    let again = try place.worker("restore", backup)
    #expect(again.status == 0, "\(situation), step \(number): \(again.text)")
    return restore.status != 0
  }

  private func check(
    _ place: TemporaryStore, _ situation: Situation, _ number: Int, _ acknowledged: Int
  ) throws {
    let why: Comment = "\(situation), step \(number)"
    let asides = try FileManager.default.contentsOfDirectory(atPath: place.folder).filter {
      $0.hasSuffix("-replaced-1")
    }
    let key = FileManager.default.fileExists(atPath: place.folder + "/other") ? place.folder + "/other" : place.keyFile
    var found: Set<String> = []
    for path in [place.path] + asides.map({ place.folder + "/" + $0 }) {
      if path == place.path {
        var status = stat()
        #expect(lstat(path, &status) == 0 && status.st_nlink == 1, why)
      }
      let opening = try? Database.open(at: path, key: .keyFile(key))
      let database = try opening ?? Database.open(at: path, key: place.key)
      #expect(try database.status().logProblem == nil, why)
      #expect(try database.verify().problems.isEmpty, why)
      let keys = try database.makeConnection().read { try $0.allKeys(inCollection: "kept") }
      if asides.isEmpty { #expect(keys.count >= acknowledged, why) }
      found.formUnion(keys)
      try database.close()
    }
    for commit in 1...acknowledged { #expect(found.contains("w.\(commit)"), why) }
  }
}
