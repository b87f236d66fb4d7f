import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

@Suite("Completion of what a store holds")
struct CompletionTests {
  private let tool: Tool

  init() throws {
    tool = try Tool()
    for key in ["editor/theme", "editor/font-size", "edition", "a key", "tls/a\u{1b}b", "tls/cert"] {
      try tool.succeed("set", key, "x")
    }
  }

  /// What bash offers for the last of the words, as a command would get it.
  private func offers(_ words: String..., environment: [String: String] = [:]) throws -> [String] {
    let script = try tool.write("prefs.bash", tool.succeed("completion", "bash").utf8)
    let bash = try Child.run(
      "/bin/bash",
      [
        "-c",
        """
        source "$1"
        shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
        _prefs "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        for reply in "${COMPREPLY[@]}"; do eval "printf '%s\\n' $reply"; done
        """, "bash", script, Tool.executable,
      ] + words,
      environment: [
        "HOME": tool.home.path, "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": tool.runtime,
      ].merging(environment) { $1 }, capturesMessages: true)
    #expect(bash.message.isEmpty)
    return bash.text.split(separator: "\n").map(String.init).sorted()
  }

  @Test("Keys are offered with and without their collections, except those with control characters")
  func keys() throws {
    #expect(try offers("get", "edi") == ["edition", "editor/font-size", "editor/theme"])
    #expect(try offers("set", "editor/t") == ["editor/theme"])
    #expect(try offers("unset", "edition", "tls/") == ["tls/cert"])
    #expect(try offers("rename", "edition", "editor/f") == ["editor/font-size"])
    #expect(try offers("type", "none/").isEmpty)
    #expect(try offers("get", "-c", "editor", "the") == ["theme"])
    #expect(try offers("get", "--collection=editor", "the") == ["theme"])
  }

  @Test("A name that the shell would expand is offered unchanged, and nothing in it is run")
  func hostileNames() throws {
    let names = [
      "x$(touch ran)", "x`touch ran`", "x${HOME}", "x~", "x\\n", "x'", "x\"", "x{a,b}", "x y", "x*", "xü",
    ]
    for name in names { try tool.succeed("set", "-c", "odd", name, "1") }
    try tool.succeed("set", "-c", "odd", "--", "-x", "1")
    _ = try tool.addPassphrase("correct horse", label: "$(touch ran)")
    #expect(try offers("get", "-c", "odd", "x") == names.sorted())
    #expect(try offers("get", "odd/x") == names.map { "odd/" + $0 }.sorted())
    #expect(try !offers("get", "-c", "odd", "").contains("-x"))
    #expect(try offers("key", "remove", "").contains("$(touch ran)"))
    #expect(!tool.exists(tool.path("ran")) && !FileManager.default.fileExists(atPath: "ran"))
  }

  @Test("A word is read as the shell would, with quotes that are still open, and a name continues it")
  func typedWords() {
    for (typed, text, quote) in [
      ("ab", "ab", nil), ("a\\ b\\$", "a b$", nil), ("'a b", "a b", .single), ("\"a \\\"b", "a \"b", .double),
      ("\"a\"b", "ab", nil), ("a'\\'b", "a\\b", nil), ("\"\\a\\$\\`", "\\a$`", .double), ("a\\", "a", nil),
      ("x\"'", "x'", .double),
    ] as [(String, String, TypedWord.Quote?)] {
      let word = TypedWord(typed)
      #expect(word.text == text && word.quote == quote, "\(typed)")
    }
    #expect(TypedWord("'a\\'b", isFish: true).text == "a'b")
    #expect(TypedWord.quoted("a b$`!é'", after: nil) == "a\\ b\\$\\`\\!é\\'")
    #expect(TypedWord.quoted("a' b", after: .single) == "a'\\'' b")
    #expect(TypedWord.quoted("a$`!\"x", after: .double) == "a\\$\\`\"\\!\"\\\"x")
    // readline takes a last quote for the closing one.
    #expect(TypedWord.quoted("a'", after: .single) == "a'\\'")
    #expect(
      TypedWord.quoted("a\"", after: .double) == "a\\\"\"" && TypedWord.quoted("a!", after: .double) == "a\"\\!\"\"")
  }

  @Test("The script of bash takes no name for a file, and expands none")
  func bashScript() throws {
    let script = try tool.succeed("completion", "bash")
    #expect(!script.contains("complete -o filenames") && !script.contains("-W \"$("))
    #expect(script.contains("__prefs_add_names \"$(__prefs_custom_complete ---completion get -- positional@0"))
    #expect(script.contains("\ncomplete -F _prefs prefs\n"))
  }

  @Test("For zsh a colon does not begin a description; fish takes names as they are")
  func otherShells() throws {
    try tool.succeed("set", "-c", "odd", "a:b\\c $x", "1")
    func offers(_ shell: String) throws -> String {
      try tool.run(
        "---completion", "get", "--", "--collection", "3", "0", "prefs", "get", "-c", "odd",
        environment: ["SAP_SHELL": shell, "SAP_SHELL_VERSION": "5"]
      ).text
        + tool.run(
          "---completion", "get", "--", "positional@0", "4", "0", "prefs", "get", "-c", "odd", "",
          environment: ["SAP_SHELL": shell, "SAP_SHELL_VERSION": "5"]
        ).text
    }
    #expect(try offers("zsh").contains("a\\:b\\\\c $x\n"))
    #expect(try offers("fish").contains("a:b\\c $x\n"))
  }

  @Test("Collections are offered where a command takes one")
  func collections() throws {
    #expect(try offers("list", "").filter { !$0.hasPrefix("-") } == ["editor", "tls"])
    #expect(try offers("edit", "ed") == ["editor"])
    #expect(try offers("get", "-c", "t") == ["tls"])
  }

  @Test("Key slots are offered by label, or by number, without a key")
  func slots() throws {
    _ = try tool.addPassphrase("correct horse", label: "laptop")
    #expect(try offers("key", "remove", "lap") == ["laptop"])
    try FileManager.default.removeItem(atPath: tool.keyFile)
    #expect(try offers("key", "label", "").filter { !$0.hasPrefix("-") } == ["0", "laptop"])
  }

  @Test("The store is the one named in the line")
  func otherStore() throws {
    let store = tool.path("other.coffer")
    try tool.succeed("set", "-d", store, "elsewhere", "x")
    #expect(try offers("get", "-d", store, "else") == ["elsewhere"])
    #expect(try offers("get", "--store=\(store)", "else") == ["elsewhere"])
    #expect(try offers("get", "-d", "~/other.coffer", "else") == ["elsewhere"])
    #expect(try offers("get", "else", environment: ["PREFS_STORE": store]) == ["elsewhere"])
    #expect(try offers("get", "-d", tool.path("none"), "else").isEmpty)
  }

  @Test("It asks nothing, runs no program and creates nothing")
  func nobodyAsked() throws {
    let command = ["PREFS_KEY_COMMAND": "touch '\(tool.path("ran"))'; cat '\(tool.keyFile)'"]
    #expect(try offers("get", "edi", environment: command).isEmpty)
    #expect(!tool.exists(tool.path("ran")))
    #expect(try offers("get", "--passphrase-fd", "0", "edi").isEmpty)
    // A pipe without a writer would keep the shell waiting.
    let pipe = tool.path("pipe")
    try #require(mkfifo(pipe, 0o600) == 0)
    #expect(try offers("get", "--key-file", pipe, "edi").isEmpty)
    #expect(try offers("get", "edi", environment: ["PREFS_KEY_FILE": pipe]).isEmpty)
    let home = try Tool()
    #expect(try home.run("---completion", "get", "--", "positional@0", "2", "0", "prefs", "get", "").text == "\n")
    #expect(try FileManager.default.contentsOfDirectory(atPath: home.home.path).isEmpty)
  }
}
