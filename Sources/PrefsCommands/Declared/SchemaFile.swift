import Coffer

/// A file of declarations, as `prefs schema load` reads it, and everything that is wrong with it.
struct SchemaFile {
  /// The declarations of one application.
  struct Application {
    var version: String?
    var declarations: [Declaration] = []
  }

  private(set) var applications: [String: Application] = [:]
  /// Sentences that begin with a place; empty if the file is in order.
  private(set) var problems: [String] = []

  /// The application of all entries; nil if each names its own.
  private let application: String?
  /// The collection of settings that name none.
  private let collection: String
  private let lines: [[String]: Int]
  /// The number of entries without an application, and the place of the first.
  private var nameless: (count: Int, first: String)?
  /// The lines of the settings, to find those that are declared twice.
  private var seen: [Name: String] = [:]

  private struct Name: Hashable {
    let application, collection, key: ByteString
  }

  /// An entry, `declaration`, `limits`, the number of a limit, and a name in it.
  private static let depth = 5

  /// - Throws: ``FormatProblem`` if it is no list in JSON.
  init(_ bytes: [UInt8], application: String?, version: String?, collection: String) throws {
    guard let text = String(validating: bytes, as: UTF8.self) else { throw FormatProblem("it is not valid UTF-8") }
    let tree: Value
    do {
      (tree, lines) = try JSONReader.valueAndLines(text, depth: Self.depth)
    } catch {
      throw JSONFile.problem(error, in: text)
    }
    (self.application, self.collection) = (application, collection)
    if let application { applications[application] = Application(version: version) }
    guard case .array(let entries) = tree else { throw FormatProblem("it is not a list") }
    for (index, entry) in entries.enumerated() { read(entry, at: String(index)) }
    // One option mends all of them.
    if let nameless {
      let what = nameless.count == 1 ? "an entry names" : "\(nameless.count) entries, this one first, name"
      problems.insert("\(nameless.first): \(what) no application. Name it with --application.", at: 0)
    }
  }

  private static let entryNames: Set = ["application", "version", "declaration"]

  private mutating func read(_ entry: Value, at index: String) {
    guard case .dictionary(let members) = entry else { return note([index], nil, "an entry is not an object") }
    guard let declaration = members["declaration"] else {
      if application == nil { noteNameless(index) }
      return read(entry, at: [index], owner: application, version: nil)
    }
    for name in members.keys.sorted() where !Self.entryNames.contains(name) {
      note([index, name], nil, "\"\(name)\" is unknown; an entry has application, version and declaration")
    }
    let owner = text(members, "application", at: index)
    if owner == nil, application == nil { noteNameless(index) }
    read(
      declaration, at: [index, "declaration"], owner: application ?? owner, version: text(members, "version", at: index)
    )
  }

  private mutating func text(_ members: [String: Value], _ name: String, at index: String) -> String? {
    switch members[name] {
    case nil, .null: return nil
    case .string(let text): return text
    default:
      note([index, name], nil, "\"\(name)\" is not text")
      return nil
    }
  }

  private mutating func read(_ value: Value, at path: [String], owner: String?, version: String?) {
    let (declaration, found) = DeclarationReader.read(value, isStrict: true, ownCollection: collection)
    let setting = DeclarationReader.name(of: value)
    for problem in found { note(path + problem.path, setting, problem.reason) }
    guard let declaration, let owner else { return }
    let name = Name(
      application: ByteString(owner), collection: ByteString(declaration.collection), key: ByteString(declaration.name))
    if let first = seen[name] { return note(path, setting, "it is declared twice, first in \(first)") }
    seen[name] = place(path)
    applications[owner, default: Application(version: version)].declarations.append(declaration)
  }

  private mutating func noteNameless(_ index: String) {
    nameless = ((nameless?.count ?? 0) + 1, nameless?.first ?? place([index]))
  }

  private mutating func note(_ path: [String], _ setting: String?, _ reason: String) {
    problems.append("\(place(path)): \(setting.map { "\($0): " } ?? "")\(reason).")
  }

  /// The line of the innermost part that has one.
  private func place(_ path: [String]) -> String {
    for count in stride(from: path.count, to: 0, by: -1) {
      if let line = lines[Array(path.prefix(count))] { return "line \(line)" }
    }
    return "entry \((Int(path.first ?? "") ?? 0) + 1)"
  }
}
