#if os(Linux)
  import Foundation
  import TestSupport
  import Testing

  /// Runs the recipes of the documentation, and the shell of README.md, as a reader would, each section in a home of its own.
  ///
  /// A block of shell is run, and prints the block of text after it, if there is one. `/etc`, `/var/lib` and `/usr/local/bin` are
  /// folders of that home.
  @Suite("The recipes of the documentation")
  struct RecipesTests {
    private static let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Sources/Coffer/Coffer.docc/Recipes.md").standardized

    /// A block of a section: what it is, and its lines.
    private struct Block {
      let tag: String
      let text: String
    }

    private static let readme = page.deletingLastPathComponent().appendingPathComponent("../../../README.md")
      .standardized

    private static func blocks(of title: String, in page: URL = page) throws -> [Block] {
      let sections = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n## ")
      let section = try #require(sections.first { $0.hasPrefix(title + "\n") }, "no section \(title)")
      let parts = section.components(separatedBy: "\n```")
      return stride(from: 1, to: parts.count, by: 2).map { index in
        let lines = parts[index].components(separatedBy: "\n")
        return Block(tag: lines[0], text: lines.dropFirst().joined(separator: "\n") + "\n")
      }
    }

    private let tool: Tool

    init() throws {
      tool = try Tool()
      for folder in ["bin", "etc", "var"] {
        try FileManager.default.createDirectory(atPath: tool.path(folder), withIntermediateDirectories: false)
      }
      try FileManager.default.createSymbolicLink(
        atPath: tool.path("bin/prefs"), withDestinationPath: Tool.executable)
    }

    // MARK: - Running

    /// The places of the machine, as folders of the home.
    private func here(_ text: String) -> String {
      text.replacing("/usr/local/bin", with: tool.path("bin")).replacing("/etc/", with: tool.path("etc/"))
        .replacing("/var/lib/", with: tool.path("var/"))
    }

    /// What a shell prints that runs `script`.
    private func shell(_ script: String, environment: [String: String] = [:]) throws -> String {
      let variables = [
        "HOME": tool.home.path, "PATH": tool.path("bin") + ":/usr/bin:/bin", "XDG_RUNTIME_DIR": tool.runtime,
      ].merging(environment) { $1 }
      let run = try Child.run(
        "/bin/sh", ["-euc", "cd \"$HOME\"\n" + here(script)], environment: variables, capturesMessages: true)
      #expect(run.status == 0, "\(script)\n\(run.message)")
      return run.text
    }

    /// Runs the shell of a section, and compares what it prints.
    private func run(_ title: String, in page: URL = page, environment: [String: String] = [:]) throws {
      let blocks = try Self.blocks(of: title, in: page)
      for (index, block) in blocks.enumerated() where block.tag == "sh" {
        let printed = try shell(block.text, environment: environment)
        if index + 1 < blocks.count, blocks[index + 1].tag == "text" {
          #expect(printed.hasSuffix(blocks[index + 1].text), "\(block.text)\n\(printed)")
        }
      }
    }

    /// Makes a program that writes its environment into the file `seen`.
    private func addProgram(_ name: String) throws { try addScript("bin/" + name, "env > '\(tool.path("seen"))'") }

    private func seen() throws -> [Substring] {
      String(decoding: try tool.contents(tool.path("seen")), as: UTF8.self).split(separator: "\n")
    }

    /// Makes a program with this script, readable and executable for all.
    private func addScript(_ name: String, _ script: String) throws {
      let path = try tool.write(name, "#!/bin/sh\n\(script)\n".utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
    }

    // MARK: - README

    @Test("The README's commands work as they stand")
    func readmeShell() throws {
      try addScript("server", "env > seen")
      let minute = try Self.blocks(of: "In a minute", in: Self.readme)
      #expect(try shell(minute[0].text).hasSuffix("theme  dark\ntoken  <secret: 6 bytes>\n"))
      try run("The shell", in: Self.readme)
      #expect(try seen().contains("PORT=8080") && seen().contains("TOKEN=s3cret"))
      #expect(tool.exists(tool.path("settings.backup.coffer")))
    }

    @Test("The README's fleet has two hosts that share a setting")
    func readmeFleet() throws {
      // The other host is another home, and the carrier a folder.
      try FileManager.default.createDirectory(atPath: tool.path("web-17"), withIntermediateDirectories: false)
      try addScript("bin/ssh", "HOME=\"$HOME/$1\"; shift; exec sh -euc \"$*\"")
      let blocks = try Self.blocks(of: "A fleet", in: Self.readme)
      #expect(blocks.map(\.tag) == ["sh"])
      let address = "etcd://etcd-1,etcd-2,etcd-3/shops"
      #expect(blocks[0].text.contains(address))
      let printed = try shell(blocks[0].text.replacing(address, with: "file://" + tool.path("var/shops")))
      #expect(printed.hasSuffix("dark\n"))
    }

    // MARK: - Recipes

    @Test("Every section of the page is run")
    func sections() throws {
      let titles = try String(contentsOf: Self.page, encoding: .utf8).components(separatedBy: "\n## ").dropFirst()
      let source = try String(contentsOfFile: #filePath, encoding: .utf8)
      for title in titles.map({ $0.prefix { $0 != "\n" } }) {
        #expect(source.contains("\"\(title)\""), "no test for \(title)")
      }
    }

    @Test("Secrets for a cron job reach it, and are in no list")
    func cron() throws {
      try addProgram("backup-home")
      try run("Secrets for a cron job")
      #expect(try tool.succeed("list", "backup", "--values", "--plain").contains("password\t<secret: 32 bytes>\n"))
      // As crond(8) does: variables by name, and the line after the five fields to a shell with next to no environment.
      let lines = here(try #require(try Self.blocks(of: "Secrets for a cron job").first { $0.tag == "crontab" }).text)
        .split(separator: "\n")
      var environment = ["SHELL": "/bin/sh", "LOGNAME": "user"]
      let assignment = try #require(lines[0].firstIndex(of: "="))
      environment[String(lines[0][..<assignment])] = String(lines[0][lines[0].index(after: assignment)...])
      let job = lines[1].split(separator: " ", maxSplits: 5)[5]
      _ = try shell(String(job), environment: environment)
      #expect(try seen().contains("REPOSITORY=sftp:nas:/srv/backup"))
      #expect(try seen().contains { $0.hasPrefix("PASSWORD=") && $0.count == "PASSWORD=".count + 32 })
    }

    @Test("A systemd service opens its store with a credential")
    func service() throws {
      try addProgram("mailer")
      try run("Secrets for a systemd service")
      let unit = try #require(try Self.blocks(of: "Secrets for a systemd service").first { $0.tag == "ini" })
      var settings: [Substring: String] = [:]
      for line in here(unit.text).split(separator: "\n") {
        let parts = line.split(separator: "=", maxSplits: 1)
        if parts.count == 2 { settings[parts[0]] = String(parts[1]) }
      }
      // As systemd.exec(5) says: a folder for the service, with each credential under its name.
      let credential = try #require(settings["LoadCredential"]).split(separator: ":").map(String.init)
      try FileManager.default.createDirectory(atPath: tool.path("credentials"), withIntermediateDirectories: false)
      try FileManager.default.moveItem(atPath: credential[1], toPath: tool.path("credentials/" + credential[0]))
      let variable = try #require(settings["Environment"]).split(separator: "=", maxSplits: 1).map(String.init)
      _ = try shell(
        try #require(settings["ExecStart"]),
        environment: [variable[0]: variable[1], "CREDENTIALS_DIRECTORY": tool.path("credentials")])
      for entry in ["HOST=mail.example.org", "PORT=587", "PASSWORD=correct horse"] {
        #expect(try seen().contains(Substring(entry)))
      }
    }

    @Test("A program gets its settings by environment, or by a file of its own")
    func program() throws {
      try run("Settings for a program in a container")
      #expect(try tool.mode(tool.path("server.conf")) == 0o600)
    }

    @Test("A program is restarted for changes, and its secrets stay out of its output")
    func masked() throws {
      try run("A program that reads its settings only at its start")
    }

    @Test("The contents of .env are in the store, under the same names")
    func dotenv() throws {
      try tool.write(".env", "# The shop\nexport GREETING=\"Good morning\"\nPORT=8080\nAPI_TOKEN='t0ken#with'\n".utf8)
      try run("From .env files")
      #expect(!tool.exists(tool.path(".env")))
    }

    @Test("The export of defaults is imported with its types")
    func defaults() throws {
      let settings: [String: Any] = [
        "font-size": 13, "last-opened": Date(timeIntervalSince1970: 1_700_000_000), "recent": ["a.txt", "b.txt"],
      ]
      try tool.write(
        "editor.plist", try PropertyListSerialization.data(fromPropertyList: settings, format: .binary, options: 0))
      try run("From defaults")
    }

    @Test("The entries of pass become secrets")
    func pass() throws {
      let gpg = "gpg --batch --quiet --pinentry-mode loopback --passphrase ''"
      _ = try shell(
        """
        mkdir -m 700 .gnupg
        \(gpg) --quick-generate-key user@example.org rsa2048 encrypt 1d 2> /dev/null
        pass init user@example.org > /dev/null
        printf 'tulip\\n' | pass insert --multiline mail/home > /dev/null
        printf 'two\\nlines\\n' | pass insert --multiline router > /dev/null
        """)
      try run("From pass")
      #expect(try tool.succeed("get", "pass/router") == "two\nlines\n")
      #expect(try tool.succeed("list", "pass", "--values", "--plain").hasPrefix("mail/home\t<secret: 5 bytes>\n"))
      _ = try shell("gpgconf --kill all")
    }
  }
#endif
