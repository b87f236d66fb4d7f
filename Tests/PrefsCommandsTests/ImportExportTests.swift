import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Export and import")
struct ImportExportTests {
  private func sample() throws -> Tool {
    let tool = try Tool()
    try tool.succeed("set", "ui/theme", "dark")
    try tool.succeed("set", "ui/size", "--int", "14")
    try tool.succeed("set", "ui/zero", "--double", "-0.0")
    try tool.succeed("set", "ui/shape", #"{"a":[1,2.5,null]}"#)
    try tool.succeed("set", "api/token", "--secret", "-", input: "hunter2")
    return tool
  }

  private func run(_ program: String, _ arguments: [String]) throws -> Child {
    try Child.run("/usr/bin/env", [program] + arguments, capturesMessages: true)
  }

  @Test("An export can be imported to another store, and the file is reported as unencrypted")
  func roundTrip() throws {
    let tool = try sample()
    let file = tool.path("all.sqlite")
    let refused = try tool.run("export", "--format", "sqlite", "-o", file)
    #expect(refused.code == 11 && refused.message.contains("--reveal") && !tool.exists(file))
    let export = try tool.run("export", "--format", "sqlite", "-o", file, "--reveal")
    #expect(
      export.code == 0 && export.text.isEmpty && export.message.contains("5 items written to \(file).")
        && export.message.contains("unencrypted"))
    #expect(try tool.mode(file) == 0o600)
    #expect(try tool.run("export", "--format", "sqlite", "-o", file, "--reveal").code == 0)
    let value = try run("sqlite3", [file, "SELECT value FROM settings WHERE key = 'theme'"])
    #expect(value.status == 0 && value.text == "dark\n")

    let other = try Tool()
    let trial = try other.run("import", file, "--format", "sqlite", "--dry-run")
    #expect(trial.code == 0 && trial.text.contains("5 items in 2 collections: 5 new"))
    #expect(trial.text.contains("Nothing was changed.") && !other.exists(other.store))
    try other.succeed("import", file, "--format", "sqlite")
    for key in ["ui/theme", "ui/size", "ui/zero", "ui/shape", "api/token"] {
      #expect(try other.succeed("get", key) == tool.succeed("get", key), "\(key)")
      #expect(try other.succeed("type", key) == tool.succeed("type", key), "\(key)")
    }
    let again = try other.succeed("import", file, "--format", "sqlite", "--json")
    #expect(again.contains(#""unchanged":5"#) && again.contains(#""collections":["api","ui"]"#))
  }

  @Test("One collection can be exported, and an import can replace one")
  func collections() throws {
    let tool = try sample()
    let file = tool.path("ui.sqlite")
    #expect(try tool.succeed("export", "ui", "--format", "sqlite", "-o", file, "--json").contains(#""items":4"#))
    #expect(try tool.run("export", "none", "--format", "sqlite", "-o", tool.path("none")).code == 3)
    try tool.succeed("set", "ui/later", "x")
    #expect(try tool.run("import", file, "--format", "sqlite").message.contains("4 unchanged"))
    try tool.succeed("get", "ui/later")
    #expect(try tool.run("import", file, "--format", "sqlite", "--replace").message.contains("1 other removed"))
    #expect(try tool.run("get", "ui/later").code == 3)
    #expect(try tool.succeed("get", "api/token") == "hunter2\n")
  }

  @Test("A malformed file is 8, names the place, and changes nothing")
  func malformed() throws {
    let tool = try sample()
    let file = tool.path("bad.sqlite")
    let sql = """
      CREATE TABLE settings(collection, key, type, value);
      INSERT INTO settings VALUES ('ui', 'theme', 'string', 'light'), ('ui', 'size', 'int', 'x')
      """
    #expect(try run("sqlite3", [file, sql]).status == 0)
    let bad = try tool.run("import", file, "--format", "sqlite")
    #expect(bad.code == 8 && bad.message.contains("row 2, column value"))
    #expect(try tool.succeed("get", "ui/theme") == "dark\n")
    #expect(try tool.run("import", file, "--format", "yapdatabase").code == 8)
    #expect(try tool.run("import", tool.path("none"), "--format", "sqlite").code == 14)
    #expect(try tool.run("import", tool.store, "--format", "sqlite").code == 2)
    #expect(try tool.run("import", file, "--format", "unheard-of").code == 2)
    #expect(try tool.run("import", file, "--format", "sqlite", "--source-passphrase-fd", "3").code == 2)
  }

  @Test("SQLCipher's passphrase is read from a file descriptor, never from an argument")
  func sqlCipher() throws {
    let tool = try Tool()
    let file = tool.path("cipher.db")
    let sql = "PRAGMA key = 'correct horse'; CREATE TABLE settings(key, value); INSERT INTO settings VALUES ('k', 7)"
    // Without the library, or the program that makes the file, there is only the way that leads there.
    let isMade = try run("sqlcipher", [file, sql]).status == 0
    if !isMade { try tool.write("cipher.db", [UInt8](repeating: 0x5a, count: 8192)) }
    let right = try tool.run(
      ["import", file, "--format", "sqlcipher", "--source-passphrase-fd", "3"], input: "".utf8,
      descriptors: [3: "correct horse\n"])
    if isMade {
      #expect(right.code == 0, "\(right.message)")
      #expect(try tool.succeed("get", "k") == "7\n")
    } else {
      #expect(right.code == 1 && right.message.contains("libsqlcipher0") || right.code == 5)
    }
    let wrong = try tool.run(
      ["import", file, "--format", "sqlcipher", "--source-passphrase-fd", "3"], input: "".utf8,
      descriptors: [3: "wrong\n"])
    #expect(wrong.code == 5 || wrong.message.contains("libsqlcipher0"))
    #expect(try tool.run("import", file, "--format", "sqlcipher", "--no-input").code == 6)
  }

  @Test("A database, named or detected, is not imported to one collection, and nothing is lost")
  func databaseIntoCollection() throws {
    let tool = try Tool()
    try tool.succeed("set", "mine/kept", "1")
    try tool.succeed("set", "other/kept", "2")
    let file = tool.home.path + "/settings.sqlite"
    try tool.succeed("export", "mine", "--format", "sqlite", "-o", file)
    try tool.succeed("set", "mine/later", "3")
    for arguments in [[file], [file, "--format", "sqlite"], [file, "--format", "yapdatabase"]] {
      let run = try tool.run(["import"] + arguments + ["-c", "other", "--replace"], input: [])
      #expect(run.code == 2 && run.message.contains("omit -c"), "\(run.message)")
    }
    #expect(try tool.succeed("get", "mine/later") == "3\n")
  }

  @Test("Several -c are refused if only one is possible")
  func severalCollections() throws {
    let tool = try Tool()
    try tool.succeed("set", "a/k", "1")
    for arguments in [["get", "k"], ["list"], ["set", "k", "2"], ["unset", "k"], ["export"]] {
      let run = try tool.run(arguments + ["-c", "a", "-c", "b"], input: [])
      #expect(run.code == 2 && run.message.contains("given 2 times"), "\(arguments): \(run.message)")
    }
    #expect(try tool.succeed("get", "a/k") == "1\n")
  }

  // MARK: What is there

  @Test(
    "An import keeps a secret one, whatever the format, and what is no text takes its place only with --force",
    arguments: [("json", #"{"pw":"new"}"#), ("yaml", "pw: new"), ("toml", #"pw = "new""#), ("env", "PW=new")])
  func secretStaysSecret(format: String, text: String) throws {
    let tool = try Tool()
    try tool.succeed("set", "w/pw", "--secret", "-", input: "old")
    try tool.succeed("import", "-", "-c", "w", "--format", format, input: text)
    #expect(try tool.succeed("type", "w/pw") == "secret\n")
    #expect(try tool.succeed("get", "w/pw") == "new\n")
    #expect(try !tool.succeed("list", "w", "--values").contains("new"))
    guard format == "json" else { return }
    let run = try tool.run("import", "-", "-c", "w", "--format", format, input: #"{"pw":1}"#)
    #expect(run.code == 8 && run.message.contains("\"pw\": int is no secret"), "\(run.message)")
    #expect(try tool.succeed("get", "w/pw") == "new\n")
    try tool.succeed("import", "-", "-c", "w", "--format", format, "--force", input: #"{"pw":1}"#)
    #expect(try tool.succeed("type", "w/pw") == "int\n")
  }

  @Test(
    "An empty file replaces nothing: the program that was to write it may have failed",
    arguments: ["env", "yaml", "toml"])
  func emptyReplacement(format: String) throws {
    let tool = try Tool()
    try tool.succeed("set", "w/a", "1")
    for text in ["", "\n \r\n"] {
      let run = try tool.run("import", "-", "-c", "w", "--format", format, "--replace", input: text)
      #expect(run.code == 8 && run.message.contains("no settings"), "\(run.message)")
    }
    #expect(try tool.succeed("list", "w") == "a\n")
  }
}
