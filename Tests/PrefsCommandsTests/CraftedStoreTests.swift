import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

/// Each crafted store and each command: `doctor` finds whatever one of them stumbles over, and where it finds nothing, all of
/// them work.
@Suite("A crafted store", .timeLimit(.minutes(60)))
struct CraftedStoreTests {
  private static let isSoak = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil

  @Test(
    "is found by doctor, which names what is wrong, or harms no command: a few of them each (all with COFFER_SOAK)",
    arguments: CraftedStore.all.indices)
  func verdicts(_ index: Int) throws {
    let crafted = CraftedStore.all[index]
    let (tool, whole, first) = try Self.whole.get()
    let scratch = try ScratchFolder()
    let bench = try whole.copy(to: scratch.file("crafted"))
    try crafted.craft(bench)
    func run(_ command: StoreCommand) throws -> Verdict {
      let copy = try bench.copy(to: scratch.file("copy"))
      defer { try? FileManager.default.removeItem(atPath: copy.folder) }
      let words = command.words.map { $0.replacingOccurrences(of: "FIRST", with: first) }
      return Verdict(command, try Self.run(words, input: command.input, on: copy, of: tool))
    }

    let doctor = try run(StoreCommand("doctor", "--deep"))
    if let finding = crafted.finding {
      #expect(doctor.code != 0 && doctor.text.contains(finding), "\(crafted): \(doctor.text)")
      // What opening refuses is refused by doctor with the same code.
      if doctor.code != PrefsCommands.ExitStatus.integrity.rawValue {
        #expect(try run(StoreCommand("status")).code == doctor.code)
      }
    } else {
      #expect(doctor.code == 0, "\(crafted): \(doctor.text)")
    }
    #expect(!doctor.dies && !doctor.isUntyped, "\(crafted): \(doctor.text)")
    for command in Self.commands(for: index) {
      let verdict = try run(command)
      let what: Comment =
        "\(crafted): \(command.name) ends with \(verdict.code): \(verdict.text); doctor: \(doctor.text)"
      #expect(!verdict.dies, what)
      #expect(!verdict.isUntyped, what)
      guard verdict.isFailure else { continue }
      #expect(doctor.code != 0, what)
      // Errors about a row of `collections` do not name it; doctor does, in words of its own.
      if let damage = verdict.damage, damage.part != "collections" {
        let text = doctor.text.lowercased()
        #expect(text.contains(damage.part.lowercased()) || text.contains(damage.reason.lowercased()), what)
      }
    }
  }

  // MARK: Commands

  /// All commands, or a few for each store: the next ones for the next store.
  private static func commands(for index: Int) -> [StoreCommand] {
    guard !isSoak else { return StoreCommand.all }
    return StoreCommand.all.enumerated().filter { number, command in
      command.isAlways || command.isQuick && (number + index) % 6 == 0 || index == 0
    }.map(\.element)
  }

  /// The whole store, with a fleet on a carrier beside it, and what the commands need; made once.
  private static let whole = Result {
    let tool = try Tool()
    let bench = try CraftingBench(in: tool.path("whole"))
    let carrier = tool.path("carrier")
    try FileManager.default.createDirectory(atPath: carrier, withIntermediateDirectories: false)
    let fleet = try run(
      ["fleet", "create", "team", "--at", "file://\(carrier)", "-c", "c", "--as", "here"], on: bench, of: tool)
    try #require(fleet.code == 0, "\(fleet.message)")
    try FileManager.default.copyItem(atPath: bench.path, toPath: bench.folder + "/whole.coffer")
    try Data(#"{"c":{"imported":"x"}}"#.utf8).write(to: URL(fileURLWithPath: bench.folder + "/in.json"))
    let schema = try run(["schema", "print", "--format", "json"], on: bench, of: tool)
    try Data(schema.output).write(to: URL(fileURLWithPath: bench.folder + "/schema.json"))
    return (tool: tool, bench: bench, first: "\(try #require(try bench.firstVersion()))")
  }

  private static func run(
    _ words: [String], input: String = "", on bench: CraftingBench, of tool: Tool
  ) throws -> Tool.Run {
    // Processor time, not that of the clock: how long a command waits for a processor says nothing.
    try tool.run(
      ["-c", "cd \"$1\" && shift && ulimit -t 60 && exec \"$@\"", "sh", bench.folder, Tool.executable] + words,
      input: input.utf8,
      environment: [
        "PREFS_STORE": bench.path, "PREFS_KEY_FILE": bench.keyFile, "PREFS_VAULT_KEY_FILE": bench.vaultKeyFile,
      ], program: "/bin/sh")
  }
}

/// How a command ended.
private struct Verdict {
  let command: StoreCommand
  let code: Int32
  let text: String

  init(_ command: StoreCommand, _ run: Tool.Run) {
    self.command = command
    code = run.code
    text = run.text + run.message
  }

  /// Whether a signal ended it: a crash, or the limit of its time.
  var dies: Bool { code >= 128 }

  /// Whether it says what only a programmer understands.
  var isUntyped: Bool {
    ["Error(", "(reason:", "Fatal error", "Error Domain", "invalidParameter(", "SQLite error 4"].contains {
      text.contains($0)
    }
  }

  /// Whether it failed because of the store, and not because of the values in it: a key that is not there, a value of
  /// another type.
  var isFailure: Bool {
    guard code != command.code else { return false }
    if command.words.first == "diff" { return code == 2 }
    // Whether or not its log is damaged, a store that was copied with a log is no backup.
    if text.contains("has a log beside it") { return false }
    // A command that was renamed would test nothing.
    if text.contains("there is no command") { return true }
    let ofValues: [PrefsCommands.ExitStatus] = [.success, .usage, .notFound, .format, .refused, .due]
    return !ofValues.map(\.rawValue).contains(code)
  }

  /// The part that is damaged and the reason, if it says so.
  var damage: (part: String, reason: String)? {
    guard let start = text.range(of: "The store is damaged in its "), let end = text.range(of: ". Nothing was changed")
    else {
      return nil
    }
    guard start.upperBound < end.lowerBound else { return nil }
    let parts = text[start.upperBound..<end.lowerBound].components(separatedBy: ": ")
    guard parts.count > 1 else { return nil }
    return (parts[0], parts[1...].joined(separator: ": "))
  }
}
