import Coffer
import Foundation
import PrefsFleet
import TestSupport
import Testing

@testable import PrefsCommands
@testable import PrefsPage

/// The built tool, copied into a prefix of its own.
private final class Installation {
  let root: URL
  var programs: URL { root.appendingPathComponent("prefix/libexec/coffer") }

  init() throws {
    // Without links on the way, as the tool sees itself.
    let temporary = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
    root = temporary.appendingPathComponent("prefs-beside-\(UUID().uuidString)")
    for folder in [root.appendingPathComponent("prefix/bin"), programs, root.appendingPathComponent("elsewhere")] {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    }
    try shell("cp \"$0\" \"$1\"", Tool.executable, root.appendingPathComponent("prefix/bin/prefs").path)
  }

  deinit { try? FileManager.default.removeItem(at: root) }

  @discardableResult
  func program(_ name: String, _ script: String = "echo started", in folder: URL? = nil, mode: Int = 0o755) throws
    -> URL
  {
    let url = (folder ?? programs).appendingPathComponent(name)
    try shell("printf '#!/bin/sh\\n%s\\n' \"$0\" >\"$1\"", script, url.path)
    try chmod(url, mode)
    return url
  }

  /// Makes files in another process: one that this one has open for writing, a test that starts a process beside it may
  /// keep open for a moment, and then it cannot be executed.
  private func shell(_ script: String, _ arguments: String...) throws {
    try #require(try Child.run("/bin/sh", ["-c", script] + arguments).status == 0)
  }

  func chmod(_ url: URL, _ mode: Int) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
  }

  /// Runs the copy, with `elsewhere` as the working folder and in `PATH`.
  func run(_ arguments: String..., environment: [String: String] = [:]) throws -> (
    code: Int32, output: String, message: String
  ) {
    let variables = ["HOME": root.path, "PATH": "\(root.path)/elsewhere:/usr/bin:/bin"].merging(environment) { $1 }
    let run = try Child.run(
      "/bin/sh",
      [
        "-c", "cd \"$0\" && exec \"$@\"", root.appendingPathComponent("elsewhere").path,
        root.appendingPathComponent("prefix/bin/prefs").path,
      ] + arguments, environment: variables, capturesMessages: true)
    return (run.status, run.text, run.message)
  }
}

@Suite("Programs beside the tool")
struct ProgramBesideTests {
  @Test("prefs NAME starts it with the arguments and the environment, and returns its exit code")
  func start() throws {
    let installation = try Installation()
    try installation.program("prefs-hello-2", "printf '<%s>' \"$@\" \"$GREETING\"; exit 7")
    let run = try installation.run("hello-2", "--json", "a b", "-5", "", environment: ["GREETING": "hej"])
    #expect(run == (7, "<--json><a b><-5><><hej>", ""))
  }

  @Test(
    "One that others can replace is not started",
    arguments: ["file", "folder", "parent", "link", "linked folder", "group"])
  func unsafe(_ what: String) throws {
    let installation = try Installation()
    let program = try installation.program("prefs-hello")
    switch what {
    case "file": try installation.chmod(program, 0o757)
    case "group": try installation.chmod(program, 0o775)
    case "folder": try installation.chmod(installation.programs, 0o777)
    case "parent": try installation.chmod(installation.programs.deletingLastPathComponent(), 0o777)
    case "link":
      let target = try installation.program("prefs-hello", in: installation.root)
      try FileManager.default.removeItem(at: program)
      try FileManager.default.createSymbolicLink(at: program, withDestinationURL: target)
    default:
      let target = installation.root.appendingPathComponent("target")
      try FileManager.default.moveItem(at: installation.programs, to: target)
      try FileManager.default.createSymbolicLink(at: installation.programs, withDestinationURL: target)
    }
    let run = try installation.run("hello")
    #expect(run.code == 11 && run.output.isEmpty && run.message.contains("prefs-hello is not started: "), "\(run)")
    #expect(try !installation.run("help").output.contains("hello"))
  }

  @Test("One that a group can replace is started if that group can replace prefs itself")
  func trustedGroup() throws {
    let installation = try Installation()
    let program = try installation.program("prefs-hello", mode: 0o775)
    let folder = installation.root.appendingPathComponent("prefix/bin")
    for place in [folder, installation.programs] { try installation.chmod(place, 0o775) }
    let run = try installation.run("hello")
    #expect(run == (0, "started\n", ""))
    try installation.chmod(program, 0o777)
    #expect(try installation.run("hello").code == 11)
    try installation.chmod(program, 0o775)
    try installation.chmod(folder, 0o755)
    #expect(try installation.run("hello").code == 11)
  }

  @Test("One of another user is not started", .enabled(if: geteuid() == 0))
  func foreign() throws {
    let installation = try Installation()
    let program = try installation.program("prefs-hello")
    #expect(chown(program.path, 12_345, 12_345) == 0)
    let run = try installation.run("hello")
    #expect(run.code == 11 && run.message.contains("belongs to another user"), "\(run)")
  }

  @Test("One that cannot be executed is an error")
  func notExecutable() throws {
    let installation = try Installation()
    try installation.program("prefs-hello", mode: 0o644)
    let run = try installation.run("hello")
    #expect(run.code == 126 && run.message.contains("prefs-hello: "), "\(run)")
  }

  @Test("One whose loader is missing is not said to be missing itself")
  func missingLoader() throws {
    let installation = try Installation()
    let program = try installation.program("prefs-hello")
    try "#!/no/such/interpreter\n".write(to: program, atomically: false, encoding: .utf8)
    let run = try installation.run("hello")
    #expect(run.code == 126 && run.message.contains("prefs-hello: the loader or interpreter that it needs"), "\(run)")
  }

  @Test(
    "Names that lead elsewhere are refused",
    arguments: ["../evil", "evil/evil", "..", "Evil", "evil-", "-evil", "evil"])
  func names(_ name: String) throws {
    let installation = try Installation()
    // Where a shell would look, and where the name would lead.
    let elsewhere = installation.root.appendingPathComponent("elsewhere")
    let near = installation.root.appendingPathComponent("prefix/libexec/evil")
    for folder in [elsewhere, installation.root.appendingPathComponent("prefix/bin")] {
      try installation.program("prefs-evil", in: folder)
    }
    try installation.program("evil", in: near.deletingLastPathComponent())
    try installation.program("prefs-Evil")
    let run = try installation.run(name)
    #expect(run.code == 2 && run.output.isEmpty, "\(run)")
  }

  @Test("A command of prefs comes first", arguments: ["get", "read", "help", "agent", "key"])
  func builtIn(_ name: String) throws {
    let installation = try Installation()
    try installation.program("prefs-\(name)")
    #expect(try !installation.run(name).output.contains("started"))
  }

  @Test("help NAME … asks it for its help, also on a command of its own")
  func ownHelp() throws {
    let installation = try Installation()
    try installation.program("prefs-hello", "printf '<%s>' \"$@\"")
    #expect(try installation.run("help", "hello").output == "<--help>")
    #expect(try installation.run("help", "hello", "world").output == "<world><--help>")
  }

  @Test("The common options come before its name as well as after it")
  func optionsBefore() throws {
    let installation = try Installation()
    try installation.program("prefs-hello", "printf '<%s>' \"$@\"")
    #expect(try installation.run("-q", "-d", "list", "hello", "x").output == "<-q><-d><list><x>")
    #expect(try installation.run("--app=a", "help", "hello").output == "<--help>")
    // There it is the value of an option.
    #expect(try !installation.run("-d", "hello").output.contains("<-d>"))
  }

  @Test("fleet and ui understand options before their command")
  func optionsOfFleet() throws {
    for words in [
      ["-d", "status", "status", "--json"], ["--app", "a", "-q", "members"], ["status", "-d", "S"],
      ["-c", "web", "share"],
    ] {
      let moved = CommandArguments.movingOptions(words, behindCommandOf: FleetCommand.self)
      #expect(Set(moved) == Set(words) && !moved[0].hasPrefix("-"), "\(moved)")
      #expect(throws: Never.self, "\(words)") { try FleetCommand.parseAsRoot(moved) }
    }
    #expect(CommandArguments.movingOptions(["--version"], behindCommandOf: FleetCommand.self) == ["--version"])
    let words = ["--app", "a", "--print"]
    #expect(CommandArguments.movingOptions(words, behindCommandOf: UICommand.self) == words)
  }

  @Test("The help lists them")
  func help() throws {
    let installation = try Installation()
    #expect(try !installation.run("help").output.contains("PROGRAMS BESIDE PREFS"))
    try installation.program("prefs-web")
    try installation.program("prefs-formats")
    for words in [["help"], ["--help"], []] {
      let output = try words.isEmpty ? installation.run().output : installation.run(words[0]).output
      #expect(output.contains("\nPROGRAMS BESIDE PREFS\n  web"), "\(words): \(output)")
    }
  }
}

extension ProgramBesideTests {
  @Test("Completion offers them", arguments: ["bash", "zsh", "fish"])
  func completion(_ shell: String) throws {
    let installation = try Installation()
    let before = try installation.run("completion", shell).output
    try installation.program("prefs-web")
    let after = try installation.run("completion", shell).output
    let isOffered = ["completion web help'", "'web:The program prefs-web.'", "-fa 'web' -d 'The program prefs-web.'"]
      .contains {
        after.contains($0)
      }
    #expect(isOffered && !before.contains("web"))
    // Also behind `help`; and no line of another kind is touched.
    let lines = Set(before.split(separator: "\n"))
    let new = after.split(separator: "\n").filter { !lines.contains($0) }
    #expect(new.count == 2 && new.contains { $0.contains(" web options") }, "\(new)")
  }
}

@Suite("The program that reads YAML and TOML")
struct FormatsProgramTests {
  @Test(
    "Any failure of it is reported",
    arguments: ["kill -SEGV $$", "exit 3", "cat >/dev/null; printf '\\001\\006'", "printf x"])
  func crash(_ script: String) throws {
    let installation = try Installation()
    try installation.program("prefs-formats", script)
    let file = installation.root.appendingPathComponent("settings.toml")
    // More than a pipe holds, and possibly never read.
    try Data("a = '\(String(repeating: "x", count: 1 << 20))'\n".utf8).write(to: file)
    let run = try installation.run("import", file.path, "-c", "c")
    #expect(
      run.code == 8 && run.message.contains("settings.toml: ") && run.message.contains("Nothing was changed"), "\(run)")
    #expect(!FileManager.default.fileExists(atPath: installation.root.path + "/.local"))
  }

  @Test("A missing one is reported")
  func missing() throws {
    let installation = try Installation()
    let file = installation.root.appendingPathComponent("settings.yaml")
    try Data("a: 1\n".utf8).write(to: file)
    let run = try installation.run("import", file.path, "-c", "c")
    #expect(run.code == 1 && run.message.contains("prefs-formats"), "\(run)")
  }

  /// Written out for the compiler, which looks long for the types of literals otherwise.
  private static let members: [String: Value] = [
    "null": .null, "yes": .bool(true), "no": .bool(false), "int": .int(-5), "uint64": .uint64(.max),
    "-0": .double(-0.0), "text": .string("é\0🔑"), "data": .data(Data([0, 255])), "": .array([]),
    "date": .date(Date(timeIntervalSince1970: 1.25)), "nested": .array([.dictionary(["a": .array([.int(1), .null])])]),
  ]

  @Test("Its answer is the tree, bit for bit")
  func exact() throws {
    let tree = try TreeBytes.tree(TreeBytes.bytes(.value(.dictionary(Self.members)))[...])
    #expect(tree == .value(.dictionary(Self.members)))
    let twins = FileTree.members([
      .init("e\u{301}", .members([.init("\u{e9}", .value(1)), .init("e\u{301}", .value(2))]))
    ])
    #expect(try TreeBytes.tree(TreeBytes.bytes(twins)[...]) == twins)
    for number in [-0.0, Double.nan, Double(bitPattern: 0x7ff8_0000_0000_beef)] {
      guard case .value(.double(let again)) = try TreeBytes.tree(TreeBytes.bytes(.value(.double(number)))[...]) else {
        Issue.record("\(number) comes back as another kind")
        continue
      }
      #expect(again.bitPattern == number.bitPattern)
    }
  }

  @Test("A truncated or changed answer is refused or read, without other effects")
  func damaged() throws {
    let bytes = try TreeBytes.bytes(.value(.dictionary(Self.members)))
    for count in 0..<bytes.count {
      #expect(throws: FormatProblem.self) { try TreeBytes.tree(bytes[..<count]) }
      var other = bytes
      other[count] ^= 0xff
      do { _ = try TreeBytes.tree(other[...]) } catch is FormatProblem {}
    }
  }
}
