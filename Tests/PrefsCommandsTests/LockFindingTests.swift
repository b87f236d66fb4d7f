import Coffer
import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Locks in the files of two applications, `org.x` and `org.y`, which declare `port` in the collection `net`.
@Suite("Locks of several applications, and locks of nothing") struct LockFindingTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    for application in ["org.x", "org.y"] {
      let declared = #"[{"name": "port", "collection": "net", "type": "int", "default": 1}]"#
      try tool.succeed("schema", "load", "-", "--application", application, input: declared)
    }
  }

  @discardableResult
  private func manage(_ application: String, _ text: String) throws -> String {
    try FileManager.default.createDirectory(
      atPath: tool.path("managed/\(application).d"), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o755])
    let file = try tool.write("managed/\(application).d/10.json", text.utf8)
    chmod(file, 0o644)
    return file
  }

  private func run(_ words: String..., input: String = "") throws -> Tool.Run {
    try tool.run(words, input: input.utf8, environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
  }

  /// Runs the tool for an application, on the store of the others.
  private func run(_ application: String, _ words: [String]) throws -> Tool.Run {
    try tool.run(
      ["--app", application, "-d", tool.store, "--key-file", tool.keyFile, "-c", "net"] + words, input: [],
      environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
  }

  private func endVersions() throws {
    let database = try Database.open(at: tool.store, key: .keyFile(tool.keyFile))
    try database.makeConnection().perform { try $0.connection.execute("UPDATE versions SET until = 0") }
    try database.close()
  }

  @Test("A named application has the values of its own files for what it declares, and others' for the rest")
  func named() throws {
    try manage("org.x", #"{"locked": {"net/port": 4444, "net/host": "h"}}"#)
    try manage("org.y", #"{"net/port": 5555}"#)
    #expect(try run("org.y", ["get", "port"]).text == "5555\n")
    #expect(try run("org.x", ["get", "port"]).text == "4444\n")
    // What it does not declare may be locked for the other.
    #expect(try run("org.y", ["get", "host"]).text == "h\n")
    #expect(try run("org.x", ["set", "port", "3"]).code == 13)
    #expect(try run("org.y", ["set", "port", "3"]).code == 0)
    let unset = try run("org.y", ["unset", "port"])
    #expect(unset.code == 0 && unset.message.isEmpty, "\(unset)")
    // Without one, no program may be left out.
    #expect(try run("set", "net/port", "3").code == 13)
  }

  @Test("validate and doctor name locks of one setting that differ between applications")
  func disagreement() throws {
    let x = try manage("org.x", #"{"locked": {"net/port": 4444}}"#)
    var validate = try run("validate")
    #expect(validate.code == 0 && validate.text == "net/port is locked in \(x):1, but not for org.y.\n", "\(validate)")
    let y = try manage("org.y", #"{"locked": {"net/port": 5555}}"#)
    validate = try run("validate")
    let words = "net/port is locked at different values in \(x):1 and \(y):1; each program has that of its own files."
    #expect(validate.code == 8 && validate.text == words + "\n", "\(validate)")
    #expect(try run("validate", "net", "--json").text.contains(#""kind":"disagreement""#))
    #expect(try run("doctor").text.contains(words))
    try manage("org.y", #"{"locked": {"net/port": 4444}}"#)
    #expect(try run("validate").text.isEmpty)
  }

  @Test(
    "validate and doctor name a lock that binds nothing known, and say what was meant",
    arguments: [
      (
        #"{"locked": {"net": {"port": 1}}}"#, "org.x/net",
        "it is a collection. Write each of its settings as \"net/port\"."
      ),
      (#"{"locked": {"port": 1}}"#, "org.x/port", "it is not declared; did you mean \"net/port\"?"),
      (#"{"locked": {"org.x@staging/kk": 1}}"#, "org.x@staging/kk", "Write \"kk\"."),
      (#"{"locked": {"net@staging/port": 1}}"#, "net@staging/port", "Write \"net/port\"."),
      (#"{"locked": {"net/prot": 1}}"#, "net/prot", "is not declared; did you mean \"net/port\"?"),
      (#"{"port": 1, "locked": ["port"]}"#, "org.x/port", "it is not declared; did you mean \"net/port\"?"),
    ])
  func unbound(_ text: String, _ name: String, _ reason: String) throws {
    let file = try manage("org.x", text)
    let validate = try run("validate")
    let first = validate.text.split(separator: "\n").first ?? ""
    #expect(validate.code == 8, "\(validate)")
    #expect(first.hasPrefix("\(name) in \(file):1 ") && first.hasSuffix(reason), "\(validate.text)")
    #expect(try run("doctor").text.contains("\(name) in \(file):1 "))
    #expect(try run("validate", "net").code == 8)
  }

  @Test("A lock of the application's own setting in a suite binds it, and is named only where no such suite is there")
  func ownInSuite() throws {
    let file = try manage("org.x", #"{"locked": {"acme/own": 1}}"#)
    let declarations = """
      [{"name": "own", "type": "int"}, {"name": "port", "type": "int", "collection": "net", "default": 1}]
      """
    try tool.succeed("schema", "load", "-", "-c", "org.x", "--application", "org.x", input: declarations)
    let validate = try run("validate")
    #expect(validate.code == 8 && validate.text.contains("acme/own in \(file):1 "), "\(validate)")
    try tool.succeed("set", "-c", "acme", "theme", "dark")
    #expect(try run("validate").text.isEmpty)
    #expect(try run("set", "-c", "acme", "own", "2").code == 13)
    // In a collection with declarations, it would be a slip.
    try manage("org.x", #"{"locked": {"net/own": 1}}"#)
    #expect(try run("validate").code == 8)
  }

  @Test("A lock of what another application declares is named; one of a program that declares nothing is not")
  func others() throws {
    let z = try manage("org.z", #"{"locked": {"net/port": 7}}"#)
    try manage("free", #"{"locked": {"anything": 7, "some/thing": 8}}"#)
    try tool.succeed("set", "free/text", "x")
    #expect(try run("validate").text.isEmpty)
    try tool.succeed(
      "schema", "load", "-", "--application", "org.z", input: #"[{"name": "z", "collection": "org.z", "type": "int"}]"#)
    let validate = try run("validate")
    let words = "net/port in \(z):1 locks nothing that is known: org.z does not declare it, but org.x, org.y"
    #expect(validate.code == 8 && validate.text.hasPrefix(words), "\(validate)")
  }

  @Test(
    "A lock stays where the application declares nothing in the collection any more, unless it is another's setting")
  func undeclared() throws {
    func declare(_ version: String?, _ text: String) throws {
      let version = version.map { ["--application-version", $0] } ?? []
      #expect(try tool.run(["schema", "load", "-", "--application", "org.z"] + version, input: text.utf8).code == 0)
    }
    let lonely = #"[{"name": "lonely", "collection": "far", "type": "int"}]"#
    for (before, version, after) in [
      ("1", "2", #"[{"name": "other", "collection": "zzz", "type": "int"}]"#), ("3", nil, "[]"), (nil, nil, "[]"),
    ] {
      try declare(before, lonely)
      try manage("org.z", #"{"locked": {"far/lonely": 7, "net/port": 7}}"#)
      #expect(try run("set", "far/lonely", "6").code == 13)
      try declare(version, after)
      let set = try run("set", "far/lonely", "6")
      #expect(set.code == 13, "\(after): \(set)")
      #expect(try run("get", "far/lonely").text == "7\n")
      // It has never declared that one.
      #expect(try run("set", "net/port", "5").code == 0)
    }
    // Nor does it when no version that declared it may run any more: the one in force may still read it.
    try endVersions()
    #expect(try run("set", "far/lonely", "6").code == 13)
  }

  @Test("The settings of a version that may run are known, with their limits, also where a newer one declares others")
  func olderVersion() throws {
    let a = #"{"name": "a", "collection": "old", "type": "int"}"#
    let b = #"{"name": "b", "collection": "old", "type": "int", "limits": [{"minimum": 1, "maximum": 9}]}"#
    for (version, text) in [("2", "[\(a)]"), ("1", "[\(a), \(b)]")] {
      try tool.succeed(
        "schema", "load", "-", "--application", "org.z", "--application-version", version, input: text)
    }
    #expect(try run("set", "old/b", "5").code == 0)
    let bad = try run("set", "old/b", "50")
    #expect(bad.code == 8 && bad.message.contains("1 to 9"), "\(bad)")
    #expect(try run("set", "old/c", "5").code == 8)
    #expect(try run("describe", "old/b").text.contains("org.z 1"))
    #expect(try run("list", "old", "--all").text.contains("b"))
    #expect(try run("validate").text.isEmpty)
    // Who loads the declarations elsewhere declares those of the newest version.
    #expect(try !run("schema", "--format", "json").text.contains(#""name":"b""#))
    try endVersions()
    #expect(try run("set", "old/b2", "5").code == 8)
    #expect(try run("describe", "old/b").code == 3)
  }

  @Test("An unreadable file of an application that declares nothing stops validate")
  func unreadable() throws {
    try tool.succeed("set", "free/text", "x")
    let file = try manage("free", "{")
    let validate = try run("validate")
    #expect(validate.code == 8 && validate.message.contains(file), "\(validate)")
    // A pipe is no file, and nothing waits for what it says.
    unlink(file)
    #expect(mkfifo(file, 0o600) == 0)
    #expect(try run("get", "free/text").message.contains("it is not a regular file"))
  }

  @Test("A command that sets one key is refused where it is locked, also to the value that is stored")
  func same() throws {
    try tool.succeed("set", "net/port", "6")
    try tool.succeed("history", "--keep", "net")
    try tool.succeed("set", "net/port", "6")
    try tool.succeed("set", "other/port", "6", "--int")
    try manage("org.x", #"{"locked": {"net/port": 8}}"#)
    for command in [
      ["set", "net/port", "6"], ["increment", "net/port", "0"], ["increment", "net/port", "-2"],
      ["rename", "-f", "other/port", "net/port"],
    ] {
      let run = try tool.run(command, input: [], environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
      #expect(run.code == 13 && run.message.contains("locked by an administrator"), "\(command): \(run)")
    }
    // A file with all settings of a host stays usable.
    #expect(try run("import", "-", "-c", "net", "--format", "json", input: #"{"port": 6}"#).code == 0)
  }

  @Test("What is used instead of a misspelt key, and an equal value set below a lock, are said")
  func silent() throws {
    for run in [
      try run("get", "net/prot", "--default", "7"), try run("inject", "-", input: "{{prefs:net/prot|7}}"),
    ] {
      #expect(run.code == 0 && run.text.hasPrefix("7"), "\(run)")
      #expect(run.message.contains("net/prot is not declared; did you mean \"net/port\"?"), "\(run)")
    }
    #expect(try run("get", "far/away", "--default", "7").message.isEmpty)
    try tool.succeed("set", "net/port", "5")
    let file = try manage("org.x", #"{"locked": {"net/port": 8}}"#)
    let imported = try run("import", "-", "-c", "net", "--format", "json", input: #"{"port": 5}"#)
    #expect(
      imported.code == 0 && imported.message.contains("net/port keeps the value that \(file):1 locks."), "\(imported)")
  }

  @Test("The files of an application alone bind what it declares, at every command, and others that lock it are named")
  func ownFiles() throws {
    let file = try manage("net", #"{"locked": {"net/port": 9}}"#)
    #expect(try run("org.x", ["get", "port"]).text == "1\n")
    #expect(try run("org.x", ["set", "port", "3"]).code == 0)
    #expect(try run("org.x", ["increment", "port"]).code == 0)
    #expect(try run("org.x", ["get", "port"]).text == "4\n")
    // What it does not declare is locked by any.
    try manage("net", #"{"locked": {"net/port": 9, "net/host": "h"}}"#)
    #expect(try run("org.x", ["set", "host", "x"]).code == 13)
    #expect(try run("set", "net/port", "3").code == 13)
    #expect(try run("get", "net/port").text == "9\n")
    let words = "net/port in \(file):1 locks nothing for org.x, org.y, which reads its own files."
    #expect(try run("validate").text.contains(words))
    #expect(try run("doctor").text.contains(words))
  }

  @Test("validate and doctor name the same stray files", arguments: ["org.x.json", "net.json", "Org.x.d/1.json"])
  func strays(_ name: String) throws {
    try manage("unknown", "{}")
    let path = tool.path("managed/\(name)")
    try FileManager.default.createDirectory(
      atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    chmod(try tool.write("managed/\(name)", #"{"net/port": 1}"#.utf8), 0o644)
    let validate = try run("validate")
    #expect(validate.code == 8 && validate.message.contains("those of "), "\(validate)")
    let doctor = try run("doctor")
    #expect(doctor.code == 7 && doctor.text.contains("those of "), "\(doctor)")
  }

  @Test("A lock whose name begins with a slash is named")
  func leadingSlash() throws {
    for application in ["org.x", "net"] {
      let file = try manage(application, #"{"locked": {"/net/port": 9}}"#)
      let validate = try run("validate")
      #expect(validate.text.contains("in \(file):1 "), "\(application): \(validate)")
      try manage(application, "{}")
    }
  }

  @Test("An administrator gives values that JSON has no type for in the form of an export")
  func marked() throws {
    let settings = [
      ("url", #"{"$url": "https://example.com/a"}"#, "https://example.com/a"),
      ("uuid", #"{"$uuid": "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"}"#, "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"),
      ("date", #"{"$date": "2026-01-31T08:30:00Z"}"#, "2026-01-31T08:30:00.000Z"),
      ("data", #"{"$data": "aGk="}"#, "hi"),
      ("secret", #"{"$secret": "hunter2"}"#, "hunter2"),
    ]
    let declarations = settings.map { #"{"name": "\#($0.0)", "collection": "net2", "type": "\#($0.0)"}"# }
    try tool.succeed(
      "schema", "load", "-", "--application", "org.z", input: "[\(declarations.joined(separator: ","))]")
    let members = settings.map { #""net2/\#($0.0)": \#($0.1)"# }.joined(separator: ", ")
    for text in ["{\(members)}", "{\"locked\": {\(members)}}"] {
      try manage("org.z", text)
      for (name, _, value) in settings { #expect(try run("get", "net2/\(name)").text.hasPrefix(value), "\(name)") }
      let validate = try run("validate")
      #expect(validate.code == 0 && validate.text.isEmpty, "\(validate)")
      #expect(try !run("list", "net2", "--values").text.contains("hunter"))
    }
    let file = try manage("org.z", #"{"net2/uuid": {"$uuid": "none"}}"#)
    let bad = try run("get", "net2/uuid")
    #expect(bad.code == 8 && bad.message.contains("\(file):1"), "\(bad)")
  }

  @Test("An import names what is locked beside its other mistakes")
  func imported() throws {
    try manage("org.x", #"{"locked": {"net/port": 8}}"#)
    let run = try run("import", "-", "-c", "net", "--format", "json", input: #"{"port": 7, "prot": 1}"#)
    for words in [
      "net/port is locked by an administrator, in", "net/prot is not declared", "nothing sets what is locked",
    ] {
      #expect(run.message.contains(words), "\(run.message)")
    }
    #expect(run.code == 13)
  }

  @Test("diff compares the values in force, which a lock makes the same, and says nothing of it")
  func diff() throws {
    try tool.succeed("set", "net/port", "1")
    try tool.succeed("env", "create", "net@staging")
    try tool.succeed("set", "net@staging/port", "2")
    #expect(try run("diff", "net", "net@staging").text == "~ port: 1 -> 2\n")
    try manage("org.x", #"{"locked": {"net/port": 8}}"#)
    let diff = try run("diff", "net", "net@staging")
    #expect(diff.code == 0 && diff.text.isEmpty && diff.message.isEmpty, "\(diff)")
    // Defaults are in force, too.
    try manage("org.x", #"{"net/port": 8}"#)
    try tool.succeed("set", "net/other", "0", "--undeclared")
    try tool.succeed("unset", "net/port")
    #expect(try run("diff", "net", "net@staging").text == "~ port: 8 -> 2\n")
    try tool.succeed("set", "net@staging/port", "8")
    #expect(try run("diff", "net", "net@staging").code == 0)
  }

  @Test("copy and export take what is stored, and name the keys that are locked")
  func taken() throws {
    try tool.succeed("set", "net/port", "1")
    try tool.succeed("env", "create", "net@staging")
    try tool.succeed("set", "net@staging/port", "2")
    let file = try manage("org.x", #"{"locked": {"net/port": 8}}"#)
    let note = "net@staging/port keeps the value that \(file):1 locks."
    let exported = "programs have the value of net@staging/port that \(file):1 locks, not the stored one."
    let copy = try run("copy", "net", "--env", "staging", "zzz")
    #expect(copy.code == 0 && copy.message.contains(note), "\(copy)")
    #expect(try run("get", "zzz/port").text == "2\n")
    let export = try run("export", "net", "--env", "staging")
    #expect(export.text.contains("2") && !export.text.contains("8") && export.message.contains(exported), "\(export)")
    let database = try run("export", "net", "--env", "staging", "-o", tool.path("out.sqlite"))
    #expect(database.code == 0 && database.message.contains(exported), "\(database)")
  }

  @Test("With --app, a name with a slash is that of another collection, and what names it is said")
  func slashes() throws {
    try manage("org.x", #"{"net/host": "managed.example", "locked": {"net2/y": 1}}"#)
    try tool.succeed("set", "net/host", "h", "--undeclared")
    func app(_ words: String..., input: String = "") throws -> Tool.Run {
      try tool.run(
        ["--app", "org.x", "-d", tool.store, "--key-file", tool.keyFile] + words, input: input.utf8,
        environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
    }
    let get = try app("get", "net/host")
    #expect(get.code == 3 && get.message.contains("name it with -c net"), "\(get)")
    #expect(try app("get", "-c", "net", "host").text == "h\n")
    let own = """
      [{"name": "own", "collection": "org.x", "type": "int"},
       {"name": "port", "collection": "net", "type": "int", "default": 1}]
      """
    try tool.succeed("schema", "load", "-", "--application", "org.x", input: own)
    let set = try app("set", "net/port", "5")
    #expect(
      set.code == 8 && set.message.contains("key \"port\" of collection \"net\" is. Name the collection with -c. Noth"),
      "\(set)")
    // Declarations that name no collection are of the application's.
    let load = try app("schema", "load", "-", "--application", "org.x", input: #"[{"name": "own", "type": "int"}]"#)
    #expect(load.code == 0, "\(load)")
    #expect(try app("describe", "own").code == 0)
    // Nor does a program get it as a variable.
    try tool.succeed("set", "org.x/own", "3")
    #expect(try app("exec", "--pristine", "--", "/usr/bin/env").text == "OWN=3\n")
  }
}
