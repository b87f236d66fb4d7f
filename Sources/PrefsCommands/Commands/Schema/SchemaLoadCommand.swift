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
      declaration has the names name, collection, type, default, limits, summary, effect, since, deprecated and shared.

      Earlier declarations of an application that are not in the file are removed; values stay, and `prefs check` compares \
      them. If two applications disagree on a setting, that is an error, and nothing is changed.

      Examples:
        prefs schema load settings.json
        prefs schema load settings.json --application org.example.shop --application-version 2.1
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

  /// The declarations of one application.
  private struct Application {
    var version: String?
    var declarations: [Declaration] = []
    var seen: [ByteString: Set<ByteString>] = [:]

    mutating func add(_ declaration: Declaration) throws {
      let name = ByteString(declaration.name)
      guard seen[ByteString(declaration.collection), default: []].insert(name).inserted else {
        let name = KeyReference.text(declaration.name, in: declaration.collection)
        throw Failure(.format, "\(name) is declared twice. Nothing was changed.")
      }
      declarations.append(declaration)
    }
  }

  mutating func run() throws {
    let bytes = try file == "-" ? FileDescriptor.readAll(0, named: "standard input") : FileDescriptor.readFile(file)
    let applications = try read(bytes)
    try Session(common).writeCreating { transaction in
      for (name, application) in applications {
        try transaction.declare(application.declarations, by: name, version: application.version)
      }
    }
    let count = applications.values.reduce(0) { $0 + $1.declarations.count }
    common.note("\(DisplayText.count(count, "setting", "settings")) declared.")
  }

  private func read(_ bytes: [UInt8]) throws -> [String: Application] {
    func malformed(_ reason: String) -> Failure {
      Failure(.format, "\(file) is not a list of declarations: \(reason). Nothing was changed.")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw malformed("it is not valid UTF-8") }
    let tree: Value
    do {
      tree = try JSONFile.tree(text)
    } catch let problem as FormatProblem {
      throw malformed(problem.reason)
    }
    guard case .array(let entries) = tree else { throw malformed("it is not a list") }
    var applications: [String: Application] = [:]
    if let application { applications[application] = Application(version: applicationVersion) }
    for entry in entries {
      guard case .dictionary(let members) = entry else { throw malformed("an entry is not an object") }
      let declaration = try Declaration(members["declaration"] ?? entry)
      var version: String?
      if case .string(let text)? = members["version"] { version = text }
      if let application {
        try applications[application, default: Application()].add(declaration)
      } else if case .string(let name)? = members["application"], members["declaration"] != nil {
        try applications[name, default: Application(version: version)].add(declaration)
      } else {
        throw malformed("an entry names no application. Name it with --application")
      }
    }
    return applications
  }
}
