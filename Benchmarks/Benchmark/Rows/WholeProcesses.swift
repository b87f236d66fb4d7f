import Foundation

/// P6: one value read by a whole process, compared with similar tools.
///
/// A time is that from before the start of the process until it has ended, on the wall clock; what the process says has to
/// be the value. Tools that this system does not have are left out.
enum WholeProcesses {
  private static let work = Work(
    row: "P6", name: "one value, a whole process", unit: .milliseconds, baseline: "sqlite3")
  static let value = "solarized-midnight"
  private static let runCount = 7

  /// A command that prints the value.
  struct Command {
    let name: String
    let program: String
    let arguments: [String]
  }

  static func row(_ folder: Folder, _ prefs: String) throws -> Row {
    // Short, because GnuPG puts a socket inside.
    let home = Folder(existing: folder.file("p6"))
    try FileManager.default.createDirectory(atPath: home.path, withIntermediateDirectories: true)
    let environment = environment(home)
    let tools: [(program: String, prepare: (Folder, [String: String]) throws -> Command)] = [
      (prefs, { try self.prefs(prefs, $1) }), ("sqlite3", sqlite), ("git", git),
      ("gsettings", gsettings), ("age", age), ("pass", pass),
    ]
    let commands = try tools.filter { Program.path(of: $0.program) != nil }.map { try $0.prepare(home, environment) }
    return Row(
      measurements: try commands.map { command in
        let program = try Program(command.program)
        return Measurement(work, command.name) { _ in
          try Measure.median(of: runCount) {
            let (milliseconds, output) = try program.time(command.arguments, environment: environment)
            try require(
              output.trimmingCharacters(in: CharacterSet(charactersIn: "'")) == value, "\(command.name) said \(output)")
            return milliseconds
          }
        }
      },
      goals: [
        Goal(
          "one value, a whole process: prefs beside sqlite3", at: work, "prefs get", beside: "sqlite3", .atMost(2.7))
      ],
      finish: {
        // It leaves an agent running.
        if Program.path(of: "gpgconf") != nil {
          _ = try Program("gpgconf").output(["--kill", "all"], environment: environment)
        }
      })
  }

  /// That of a user who has nothing yet.
  static func environment(_ home: Folder) -> [String: String] {
    [
      "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "", "LC_ALL": "C", "HOME": home.path,
      "XDG_CONFIG_HOME": home.file("config"), "XDG_DATA_HOME": home.file("data"), "GIT_CONFIG_NOSYSTEM": "1",
      "GSETTINGS_BACKEND": "keyfile", "GNUPGHOME": home.file("gnupg"), "PASSWORD_STORE_DIR": home.file("pass"),
    ]
  }

  // MARK: The tools

  static func prefs(_ program: String, _ environment: [String: String]) throws -> Command {
    _ = try Program(program).output(["set", "editor/theme", value], environment: environment)
    return Command(name: "prefs get", program: program, arguments: ["get", "editor/theme"])
  }

  private static let table = """
    PRAGMA journal_mode=WAL; CREATE TABLE kv(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    INSERT INTO kv VALUES('editor/theme', '\(value)');
    """
  private static let query = "SELECT value FROM kv WHERE key = 'editor/theme'"

  private static func sqlite(_ home: Folder, _ environment: [String: String]) throws -> Command {
    let file = home.file("settings.sqlite")
    _ = try Program("sqlite3").output([file, table], environment: environment)
    return Command(name: "sqlite3", program: "sqlite3", arguments: [file, query])
  }

  private static func git(_ home: Folder, _ environment: [String: String]) throws -> Command {
    let file = ["config", "--file", home.file("settings.gitconfig")]
    _ = try Program("git").output(file + ["editor.theme", value], environment: environment)
    return Command(name: "git config --get", program: "git", arguments: file + ["--get", "editor.theme"])
  }

  private static func gsettings(_ home: Folder, _ environment: [String: String]) throws -> Command {
    let setting = ["org.gnome.desktop.interface", "gtk-theme"]
    _ = try Program("gsettings").output(["set"] + setting + [value], environment: environment)
    return Command(name: "gsettings get", program: "gsettings", arguments: ["get"] + setting)
  }

  static func age(_ home: Folder, _ environment: [String: String]) throws -> Command {
    let (identity, file) = (home.file("age.key"), home.file("settings.age"))
    _ = try Program("age-keygen").output(["-o", identity], environment: environment)
    let recipient = try Program("age-keygen").output(["-y", identity], environment: environment)
    _ = try Program("age").output(["-r", recipient, "-o", file], environment: environment, input: value)
    return Command(name: "age -d", program: "age", arguments: ["-d", "-i", identity, file])
  }

  private static func pass(_ home: Folder, _ environment: [String: String]) throws -> Command {
    try FileManager.default.createDirectory(
      atPath: home.file("gnupg"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    _ = try Program("gpg").output(
      ["--batch", "--passphrase", "", "--quick-generate-key", "startup", "rsa2048", "encrypt", "never"],
      environment: environment)
    _ = try Program("pass").output(["init", "startup"], environment: environment)
    _ = try Program("pass").output(
      ["insert", "--echo", "editor/theme"], environment: environment, input: value + "\n")
    return Command(name: "pass show", program: "pass", arguments: ["show", "editor/theme"])
  }
}
