import ArgumentParser
import Coffer

/// The command `prefs schema load`.
struct SchemaLoadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "load",
    abstract: "Declare the settings listed in a file.",
    discussion: """
      Reads the output of `prefs schema --format json`: a list of {"application": …, "version": …, "declaration": {…}}, or \
      with --application a list of declarations alone. This is how programs not written in Swift declare their settings. A \
      declaration is an object:

        name, collection    the key; the collection may be omitted: it is then that of -c or --app
        type                bool, int, double, string, data, date, url, uuid, json, secret, any, array, dict, or array<TYPE> and \
      dict<TYPE>
        default             the value if nothing is set; data as base64, a date as 2026-01-31T08:30:00Z
        limits              a list of objects, each of one kind: {"minimum": 1, "maximum": 9}, {"choices": ["a", "b"]}, \
      {"minimumCount": 1, "maximumCount": 20}, {"pattern": "[a-z]+"}, {"words": "what only the program can check"}
        summary             what it is for
        effect              immediate, or restart
        since, deprecated   the version that introduced it; what to use instead
        shared              true if all suites share the collection
        formerly            a list of former names, {"name": …} and if need be "collection": while a version that declares one \
      may run, both names are kept, and each follows the other; otherwise its value moves to the new name. With "converted": true, \
      or if the type is another one, values stay until a program converts them

      A pattern is a regular expression of JSON Schema for the whole text, without groups that look around or are referred to. \
      All mistakes are listed with their lines, and nothing is changed then.

      Earlier declarations of an application that are not in the file are removed, once no version that declares them may \
      run; values stay, and `prefs validate` compares \
      them. If two applications disagree on a setting, that is an error, and nothing is changed.

      Examples:
        echo '[{"name":"n","type":"int"}]' | prefs schema load - --application shop
        prefs schema load settings.json
        prefs schema load shop.json --application shop --application-version 2.1
      """)

  @Argument(help: "The file; - is standard input.", completion: .file())
  var file: String

  @Option(help: ArgumentHelp("Declare all of them for this application.", valueName: "name"))
  var application: String?

  @Option(help: ArgumentHelp("The version of that application.", valueName: "version"))
  var applicationVersion: String?

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if application == "" { throw ValidationError("--application needs a name.") }
    if applicationVersion != nil, application == nil {
      throw ValidationError("--application-version goes with --application.")
    }
  }

  mutating func run() throws {
    let bytes = try file == "-" ? FileDescriptor.readAll(0, named: "standard input") : FileDescriptor.readFile(file)
    let reader: SchemaFile
    do {
      reader = try SchemaFile(
        bytes, application: application, version: applicationVersion, collection: common.namedCollection ?? "")
    } catch let problem as FormatProblem {
      throw Failure(.format, "\(file) is not a list of declarations: \(problem.reason). Nothing was changed.")
    }
    guard reader.problems.isEmpty else {
      throw Failure(
        .format, "\(file) is not a list of declarations. Nothing was changed.",
        details: reader.problems.map { "  \($0)" })
    }
    let older = try CommandSession(common).writeCreating { transaction in
      for (name, application) in reader.applications {
        try transaction.declare(application.declarations, by: name, version: application.version)
      }
      return try reader.applications.filter { try !transaction.isInForce($1.version, of: $0) }.keys.sorted()
    }
    let count = reader.applications.values.reduce(0) { $0 + $1.declarations.count }
    common.note("\(DisplayText.count(count, "setting", "settings")) declared.")
    for name in older {
      common.note("\(name): a newer version has declared its settings; those stay in force, and this one may run, too.")
    }
  }
}
