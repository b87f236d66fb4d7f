import Coffer
import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

/// The readers of JSON, YAML and TOML with the field's suites, which source packages of readers for Python hold.
@Suite(
  "Readers of files with the field's suites", .enabled(if: ProcessInfo.processInfo.environment["COFFER_SOAK"] == "1"))
struct FormatSuiteTests {
  private static func shown(_ value: Value) -> String { FormatReferenceTests.shown(value) }

  // MARK: - JSONTestSuite

  @Test("JSONTestSuite: each valid file is read as Python reads it and exported again, each other is refused with 8")
  func json() throws {
    guard let package = try SourcePackage("orjson==3.9.8", backend: "maturin") else { return }
    defer { package.remove() }
    let folder = package.folder + "/data/parsing"
    // Three that are long are compressed.
    let unpack = "import lzma, sys\nfor p in sys.argv[1:]: open(p[:-3], 'wb').write(lzma.open(p).read())"
    let all = try FileManager.default.contentsOfDirectory(atPath: folder)
    let packed = all.filter { $0.hasSuffix(".xz") }.map { "\(folder)/\($0)" }
    try #require(Child.run("/usr/bin/env", ["python3", "-c", unpack] + packed).status == 0)
    let names = Set(all.map { $0.replacing(".xz", with: "") }).sorted()
    let paths = names.map { "\(folder)/\($0)" }
    let child = try Child.run("/usr/bin/env", ["python3", "-c", FormatReferenceTests.script, "json"] + paths)
    let expected = try JSONDecoder().decode([String?].self, from: child.output)

    let tool = try BuiltTool()
    try #require(tool.run("set", "other/k", "v").status == 0)
    var written: [String: String] = [:]
    var counts: [String: Int] = [:]
    for (index, name) in names.enumerated() {
      let bytes = Array(try Data(contentsOf: URL(filePath: paths[index])))
      let file = tool.home.file("in.json")
      try Data(Array("{\"c\":{\"\(name)\":".utf8) + bytes + Array("}}".utf8)).write(to: URL(filePath: file))
      let imported = try tool.run("import", file)
      let value = try? SettingsFormat.json.value(bytes)
      switch (name.first, value) {
      case ("n", let value):
        #expect(value == nil && imported.status == 8, "\(name): \(imported.status) \(imported.message)")
        counts["invalid ones refused", default: 0] += 1
      case (_, let value?) where imported.status == 0:
        // Nothing that may be read either way is read as something else.
        #expect(Self.shown(value) == expected[index], "\(name)")
        written[name] = Self.shown(value)
        counts["\(name.first == "y" ? "valid" : "optional") ones the same", default: 0] += 1
      default:
        let isKnown = name.first == "i" || ["twice", "null is not"].contains { imported.message.contains($0) }
        #expect(imported.status == 8 && isKnown, "\(name): \(imported.status) \(imported.message)")
        counts["\(name.first == "y" ? "valid" : "optional") ones refused", default: 0] += 1
      }
    }
    let export = try SettingsFormat.json.value(Array(try tool.run("export", "c", "--format", "json").output))
    guard case .dictionary(let members) = export else {
      Issue.record("no dictionary")
      return
    }
    #expect(members.mapValues { Self.shown($0) } == written)
    #expect(names.count == 318 && counts["valid ones the same"] == 92 && counts["invalid ones refused"] == 188)
    print("JSONTestSuite: \(counts.map { "\($0.value) \($0.key)" }.sorted().joined(separator: ", "))")
  }

  // MARK: - yaml-test-suite

  /// Files that are invalid, or say nothing of a value, and are read: they can only mean this.
  private static let lenient = [
    // The next lines of a list or a text in quotes are not indented, or with tabs.
    "9C9N": #"{"flow": ["a", "b", "c"]}"#, "QB6E": #"{"quoted": "a b c"}"#, "DK95/01": #"{"foo": "bar baz"}"#,
    "Y79Y/003": #"[["foo", "foo"]]"#,
    // The sign alone makes empty text.
    "UKK6/02": #""""#,
  ]

  @Test("yaml-test-suite: each valid file is read as it says or refused, and each invalid one refused but for a few")
  func yaml() throws {
    guard let package = try SourcePackage("py-yaml12==0.2.0", backend: "maturin") else { return }
    defer { package.remove() }
    let folder = URL(fileURLWithPath: package.folder + "/tests/yaml-test-suite/data", isDirectory: true)
    let files = FileManager.default
    let names = try #require(files.subpaths(atPath: folder.path)).filter { $0.hasSuffix("/in.yaml") }
      .map { String($0.dropLast("/in.yaml".count)) }.sorted()
    var lenient = Self.lenient
    var (same, invalid, unread) = (0, 0, 0)
    for name in names {
      let path = folder.appendingPathComponent(name)
      let bytes = Array(try Data(contentsOf: path.appendingPathComponent("in.yaml")))
      let isInvalid = files.fileExists(atPath: path.appendingPathComponent("error").path)
      let json = try? String(contentsOf: path.appendingPathComponent("in.json"), encoding: .utf8)
      do {
        let value = try SettingsFormat.yaml.value(bytes)
        // An empty file has no settings.
        let expected = lenient.removeValue(forKey: name) ?? json.map { $0.allSatisfy(\.isWhitespace) ? "{}" : $0 }
        guard let expected, !isInvalid || Self.lenient[name] != nil else {
          Issue.record("\(name) is read: \(value)")
          continue
        }
        #expect(try Self.shown(Self.text(value)) == Self.shown(Self.text(JSONReader.value(expected))), "\(name)")
        let again = try SettingsFormat.yaml.value(SettingsFormat.yaml.bytes(.value(value)))
        #expect(Self.shown(again) == Self.shown(value), "\(name)")
        if !isInvalid { same += 1 }
      } catch let problem as FormatProblem {
        #expect(problem.reason.hasPrefix("not YAML: ") || problem.reason.hasPrefix("unsupported YAML: "), "\(name)")
        #expect(problem.reason.contains("line ") || problem.reason.contains("at byte"), "\(name): \(problem.reason)")
        (invalid, unread) = isInvalid ? (invalid + 1, unread) : (invalid, unread + 1)
      }
    }
    #expect(lenient.isEmpty, "refused: \(lenient.keys)")
    #expect(names.count == 402 && same > 200 && invalid == 90)
    print("yaml-test-suite: \(same) the same, \(unread) refused though valid, \(invalid) invalid ones refused")
  }

  /// The suite has binary as its text in Base 64, with line ends.
  private static func text(_ value: Value) -> Value {
    switch value {
    case .data(let data): .string(data.base64EncodedString())
    case .string(let text) where text.hasPrefix("R0lGOD"): .string(text.filter { $0 != "\n" })
    case .dictionary(let members): .dictionary(members.mapValues(Self.text))
    default: value
    }
  }

  // MARK: - toml-test

  /// What Coffer does not read in TOML, in words of its messages.
  private static let unsupported = ["needs an offset", "a time without a date", "U+0000"]

  @Test("toml-test: each valid file is read as it says or refused, and each invalid one refused")
  func toml() throws {
    guard let package = try SourcePackage("tomlkit", backend: "poetry.core.masonry.api") else { return }
    defer { package.remove() }
    let folder = package.folder + "/tests/toml-test/tests"
    let list = try String(contentsOfFile: folder + "/files-toml-1.0.0", encoding: .utf8)
    var (same, unsupported, refused) = (0, 0, 0)
    for line in list.split(separator: "\n") where line.hasSuffix(".toml") {
      let path = "\(folder)/\(line)"
      let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
      let isValid = line.hasPrefix("valid/")
      do {
        let value = try SettingsFormat.toml.value(bytes)
        let json = try String(contentsOfFile: path.replacing(".toml", with: ".json"), encoding: .utf8)
        #expect(isValid, "\(line) is read")
        #expect(try Self.shown(value) == Self.shown(tagged: JSONReader.value(json)), "\(line)")
        same += 1
      } catch let problem as FormatProblem {
        let isKnown = Self.unsupported.contains { problem.reason.contains($0) }
        #expect(!isValid || isKnown, "\(line): \(problem.reason)")
        (unsupported, refused) = isValid ? (unsupported + 1, refused) : (unsupported, refused + 1)
      }
    }
    #expect(same > 150 && refused > 300)
    print("toml-test: \(same) the same, \(unsupported) unsupported, \(refused) invalid ones refused")
  }

  /// What ``shown(_:)`` gives for a value in the suite's form: `{"type": "integer", "value": "1"}`.
  private static func shown(tagged value: Value) throws -> String {
    switch value {
    case .array(let elements): return "[" + (try elements.map(shown(tagged:)).joined(separator: ",")) + "]"
    case .dictionary(let members):
      guard members.count == 2, case .string(let type)? = members["type"], case .string(let text)? = members["value"]
      else {
        return "{"
          + (try members.map { HexText.text($0.key.utf8) + ":" + (try shown(tagged: $0.value)) }.sorted()
            .joined(separator: ",")) + "}"
      }
      switch type {
      case "string": return shown(.string(text))
      case "bool": return text
      case "integer": return "i\(text)"
      case "float": return shown(.double(try #require(Double(text))))
      default: return shown(.date(try #require(Timestamp.date(text))))
      }
    default: return "\(value.kind)"
    }
  }
}

/// The source of a package, from the index that pip is configured for.
private struct SourcePackage {
  let folder: String
  private let parent: String

  /// Asks for the names in a package's metadata, which pip wants to see, without the program that would build it.
  private static let backendText = """
    import os, re, shutil
    def prepare_metadata_for_build_wheel(folder, settings=None):
      text = open('PKG-INFO', encoding='utf-8').read()
      name, version = (re.search('^%s: *(.*)' % field, text, re.M)[1].strip() for field in ('Name', 'Version'))
      info = '%s-%s.dist-info' % (name.replace('-', '_'), version)
      os.mkdir(os.path.join(folder, info))
      shutil.copy('PKG-INFO', os.path.join(folder, info, 'METADATA'))
      return info
    """

  /// Downloads and unpacks it; nil where that cannot be done, which is printed.
  ///
  /// - Parameters:
  ///   - requirement: The name, and the version that holds the suite.
  ///   - backend: The Python module that builds it.
  init?(_ requirement: String, backend: String) throws {
    parent = NSTemporaryDirectory() + "coffer-source-\(UUID().uuidString)"
    let module = parent + "/modules/" + backend.replacing(".", with: "/") + ".py"
    try FileManager.default.createDirectory(
      atPath: (module as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try Data(Self.backendText.utf8).write(to: URL(fileURLWithPath: module))
    let script = """
      cd "$1" && PYTHONPATH="$1/modules" python3 -m pip download -q --no-deps --no-build-isolation --no-binary :all: "$2" \
        && mkdir source && tar xzf *.tar.gz -C source --strip-components 1
      """
    let download = try Child.run(
      "/usr/bin/env", ["sh", "-c", script, "sh", parent, requirement], capturesMessages: true)
    folder = parent + "/source"
    guard download.status == 0 else {
      print("\(requirement) left out: \(download.message)")
      remove()
      return nil
    }
  }

  func remove() { try? FileManager.default.removeItem(atPath: parent) }
}

/// The built tool in a home of its own.
private struct BuiltTool {
  let home: ScratchFolder

  init() throws { home = try ScratchFolder() }

  func run(_ arguments: String...) throws -> Child {
    try Child.run(
      Child.products.appendingPathComponent("prefs").path, arguments,
      environment: ["HOME": home.path, "PATH": "/usr/bin:/bin"], capturesMessages: true)
  }
}
