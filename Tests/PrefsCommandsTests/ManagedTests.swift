import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Managed settings in the shell") struct ManagedTests {
  private let tool: Tool
  private let file: String

  init() throws {
    tool = try Tool()
    try FileManager.default.createDirectory(
      atPath: tool.path("managed/web.d"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    file = try tool.write("managed/web.d/10.json", #"{"size": 12, "locked": {"port": 80}}"#.utf8)
    chmod(file, 0o644)
    try tool.succeed("set", "web/port", "8080", "--int")
    try tool.succeed("history", "--keep", "web")
  }

  private func run(_ arguments: String...) throws -> Tool.Run {
    try tool.run(arguments, input: [], environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
  }

  @Test("get prefers a locked value to the store, and the store to a default, and names the file")
  func get() throws {
    #expect(try run("get", "web/port").text == "80\n")
    #expect(try run("get", "web/port", "--show-origin").text == "\(file):1\t80\n")
    #expect(try run("get", "web/size", "--default", "1", "--show-origin").text == "\(file):1\t12\n")
    let json = try run("get", "web/port", "--json").output
    let object = try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
    #expect(object["value"] as? Int == 80 && object["origin"] as? String == "\(file):1" && object["version"] is NSNull)
    try tool.succeed("set", "web/size", "14", "--int")
    #expect(try run("get", "web/size", "--show-origin").text == "store\t14\n")
    #expect(try run("get", "web/none").code == 3)
    #expect(try tool.succeed("get", "web/port") == "8080\n")
  }

  @Test("No command for one key sets a locked one, and the refusal names the file")
  func set() throws {
    try tool.succeed("set", "web/other", "9", "--int")
    for arguments in [
      ["set", "web/port", "1", "--int"], ["append", "web/port", "x"], ["increment", "web/port"],
      ["revert", "web/port@1"],
      ["rename", "-f", "web/other", "web/port"],
    ] {
      let run = try tool.run(arguments, input: [], environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
      #expect(run.code == 13 && run.message.contains(file) && run.message.contains("locked"), "\(arguments)")
    }
    #expect(try tool.succeed("get", "web/port") == "8080\n" && tool.succeed("get", "web/other") == "9\n")
  }

  @Test("A variable of a file stands for an administrator's key of that name, and not for one beside it")
  func variables() throws {
    let locked = try tool.run(
      ["import", "-", "-c", "web", "--format", "env"], input: "PORT=1\n".utf8,
      environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
    #expect(locked.code == 13, "\(locked.message)")
    let ofDefault = try tool.run(
      ["import", "-", "-c", "web", "--format", "env"], input: "SIZE=15\n".utf8,
      environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
    #expect(ofDefault.code == 0, "\(ofDefault.message)")
    #expect(try run("get", "web/size").text == "15\n")
    #expect(try run("exec", "-c", "web", "--", "printenv", "SIZE").text == "15\n")
  }

  @Test("No command for many keys sets a locked one, or any of them")
  func setMany() throws {
    let managed = ["PREFS_MANAGED_DIR": tool.path("managed")]
    try tool.succeed("set", "new/port", "1", "--int")
    try tool.succeed("set", "new/host", "h")
    #expect(try run("copy", "new", "web", "--merge").code == 13)
    // Nor by naming another application.
    let other = ["--app", "org.example.other", "--store", tool.store, "--key-file", tool.keyFile]
    let set = try tool.run(other + ["set", "-c", "web", "port", "1", "--int"], input: [UInt8](), environment: managed)
    #expect(set.code == 13, "\(set)")
    let json = #"{"host": "h", "port": 1}"#
    let imported = try tool.run("import", "-", "-c", "web", "--format", "json", input: json, environment: managed)
    #expect(imported.code == 13 && imported.message.contains(file))
    #expect(try tool.succeed("list", "web", "--values", "--plain") == "port\t8080\n")
    // What stays as it is may be among them.
    let same = #"{"host": "h", "port": 8080}"#
    #expect(try tool.run("import", "-", "-c", "web", "--format", "json", input: same, environment: managed).code == 0)
  }

  @Test("list marks locked values and defaults, and lists them even if not stored")
  func list() throws {
    try tool.succeed("set", "web/host", "h")
    #expect(try run("list", "web").text == "host\nport\nsize\n")
    #expect(try run("list", "web", "--values").text == "host             h\nport  (locked)   80\nsize  (managed)  12\n")
    let long = try run("list", "web", "-l").text.split(separator: "\n")
    #expect(long.count == 4 && long[2].hasSuffix("(locked)") && long[3].hasSuffix("(managed)"), "\(long)")
    let json = try run("list", "web", "--json", "--values").text
    #expect(json.contains(#"10.json:1""#), "\(json)")
    let all = try run("list", "web", "--all", "--plain").text
    #expect(all == "host\t\nport\tlocked:\(file):1\t80\nsize\tmanaged:\(file):1\t12\n", "\(all)")
    #expect(try tool.succeed("list", "web", "--values", "--plain") == "host\th\nport\t8080\n")
  }

  @Test("check includes defaults and locked values, and names the line")
  func check() throws {
    let declared =
      #"[{"name": "port", "collection": "web", "type": "int", "limits": [{"maximum": 79}]}, "#
      + #"{"name": "width", "collection": "ui", "type": "int"}]"#
    try tool.succeed("schema", "load", tool.write("declared.json", declared.utf8), "--application", "web")
    try tool.succeed("unset", "web/port")
    try tool.write("managed/web.d/10.json", "{\"prot\": 1, \"ui/width\": \"wide\",\n \"locked\": {\"port\": 80}}".utf8)
    let check = try run("validate")
    #expect(
      check.text == """
        ui/width in \(file):1 must be of type int, not string.
        web/port in \(file):2 must be 79 or less, not 80.
        web/prot in \(file):1 is not declared; did you mean "web/port"?

        """)
    #expect(check.code == 8)
    // In the files of the application that declares it.
    #expect(try run("validate", "ui").code == 8 && run("get", "ui/width").text == "wide\n")
    #expect(try tool.succeed("validate") == "")
  }

  @Test("exec and inject pass on locked values and defaults")
  func programs() throws {
    let variables = try run("exec", "-c", "web", "--prefix", "M_", "--pristine", "--", "/usr/bin/env").text
    #expect(variables.split(separator: "\n").sorted() == ["M_PORT=80", "M_SIZE=12"])
    #expect(try run("exec", "-c", "web", "--only", "size", "--pristine", "--", "/usr/bin/env").text == "SIZE=12\n")
    let template = try tool.write("template", "{{prefs:web/port}} {{prefs:web/size}}".utf8)
    #expect(try run("inject", template).text == "80 12")
  }

  @Test("A file that others can write stops the command, and is ignored")
  func permissions() throws {
    chmod(file, 0o666)
    for arguments in [["get", "web/port"], ["set", "web/x", "1"]] {
      let run = try tool.run(arguments, input: [], environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
      #expect(run.code == 14 && run.message.contains(file) && run.text == "", "\(run.message)")
    }
    #expect(try run("get", "other/x").code == 3)
  }

  @Test("doctor lists what is wrong with the files, each with its line, and commands that need them stop")
  func doctor() throws {
    #expect(try run("doctor").code == 0)
    try Data("{\"port\": 80,\n\"locked\": true}".utf8).write(to: URL(filePath: file))
    let second = try tool.write("managed/web.d/20.json", #"{"size": 1 "x": 2}"#.utf8)
    chmod(second, 0o644)
    let doctor = try run("doctor")
    #expect(doctor.code == 7)
    #expect(doctor.text.contains("\(file):2: \"locked\" is neither a dictionary"))
    #expect(doctor.text.contains("\(second): not JSON: a comma or } is missing, line 1, column 12"))
    for arguments in [["get", "web/port"], ["set", "--int", "web/port", "1"], ["validate"]] {
      let stopped = try tool.run(arguments, input: [], environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
      #expect(stopped.code == 8 && stopped.message.contains("\(file):2"), "\(arguments)")
    }
  }

  @Test("doctor and validate report what may be a slip, and files that are not read")
  func slips() throws {
    try Data("{\"blocked\": [\"x\"]}".utf8).write(to: URL(filePath: file))
    let slip = "\(file):1"
    let doctor = try run("doctor")
    let words = "web/blocked in \(slip) locks nothing. Was it meant to be \"locked\"?"
    #expect(doctor.code == 0 && doctor.text.contains(words), "\(doctor.text)")
    let validate = try run("validate")
    #expect(validate.code == 0 && validate.text == words + "\n")
    let declared = #"[{"name": "port", "collection": "web", "type": "int"}]"#
    try tool.succeed("schema", "load", tool.write("declared.json", declared.utf8), "--application", "web")
    #expect(try run("validate", "web").text.contains(words))

    try Data("{}".utf8).write(to: URL(filePath: file))
    let stray = try tool.write("managed/web.json", "{}".utf8)
    let reason = "\(stray): those of web are files in \(tool.path("managed/web.d"))"
    #expect(try run("doctor").text.contains(reason))
    for arguments in [["validate"], ["validate", "web"]] {
      let validate = try tool.run(arguments, input: [], environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
      #expect(validate.code == 8 && validate.message.contains(reason), "\(validate.message)")
    }
    #expect(try run("validate", "ui").code == 3 && run("get", "web/port").code == 0)
  }

  @Test("exec --watch restarts the program when the files or declared defaults change, and keeps it while they are bad")
  func watched() throws {
    try tool.succeed("set", "web/other", "1")
    let (output, messages) = (try LinePipe(tool.path("out")), try LinePipe(tool.path("messages")))
    let child = try tool.spawn(
      ["exec", "--watch", "-c", "web", "--", "sh", "-c", "echo ${PORT-}; while :; do sleep 0.05; done"],
      files: [(0, "/dev/null", O_RDONLY), (1, output.path, O_WRONLY), (2, messages.path, O_WRONLY)],
      environment: ["PREFS_MANAGED_DIR": tool.path("managed")])
    func replace(_ text: String) throws {
      let next = try tool.write("managed/next", text.utf8)
      try #require(chmod(next, 0o644) == 0 && rename(next, file) == 0)
    }
    #expect(try output.next() == "80")
    try replace(#"{"locked": {"port": 81}}"#)
    #expect(try output.next() == "81")
    try replace("{")
    while try !#require(try messages.next()).contains("the program keeps the settings it has") {}
    try replace(#"{"locked": {"port": 82}}"#)
    #expect(try output.next() == "82")
    // A declared default is no change of a key either.
    try replace("{}")
    #expect(try output.next() == "8080")
    try tool.succeed("unset", "web/port")
    #expect(try output.next() == "")
    let declared = #"[{"name": "port", "collection": "web", "type": "int", "default": 90}]"#
    try tool.succeed("schema", "load", tool.write("declared.json", declared.utf8), "--application", "web")
    #expect(try output.next() == "90")
    kill(child, SIGTERM)
    _ = try Tool.exitCode(of: child)
  }
}
