import Coffer
import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

@Suite("Files of environment variables")
struct EnvironmentFileTests {
  private static func value(_ text: String) throws -> Value { try SettingsFormat.env.value(Array(text.utf8)) }

  @Test("are read where shells, python-dotenv and Node read the same")
  func variables() throws {
    let text = """
      # comment
      A=plain # comment
      export B='single $x \\n'
      C="double it's (x) 5$ \\z"
      D=
      E=with spaces inside   \r
      F="two
      lines"
      G="https://example.org/?a=1&b=2"
      H='' # empty
        I=a,b:{c}[d]*?
      J='C:\\data'
      L=a\tb\r

      # comment\r
      M='x'\t# comment
      """ + "\n  \n"
    #expect(
      try Self.value(text) == [
        "A": "plain", "B": "single $x \\n", "C": "double it's (x) 5$ \\z", "D": "", "E": "with spaces inside",
        "F": "two\nlines", "G": "https://example.org/?a=1&b=2", "H": "", "I": "a,b:{c}[d]*?", "J": "C:\\data",
        "L": "a\tb", "M": "x",
      ])
  }

  @Test(
    "are refused with their lines where they read differently",
    arguments: [
      ("A={certs=\"/x\",key=\"/y\"}", "a quote inside a word"), ("A=[\"localhost:11211\",]", "a quote inside a word"),
      ("A=ab'cd\nB=x\nC=ef'gh", "line 1"), ("A=C:\\Users\\me", "a backslash"), ("A=C:\\data\\\nB=1", "a backslash"),
      ("A=a#b", "Node begins a comment"), ("A=#b", "Node begins a comment"), ("A= # b", "Node begins"),
      ("A=$HOME", "a shell expands"),
      ("A=a;b", "a shell ends"), ("A=https://example.org/?a=1&b=2", "a &, where a shell ends"), ("A=x>y", "a >"),
      ("A=x|y", "a |"), ("export A=a b", "after export"), ("export A= x", "after export"),
      ("export A= 'x'", "after export"),
      ("A=1 B=2", "another assignment"), ("A= B=2", "another assignment"), ("A=1 B=2 C_1=", "another assignment"),
      ("A=(a b)", "a list"), ("A=~/x", "home folder"), ("A=x:~/x", "home folder"),
      ("A=`x`", "a shell runs"), ("export A={1,2}", "a brace after export"), ("A=a\u{a0}", "white space"),
      ("A=\"a\\nb\"", "an escape"), ("A=\"a\\\"b\"", "at the end"), ("A=\"$x\"", "a shell expands"),
      ("A=\"`x`\"", "a shell runs"), ("A='it'\\''s'", "after the closing quote"), ("A='x'y", "after the closing quote"),
      ("A='x'#y", "after the closing quote"), ("A='\\\\host\\x'", "two backslashes"),
      ("A='${x}'", "python-dotenv replaces"),
      ("A='x\\'\nB='y'", "at the end"), ("A='C:\\data\\'", "at the end"), ("A='x", "a closing quote is missing"),
      ("A=1\nA=2", "line 2"),
      ("A='x\ry'", "a carriage return"), ("A =x", "not NAME=value"), ("1A=x", "not NAME=value"),
      ("A=1\n \nB=2", "blanks alone"), ("A=1\n\t\nB=2", "before a name"), ("  # note\nA=1", "before a comment"),
      ("\tA=1", "before a name"), ("\u{b}A=1", "before a name"), ("export  A=1", "not NAME=value"),
      ("export\tA=1", "not NAME=value"), ("A=\t1", "a control character"), ("A=1\t\nB=2", "a control character"),
      ("A=1 # n\rB=2", "in a comment"), ("#c\rA=1", "in a comment"), ("A='1' # c\rB=2", "in a comment"),
      ("A=1\n\rB=2", "before a name"), ("\u{feff}A=1", "a byte order mark"),
    ])
  func refusals(_ text: String, _ words: String) throws {
    let problem = try #require(throws: FormatProblem.self, "\(text)") { try Self.value(text) }
    #expect(problem.reason.contains(words), "\(problem.reason)")
    #expect(problem.reason.contains("line "))
  }

  @Test("name all lines that are wrong, up to ten")
  func allLines() throws {
    let text = (1...12).map { "A\($0)=a'b\n" }.joined() + "B=fine\n"
    let problem = try #require(throws: FormatProblem.self) { try Self.value(text) }
    #expect(problem.reason.contains("line 10; and 2 more"), "\(problem.reason)")
  }

  @Test(
    "are written so that they are read again, or refused",
    arguments: [
      ("", "''"), ("a b", "'a b'"), ("it's", "\"it's\""), ("'", "\"'\""), ("\"$x`\\z", "'\"$x`\\z'"),
      ("a\nb\n", "'a\nb\n'"),
      ("C:\\data", "'C:\\data'"), ("it's C:\\Users", "\"it's C:\\Users\""),
      ("#", "'#'"),
      ("é🔑", "'é🔑'"),
      ("it's \\\u{7f}", nil), ("it's \"x\"", nil), ("\\\\host", nil), ("it's $x", nil), ("${x}", nil), ("it's\\", nil),
      ("C:\\data\\", nil),
      ("a\rb", nil),
    ] as [(String, String?)])
  func written(_ text: String, _ form: String?) throws {
    let tree: [String: Value] = ["A": .string(text), "B": "after"]
    guard let form else {
      #expect(throws: FormatProblem.self) { try EnvironmentFile.variable(.string(text)) }
      return
    }
    let bytes = try SettingsFormat.env.bytes(tree)
    #expect(String(decoding: bytes, as: UTF8.self).contains("A=\(form)\n"))
    #expect(try SettingsFormat.env.value(bytes) == .dictionary(tree))
  }

  // MARK: - Other readers

  /// A program that reads the files named in its arguments, and prints a JSON array of what V is in each; null if it is not
  /// set.
  private struct Reader {
    let name: String
    let program: String
    let arguments: [String]
    /// Whether it fails on files that say more than assignments, which then read as `failed`.
    var isShell = false
    static let failed = "\u{1}"

    func values(_ files: [String]) throws -> [String?] {
      let child = try Child.run(program, arguments + files, capturesMessages: true)
      try #require(child.status == 0, "\(name): \(child.message)")
      if isShell {
        return child.output.split(separator: 0, omittingEmptySubsequences: false).dropLast().map {
          String(decoding: $0, as: UTF8.self)
        }
      }
      return try JSONDecoder().decode([String?].self, from: child.output)
    }
  }

  private static func found(_ program: String, _ arguments: [String]) -> Bool {
    (try? Child.run("/usr/bin/env", [program] + arguments, capturesMessages: true).status) == 0
  }

  private static let environment = "/usr/bin/env"

  /// Those that are installed; in the long run python-dotenv is installed for the test.
  private func readers(_ folder: String) throws -> [Reader] {
    // What a file says that is no assignment must not run anything; a file that fails is none of the shell's.
    let script =
      "for file; do (set -ef; unset V; PATH=/nonexistent; . \"$file\" >/dev/null 2>&1; printf '%s\\0' \"$V\")"
      + "; [ $? = 0 ] || printf '\\1\\0'; done"
    var readers = ["bash", "dash"].filter { Self.found($0, ["-c", ":"]) }.map {
      Reader(name: $0, program: Self.environment, arguments: [$0, "-c", script, "sh"], isShell: true)
    }
    let node =
      "const {parseEnv} = require('node:util'), {readFileSync} = require('node:fs');"
      + "console.log(JSON.stringify(process.argv.slice(1).map(f => parseEnv(readFileSync(f, 'utf8')).V ?? null)))"
    if Self.found("node", ["-e", "require('node:util').parseEnv('')"]) {
      readers.append(Reader(name: "Node", program: Self.environment, arguments: ["node", "-e", node, "--"]))
    }
    let python =
      "import sys, json; from dotenv import dotenv_values;"
      + "print(json.dumps([dotenv_values(f).get('V') for f in sys.argv[1:]]))"
    if let program = try python3(folder) {
      readers.append(Reader(name: "python-dotenv", program: Self.environment, arguments: [program, "-c", python]))
    }
    return readers
  }

  private func python3(_ folder: String) throws -> String? {
    if ProcessInfo.processInfo.environment["COFFER_SOAK"] == "1" {
      let program = folder + "/venv/bin/python3"
      if Self.found("python3", ["-m", "venv", folder + "/venv"]),
        Self.found(program, ["-m", "pip", "install", "-q", "python-dotenv"])
      {
        return program
      }
    }
    return Self.found("python3", ["-c", "import dotenv"]) ? "python3" : nil
  }

  private static let pieces = [
    "a", "b", "n", "t", "x", " ", "  ", "'", "\"", "\\", "\\\\", "$", "${a}", "$a", "`", "#", " #", "\n", "=", "~", ":",
    "/",
    "{", "}", ",", "(", ")", "&", "|", "<", ">", ";", " B=1", "[", "]", "*", "?", "!", "%", "é", "e\u{301}", "🔑", ".",
    "-", "0", "5",
  ]

  @Test("are read by shells, Node and python-dotenv as here, whatever is in them; seed 46")
  func otherReaders() throws {
    let isLong = ProcessInfo.processInfo.environment["COFFER_SOAK"] == "1"
    let folder = NSTemporaryDirectory() + "coffer-env-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let readers = try readers(folder)
    var random = SplitMix64(state: 46)
    var (exported, imported, refused) = (0, 0, 0)
    for _ in 0..<(isLong ? 50 : 2) {
      var files: [(path: String, value: String)] = []
      for _ in 0..<400 {
        let text = (0..<Int.random(in: 0...6, using: &random)).map { _ in
          Self.pieces.randomElement(using: &random) ?? ""
        }
        .joined()
        let isExport = Bool.random(using: &random)
        // As an export writes it, between others; or as a person may have written it.
        let file: [UInt8]
        if isExport {
          guard
            let bytes = try? SettingsFormat.env.bytes([
              "A": "it's", "V": EnvironmentFile.variable(.string(text)), "Z": "'",
            ])
          else {
            refused += 1
            continue
          }
          file = bytes
        } else {
          let quote = ["", "'", "\""].randomElement(using: &random) ?? ""
          let export = Bool.random(using: &random) ? "export " : ""
          file = Array("\(export)V=\(quote)\(text)\(quote)\n".utf8)
        }
        guard case .dictionary(let members)? = try? SettingsFormat.env.value(file),
          case .string(let value)? = members["V"]
        else {
          #expect(!isExport, "an export that is not read again: \(file)")
          refused += 1
          continue
        }
        if isExport { #expect(value.utf8.elementsEqual(text.utf8)) }
        (exported, imported) = isExport ? (exported + 1, imported) : (exported, imported + 1)
        let path = "\(folder)/\(files.count).env"
        try Data(file).write(to: URL(fileURLWithPath: path))
        files.append((path, value))
      }
      for reader in readers {
        for (file, read) in zip(files, try reader.values(files.map(\.path))) {
          if reader.isShell, read == Reader.failed { continue }
          let isSame = read.map { $0.utf8.elementsEqual(file.value.utf8) } ?? file.value.isEmpty
          let text = try String(contentsOfFile: file.path, encoding: .utf8)
          #expect(isSame, "\(reader.name) reads \(read ?? "nothing") in \(text)")
        }
      }
    }
    // Fails if hardly anything was compared.
    #expect(exported > 100 && imported > 50)
    print("env, seed 46, by \(readers.map(\.name)): \(exported) exported, \(imported) imported, \(refused) refused")
  }
}
