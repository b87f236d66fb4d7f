import Foundation
import Testing

@Suite("A rolled back store in the tool")
struct FreshnessTests {
  private let tool: Tool

  init() throws { tool = try Tool() }

  private var state: String { tool.path(".local/state/coffer") }

  private func copy(_ from: String, _ to: String) throws {
    try? FileManager.default.removeItem(atPath: to)
    try FileManager.default.copyItem(atPath: from, toPath: to)
  }

  @Test("Is refused with 17 by every command, until doctor accepts it")
  func refused() throws {
    try tool.succeed("set", "a", "1")
    let older = tool.path("older")
    try copy(tool.store, older)
    try tool.succeed("set", "a", "2")
    #expect(try FileManager.default.contentsOfDirectory(atPath: state).count == 1)
    try copy(older, tool.store)
    for arguments in [["get", "a"], ["set", "a", "3"], ["list"], ["doctor"], ["log"], ["backup", tool.path("b")]] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 17 && run.text.isEmpty, "\(arguments)")
      #expect(run.message.contains("older than the one last used here"))
      #expect(run.message.contains("prefs doctor --accept-older"))
    }
    #expect(try tool.run("get", "a", "--json").text.contains(#""error":"rolledBack""#))
    #expect(try tool.succeed("doctor", "--accept-older").contains("No problems found."))
    #expect(try tool.succeed("get", "a") == "1\n")
    try tool.succeed("set", "a", "4")
    try copy(older, tool.store)
    #expect(try tool.run("get", "a").code == 17)
  }

  @Test(
    "Is refused once the store was deleted and created again, as is a backup that was copied there; doctor accepts it")
  func anotherStore() throws {
    try tool.succeed("set", "a", "1")
    let (older, backup) = (tool.path("older"), tool.path("backup.coffer"))
    try tool.succeed("backup", backup)
    try copy(tool.store, older)
    try FileManager.default.removeItem(atPath: tool.store)
    #expect(try tool.run("set", "a", "2").code == 0)
    #expect(try tool.succeed("get", "a") == "2\n")
    for other in [older, backup] {
      try copy(other, tool.store)
      for arguments in [["get", "a"], ["set", "a", "3"], ["doctor"]] {
        let run = try tool.run(arguments, input: "".utf8)
        #expect(run.code == 17 && run.text.isEmpty, "\(arguments)")
        #expect(run.message.contains("another store than the one last used here"))
        #expect(run.message.contains("prefs doctor --accept-older"))
      }
    }
    #expect(try tool.run("get", "a", "--json").text.contains(#""error":"rolledBack""#))
    try tool.succeed("doctor", "--accept-older")
    #expect(try tool.succeed("get", "a") == "1\n")
    try tool.succeed("restore-store", older, "--force", "--accept-keys")
    #expect(try tool.succeed("get", "a") == "1\n")
    // What was destroyed leaves nothing to compare with.
    try tool.succeed("destroy", "--confirm", "settings.coffer")
    try copy(backup, tool.store)
    #expect(try tool.succeed("get", "a") == "1\n")
    try tool.succeed("destroy", "--confirm", "settings.coffer")
    try tool.succeed("init")
    #expect(try tool.run("get", "a").code == 3)
  }

  @Test("Is accepted by restore-store, even as a copy of the file")
  func restored() throws {
    try tool.succeed("set", "a", "1")
    let older = tool.path("older.coffer")
    try copy(tool.store, older)
    try tool.succeed("set", "a", "2")
    try tool.succeed("restore-store", older)
    #expect(try tool.succeed("get", "a") == "1\n")
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    try tool.succeed("set", "a", "3")
    try tool.succeed("restore-store", backup)
    #expect(try tool.succeed("get", "a") == "1\n")
  }

  @Test("Is refused as before after a restore that was refused or has failed, which leaves the record as it was")
  func refusedRestore() throws {
    try tool.succeed("set", "a", "1")
    let (older, backup, junk) = (tool.path("older"), tool.path("backup.coffer"), tool.path("junk.coffer"))
    try tool.succeed("backup", backup)
    try copy(tool.store, older)
    try tool.succeed("set", "a", "2")
    let newest = tool.path("newest")
    try copy(tool.store, newest)
    func record() throws -> [UInt8] {
      let name = try #require(FileManager.default.contentsOfDirectory(atPath: state).first)
      return try Array(Data(contentsOf: URL(fileURLWithPath: state + "/" + name)))
    }
    let before = try record()
    let watch = try Watch(tool)
    #expect(try tool.run("restore-store", backup).code == 10)
    #expect(try watch.end() == [])
    try Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }).write(to: URL(fileURLWithPath: junk))
    #expect(try tool.run("restore-store", junk).code != 0)
    var half = try Data(contentsOf: URL(fileURLWithPath: backup))
    half.removeLast(half.count / 2)
    try half.write(to: URL(fileURLWithPath: junk))
    #expect(try tool.run("restore-store", junk).code != 0)
    #expect(try record() == before)
    try copy(older, tool.store)
    #expect(try tool.run("get", "a").code == 17)
  }

  @Test("Says which slots, root key and unsealed collections a copy of the file brings back, and asks")
  func broughtBack() throws {
    let (older, other) = (tool.path("older.coffer"), tool.path("other.key"))
    try tool.succeed("set", "web/token", "1")
    try tool.succeed("key", "add", "--new-key-file", other, "--label", "Ada")
    try copy(tool.store, older)
    try tool.succeed("key", "remove", "Ada", "--force")
    try tool.succeed("rotate", "--new-root-key")
    try tool.succeed("seal", "web", "--vault-key-file", tool.path("vault"))
    let refused = try tool.run("restore-store", older, "--no-input")
    #expect(refused.code == 2)
    for part in ["\"Ada\"", "root key", "\"web\"", "--accept-keys", "Nothing was changed"] {
      #expect(refused.message.contains(part), "\(part): \(refused.message)")
    }
    #expect(try tool.run("get", "web/token", "--key-file", other).code != 0)
    let accepted = try tool.run("restore-store", older, "--accept-keys")
    #expect(accepted.code == 0 && accepted.message.contains("Ada"))
    #expect(try tool.succeed("get", "web/token", "--key-file", other) == "1\n")
    // One made by backup has nothing of this, and no slot but one.
    let backup = tool.path("backup.coffer")
    try tool.succeed("backup", backup)
    let lost = try tool.run("restore-store", backup, "--no-input")
    #expect(lost.code == 2 && lost.message.contains("\"Ada\") does not open it any more"), "\(lost.message)")
    try tool.succeed("key", "remove", "Ada", "--force")
    #expect(try tool.run("restore-store", backup, "--no-input").code == 0)
  }

  /// What is in the place of a record, and how doctor leaves it.
  enum Obstacle: String, CaseIterable, CustomTestStringConvertible {
    case folder, fullFolder, pipe, link, tooLong, unreadable, empty

    var testDescription: String { rawValue }
  }

  @Test(
    "Is not noticed without a record; what is in its place is reported by every command until doctor removes it",
    arguments: Obstacle.allCases)
  func obstacle(_ obstacle: Obstacle) throws {
    try tool.succeed("set", "a", "1")
    let name = try #require(FileManager.default.contentsOfDirectory(atPath: state).first)
    let file = state + "/" + name
    try FileManager.default.removeItem(atPath: file)
    switch obstacle {
    case .folder, .fullFolder:
      try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
      if obstacle == .fullFolder { _ = FileManager.default.createFile(atPath: file + "/x", contents: nil) }
    case .pipe: try #require(mkfifo(file, 0o600) == 0)
    case .link: try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: "/dev/null")
    case .tooLong: _ = FileManager.default.createFile(atPath: file, contents: Data(count: 5000))
    case .unreadable: _ = FileManager.default.createFile(atPath: file, contents: Data(count: 100))
    case .empty: _ = FileManager.default.createFile(atPath: file, contents: Data())
    }
    for arguments in [["get", "a"], ["list"], ["status"]] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 0 && run.message.contains("an older copy of the store would not be noticed"), "\(arguments)")
    }
    #expect(try tool.succeed("status", "--json").contains(#""recordProblem":"The record"#))
    let doctor = try tool.run("doctor")
    #expect(doctor.code == 7 && doctor.text.contains("It was removed; the next commit makes a new one."))
    try tool.succeed("set", "a", "2")
    #expect(try tool.run("doctor").code == 0 && tool.run("get", "a").message == "")
    let older = tool.path("older")
    try copy(tool.store, older)
    try tool.succeed("set", "a", "3")
    try copy(older, tool.store)
    #expect(try tool.run("get", "a").code == 17)
  }

  @Test("Is not noticed without a folder for records, which every command reports once, and none fails")
  func noFolder() throws {
    let parent = tool.path(".local/state")
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    for obstacle in ["file", "link", "file above"] {
      try? FileManager.default.removeItem(atPath: state)
      switch obstacle {
      case "file": _ = FileManager.default.createFile(atPath: state, contents: Data())
      case "link": try FileManager.default.createSymbolicLink(atPath: state, withDestinationPath: tool.path("none"))
      default:
        try FileManager.default.removeItem(atPath: parent)
        _ = FileManager.default.createFile(atPath: parent, contents: Data())
      }
      for arguments in [["set", "a", "1"], ["get", "a"], ["list"], ["status"]] {
        let run = try tool.run(arguments, input: "".utf8)
        #expect(run.code == 0, "\(obstacle): \(arguments)")
        let reports = run.message.components(separatedBy: "would not be noticed").count - 1
        #expect(reports == 1 && !run.message.contains("doctor"), "\(obstacle): \(arguments): \(run.message)")
      }
      let doctor = try tool.run("doctor")
      #expect(doctor.code == 7 && doctor.text.contains("It was left as it is"), "\(obstacle): \(doctor.text)")
    }
  }

  @Test("Is noticed after the next commit where the record was too long by a byte")
  func oneByte() throws {
    try tool.succeed("set", "a", "1")
    let name = try #require(FileManager.default.contentsOfDirectory(atPath: state).first)
    let handle = try #require(FileHandle(forWritingAtPath: state + "/" + name))
    try handle.seekToEnd()
    try handle.write(contentsOf: Data([0]))
    try handle.close()
    #expect(try tool.run("set", "a", "2").message.contains("would not be noticed"))
    let older = tool.path("older")
    try copy(tool.store, older)
    try tool.succeed("set", "a", "3")
    try copy(older, tool.store)
    #expect(try tool.run("get", "a").code == 17)
  }

  @Test("Is not checked for a store elsewhere, or one that was moved")
  func elsewhere() throws {
    let store = tool.path("elsewhere.coffer")
    try tool.succeed("set", "a", "1", "-d", store)
    let older = tool.path("older")
    try copy(store, older)
    try tool.succeed("set", "a", "2", "-d", store)
    try copy(older, store)
    #expect(try tool.succeed("get", "a", "-d", store) == "1\n")
    #expect(!tool.exists(state))
  }

  @Test("Is not checked if the state folder cannot be written, which is reported")
  func noState() throws {
    let environment = ["XDG_STATE_HOME": "/proc/nowhere"]
    #expect(try tool.run("set", "a", "1", environment: environment).message.contains("would not be noticed"))
    let older = tool.path("older")
    try copy(tool.store, older)
    try tool.succeed("set", "a", "2", environment: environment)
    try copy(older, tool.store)
    #expect(try tool.succeed("get", "a", environment: environment) == "1\n")
  }

  @Test("log --verify reports an intact log, and accepts no other options")
  func log() throws {
    for number in 0..<3 { try tool.succeed("set", "a", "\(number)") }
    let intact = "The log is intact: 5 commits, 0 to 4. "
    let recorded = intact + "Its chain vouches for it, and the freshness record for the chain.\n"
    #expect(try tool.succeed("log", "--verify") == recorded)
    let json = try tool.succeed("log", "--verify", "--json")
    #expect(
      json == #"{"ok":true,"commits":5,"first":0,"last":4,"recorded":4,"erased":0,"erasures":[],"problems":[]}"# + "\n")
    #expect(try tool.succeed("doctor").contains("5 commits, 0 to 4, by its chain and the freshness record"))
    let none = ["XDG_STATE_HOME": "/proc/nowhere"]
    let alone = try tool.succeed("log", "--verify", environment: none)
    #expect(alone.hasPrefix(intact + "Only its chain vouches for it: no freshness record has its end, and anyone"))
    #expect(try tool.succeed("log", "--verify", "--json", environment: none).contains(#""recorded":null"#))
    #expect(try tool.run("doctor", environment: none).text.contains("5 commits, 0 to 4, by its chain alone"))
    #expect(try tool.run("log", "a", "--verify").code == 2)
    #expect(try tool.run("log", "--verify", "--limit", "1").code == 2)
  }
}
