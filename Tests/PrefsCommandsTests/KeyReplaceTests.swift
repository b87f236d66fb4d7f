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

@Suite("Replacing a leaked key")
struct KeyReplaceTests {
  private let tool: Tool
  private let leaked: String

  /// A store that opens with the default key file, which has leaked, and with the passphrase `hunter2` of Ada.
  init() throws {
    tool = try Tool()
    leaked = tool.path("leaked")
    try tool.succeed("set", "x", "1")
    #expect(try tool.addPassphrase("hunter2", label: "Ada").code == 0)
    try tool.succeed("key", "label", "0", "host")
    try FileManager.default.copyItem(atPath: tool.keyFile, toPath: leaked)
  }

  private func get(_ options: String..., descriptors: [Int32: String] = [:]) throws -> Int32 {
    try tool.run(["get", "x", "--no-input"] + options, input: "".utf8, descriptors: descriptors).code
  }

  private func replace(_ options: String..., descriptors: [Int32: String] = [3: "hunter2"]) throws -> Tool.Run {
    try tool.run(
      ["key", "replace", "--keep-passphrase-fd", "3"] + options, input: "".utf8, descriptors: descriptors)
  }

  /// Expects that the leaked key opens nothing, and everything else does.
  private func expectLockedOut(sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try get("--key-file", leaked) == 5, sourceLocation: sourceLocation)
    #expect(try get() == 0, sourceLocation: sourceLocation)
    #expect(
      try get("--passphrase-fd", "3", descriptors: [3: "hunter2"]) == 0, sourceLocation: sourceLocation)
    #expect(try tool.slots().count == 2, sourceLocation: sourceLocation)
    #expect(try tool.succeed("doctor").contains("No problems found."), sourceLocation: sourceLocation)
  }

  @Test("puts a new key file in its place, drops the slot, and replaces the root key, in one command")
  func inPlace() throws {
    let before = try tool.contents(tool.keyFile)
    let copy = tool.path("copy.coffer")
    try FileManager.default.copyItem(atPath: tool.store, toPath: copy)
    let run = try replace()
    #expect(run.code == 0 && run.text.isEmpty, "\(run.message)")
    #expect(run.message.contains("slot 0 (key file \"host\") is locked out; slot 2 (key file \"host\")"))
    #expect(run.message.contains("What opens it: slot 1 (passphrase \"Ada\"), slot 2 (key file \"host\")."))
    try expectLockedOut()
    #expect(try tool.mode(tool.keyFile) == 0o600)
    #expect(try tool.contents(tool.keyFile) != before)
    // The old one opens copies made before.
    let former = tool.keyFile + "-replaced-1"
    #expect(run.message.contains(former))
    #expect(try tool.contents(former) == before)
    #expect(try get("-d", copy, "--key-file", former) == 0)
    #expect(!tool.exists(tool.keyFile + "-replacement"))
    // And again.
    #expect(try replace().code == 0)
    #expect(tool.exists(tool.keyFile + "-replaced-2"))
    try expectLockedOut()
  }

  @Test("changes nothing if the secret of another slot is missing or wrong")
  func refused() throws {
    let files = try [tool.store, tool.keyFile].map(tool.contents)
    let refusals: [(options: [String], code: Int32)] = [
      ([], 11), (["--keep-passphrase-fd", "3"], 5), (["--drop", "Bob"], 3),
    ]
    for (options, code) in refusals {
      let run = try tool.run(["key", "replace", "--no-input"] + options, input: "".utf8, descriptors: [3: "hunter3"])
      #expect(run.code == code, "\(run.message)")
    }
    #expect(try tool.run("key", "replace", "7", "--no-input").code == 3)
    #expect(try tool.run("key", "replace", "Ada", "--no-input").code == 6, "a passphrase is asked for")
    #expect(try replace("--new-key-file", leaked).code == 11, "the leaked key again")
    #expect(try [tool.store, tool.keyFile].map(tool.contents) == files)
    #expect(!tool.exists(tool.keyFile + "-replacement") && !tool.exists(tool.keyFile + "-replaced-1"))
    #expect(try tool.slots().count == 2)
  }

  @Test("takes another key file, a passphrase, or a command, for any slot; others can be dropped")
  func elsewhere() throws {
    let new = tool.path("keys/new")
    try FileManager.default.createDirectory(atPath: tool.path("keys"), withIntermediateDirectories: false)
    #expect(try replace("--new-key-file", new, "--label", "stick").code == 0)
    #expect(try get("--key-file", new) == 0)
    #expect(try get("--key-file", leaked) == 5)
    #expect(try tool.contents(tool.keyFile) == tool.contents(leaked), "the old file is left alone")
    // A person's, by someone else.
    let passphrase = try tool.run(
      ["key", "replace", "Ada", "--key-file", new, "--new-passphrase-fd", "3", "--cost", "14"], input: "".utf8,
      descriptors: [3: "better"])
    #expect(passphrase.code == 0, "\(passphrase.message)")
    #expect(try get("--passphrase-fd", "3", descriptors: [3: "hunter2"]) == 5)
    #expect(try get("--passphrase-fd", "3", descriptors: [3: "better"]) == 0)
    #expect(try Set(tool.slots().compactMap { $0["label"] as? String }) == ["Ada", "stick"])
    #expect(try tool.run("key", "replace", "stick", "--key-file", new, "--drop", "Ada").code == 0)
    #expect(try tool.slots().count == 1)
    #expect(try get("--key-file", new) == 0)
    #expect(try get("--key-file", new + "-replaced-1") == 5)
  }

  @Test("of the vault does the same there, and forgets the key that prefs unlock has kept")
  func vault() throws {
    let key = tool.path("vault-key")
    try tool.succeed("seal", "tokens", "--vault-key-file", key)
    try tool.succeed("set", "--secret", "tokens/a", "-", "--vault-key-file", key, input: "s3cret")
    let old = try tool.contents(key)
    let run = try tool.run("key", "replace", "--vault", "--vault-key-file", key)
    #expect(run.code == 0, "\(run.message)")
    #expect(run.message.contains("What opens the vault: slot 1 (key file)."))
    #expect(try tool.contents(key) != old)
    #expect(try tool.succeed("get", "tokens/a", "--vault-key-file", key) == "s3cret\n")
    let former = try tool.run("get", "tokens/a", "--vault-key-file", key + "-replaced-1")
    #expect(former.code == 5)
  }

  @Test("that was interrupted leaves a store that opens with the key file, and is finished by running it again")
  func interrupted() throws {
    let new = tool.keyFile + "-replacement"
    // After each of its steps: the new file; its slot; the old file's second name; the new file in its place.
    let steps: [() throws -> Void] = [
      { try KeyFile.create(at: new) }, { try tool.succeed("key", "add", "--new-key-file", new, "--label", "host") },
      { try #require(link(tool.keyFile, tool.keyFile + "-replaced-1") == 0) },
      { try #require(unlink(tool.keyFile) == 0 && link(new, tool.keyFile) == 0) },
    ]
    for count in 1...steps.count {
      for step in steps.prefix(count) {
        try step()
        #expect(try get() == 0)
      }
      let run = try replace()
      #expect(run.code == 0, "\(count): \(run.message)")
      try expectLockedOut()
      #expect(!tool.exists(new) && tool.exists(tool.keyFile + "-replaced-1"))
      unlink(tool.keyFile + "-replaced-1")
      unlink(leaked)
      try FileManager.default.copyItem(atPath: tool.keyFile, toPath: leaked)
    }
  }

  @Test("that is killed at any moment leaves a store that opens with the key file, and can be repeated")
  func killed() throws {
    var random = SystemRandomNumberGenerator()
    let rounds = ProcessInfo.processInfo.environment["COFFER_SOAK"] != nil ? 200 : 6
    try tool.succeed("key", "remove", "Ada", "-f")
    for round in 0..<rounds {
      let null = (Int32(0), "/dev/null", O_RDONLY)
      let process = try tool.spawn(
        ["key", "replace"], files: [null, (1, "/dev/null", O_WRONLY), (2, "/dev/null", O_WRONLY)])
      // At most slightly longer than a complete run.
      usleep(UInt32.random(in: 0..<150_000, using: &random))
      kill(process, SIGKILL)
      _ = try Tool.exitCode(of: process)
      #expect(try get() == 0, "round \(round)")
    }
    try tool.succeed("key", "replace")
    #expect(try get() == 0)
    #expect(try get("--key-file", leaked) == 5)
    #expect(try tool.succeed("doctor").contains("No problems found."))
  }

  @Test("that failed after the root key was replaced says so, and what completes it")
  func unfinished() throws {
    // A reader of an earlier state keeps the old keys in use.
    let database = try Database.open(at: tool.store, key: .keyFile(leaked))
    let connection = try database.makeConnection()
    try connection.beginLongLivedReadTransaction()
    try tool.succeed("set", "x", "2")
    let run = try replace("--timeout", "0.2")
    #expect(run.code == 10, "\(run.message)")
    for part in [
      "slot 2 (key file \"host\") is added", "\(tool.keyFile) is the new one", tool.keyFile + "-replaced-1",
      "slot 0 (key file \"host\") is locked out", "To finish it, run: prefs rotate",
    ] {
      #expect(run.message.contains(part), "\(part): \(run.message)")
    }
    #expect(!run.message.contains("othing was changed") && !run.message.contains("no partial change"))
    // Its key opens nothing any more.
    _ = try? connection.endLongLivedReadTransaction()
    try? database.close()
    try tool.succeed("rotate")
    try expectLockedOut()
    // From now on it is a new one, whatever was left of the other.
    let key = try tool.contents(tool.keyFile)
    #expect(tool.exists(tool.keyFile + "-replacement"))
    #expect(try replace().code == 0)
    #expect(try tool.contents(tool.keyFile) != key)
    try expectLockedOut()
  }

  // MARK: What files and slots with its names say

  @Test("locks out the key that opened the store, whatever was left, or named so, beside its file")
  func othersFiles() throws {
    try tool.succeed("key", "remove", "Ada", "-f")
    let new = tool.keyFile + "-replacement"
    let known = tool.path("known")
    let cases: [() throws -> Void] = [
      // A run that was killed in its last step, long ago.
      { try #require(link(tool.keyFile, new) == 0) },
      // A key that someone knows.
      {
        try KeyFile.create(at: new)
        try FileManager.default.copyItem(atPath: new, toPath: known)
      },
      {
        try tool.succeed("key", "add", "--new-key-file", new, "--label", "dummy")
        try FileManager.default.copyItem(atPath: new, toPath: known)
      },
      // With the second name, the slot of a former key is one that an interrupted run was to lock out.
      {
        try tool.succeed("key", "add", "--new-key-file", tool.keyFile + "-replaced-5", "--label", "dummy")
        try #require(link(tool.keyFile, new) == 0)
      },
    ]
    for (index, prepare) in cases.enumerated() {
      unlink(leaked)
      unlink(known)
      try FileManager.default.copyItem(atPath: tool.keyFile, toPath: leaked)
      try prepare()
      let run = try tool.run("key", "replace")
      #expect(run.code == 0, "\(index): \(run.message)")
      #expect(run.message.contains("dummy") == (index > 1), "\(index): \(run.message)")
      for key in [leaked, known] where tool.exists(key) { #expect(try get("--key-file", key) == 5, "\(index)") }
      #expect(try get() == 0, "\(index)")
      #expect(try tool.slots().count == 1 && !tool.exists(new))
    }
  }

  @Test("leaves the slot of a former key that is in use, and is asked for it")
  func formerKeyInUse() throws {
    try tool.succeed("key", "remove", "Ada", "-f")
    try tool.succeed("key", "replace")
    let former = tool.keyFile + "-replaced-1"
    try tool.succeed("key", "add", "--new-key-file", former, "--label", "legacy")
    unlink(leaked)
    try FileManager.default.copyItem(atPath: tool.keyFile, toPath: leaked)
    #expect(try tool.run(["key", "replace", "--no-input"], input: "".utf8).code == 11)
    try tool.succeed("key", "replace", "--keep-key-file", former)
    #expect(try get("--key-file", leaked) == 5)
    #expect(try get() == 0 && get("--key-file", former) == 0)
  }

  @Test("is refused where the key file opens the vault, or the store, too")
  func sharedKeyFile() throws {
    try tool.succeed("key", "remove", "Ada", "-f")
    try tool.succeed("seal", "tokens", "--vault-key-file", tool.keyFile)
    let files = try [tool.store, tool.keyFile].map(tool.contents)
    for (option, other) in [([], "of the vault"), (["--vault", "--vault-key-file", tool.keyFile], "of the store")] {
      let run = try tool.run(["key", "replace"] + option, input: "".utf8)
      #expect(
        run.code == 11 && run.message.contains(other) && run.message.contains("othing was changed"), "\(run.message)")
    }
    #expect(try [tool.store, tool.keyFile].map(tool.contents) == files)
    let own = tool.path("vault-key")
    try tool.succeed("key", "replace", "--vault", "--vault-key-file", tool.keyFile, "--new-key-file", own)
    try tool.succeed("key", "replace")
    #expect(try get("--key-file", leaked) == 5)
  }

  @Test("begins nothing in a damaged store, nor do rotate and seal: no file is made, and no slot")
  func damagedStore() throws {
    try tool.succeed("set", "big", "-", input: String(repeating: "b", count: 60_000))
    var bytes = try tool.contents(tool.store)
    bytes[80_000] ^= 1
    try Data(bytes).write(to: URL(fileURLWithPath: tool.store))
    let key = try tool.contents(tool.keyFile)
    let vaultKey = tool.path("vault-key")
    for arguments in [
      ["key", "replace", "--drop", "Ada"], ["rotate"], ["rotate", "--new-root-key", "--drop", "Ada"],
      ["seal", "tokens", "--vault-key-file", vaultKey],
    ] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 7 && run.message.contains("does not authenticate"), "\(arguments): \(run.message)")
      #expect(run.message.contains("Nothing was changed"))
    }
    #expect(try tool.contents(tool.store) == bytes && tool.contents(tool.keyFile) == key)
    #expect(!tool.exists(tool.keyFile + "-replacement") && !tool.exists(tool.keyFile + "-replaced-1"))
  }

  @Test("of another user's key file is refused before anything is made", .enabled(if: geteuid() == 0))
  func otherOwner() throws {
    try #require(chown(tool.keyFile, 12_345, 12_345) == 0)
    let before = try [tool.store, tool.keyFile].map(tool.contents)
    let run = try replace()
    #expect(run.code == 15 && run.message.contains("belongs to user 12345"), "\(run.message)")
    #expect(run.message.contains("Nothing was changed"))
    #expect(try [tool.store, tool.keyFile].map(tool.contents) == before)
    #expect(!tool.exists(tool.keyFile + "-replacement") && !tool.exists(tool.keyFile + "-replaced-1"))
  }

  @Test("names what is in the place of the new key file and is none")
  func obstacle() throws {
    try tool.write(".config/prefs/key-replacement", "no key".utf8)
    let run = try replace()
    #expect(run.code == 9 && run.message.contains("key-replacement is in the way"), "\(run.message)")
    #expect(try tool.slots().count == 2)
    unlink(tool.keyFile + "-replacement")
    #expect(try replace().code == 0)
    try expectLockedOut()
  }

  @Test("removes what killed programs left while they made a key file, and doctor does, too")
  func leftovers() throws {
    let folder = URL(fileURLWithPath: tool.keyFile).deletingLastPathComponent().path
    let linked = folder + "/.key.0123456789abcdef.tmp"
    let (alone, fresh) = (
      folder + "/.key-replacement.00112233445566aa.tmp", folder + "/.key-replacement.00112233445566bb.tmp"
    )
    let others = [folder + "/.key.012.tmp", folder + "/.other.0123456789abcdef.tmp"]
    for isDoctor in [true, false] {
      for file in [alone, fresh] + others { try KeyFile.create(at: file) }
      try #require(link(tool.keyFile, linked) == 0)
      // A minute ago no one was writing it any more.
      var times = [timeval(tv_sec: 1_000_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000_000, tv_usec: 0)]
      try #require(utimes(alone, &times) == 0)
      if isDoctor {
        let run = try tool.run("doctor")
        #expect(run.code == 7 && run.text.contains("\(linked) was left by a program that died"), "\(run.text)")
        #expect(run.text.contains(alone) && run.text.contains("It was removed."))
        #expect(try tool.run("doctor").code == 0)
      } else {
        #expect(try replace().code == 0)
      }
      #expect(!tool.exists(linked) && !tool.exists(alone))
      for file in [fresh] + others {
        #expect(tool.exists(file))
        unlink(file)
      }
    }
  }

  // MARK: What other commands say

  @Test("The same key again is refused by key add and key change, with nothing changed")
  func sameKey() throws {
    let before = try tool.contents(tool.store)
    for arguments in [
      ["key", "change", "0", "--new-key-file", tool.keyFile], ["key", "add", "--new-key-file", tool.keyFile],
      ["key", "add", "--new-key-file", leaked], ["key", "add", "--key-command", "cat \(leaked)"],
      ["key", "change", "Ada", "--key-command", "cat \(leaked)"],
    ] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 11 && run.message.contains("opens slot 0 already"), "\(arguments): \(run.message)")
    }
    let run = try tool.run(["key", "add", "--new-passphrase-fd", "3"], input: "".utf8, descriptors: [3: "hunter2"])
    #expect(run.code == 11 && run.message.contains("opens slot 1 already"))
    #expect(try tool.contents(tool.store) == before)
  }

  @Test("rotate says what still opens the store, and how a leaked key is locked out")
  func rotate() throws {
    let run = try tool.run("rotate")
    #expect(run.code == 0)
    #expect(run.message.contains("What opens it: slot 0 (key file \"host\"), slot 1 (passphrase \"Ada\")."))
    #expect(run.message.contains("prefs key replace SLOT"))
    #expect(try tool.run("rotate", "--quiet").message.isEmpty)
  }

  @Test(
    "Copies beside the store, which the old key opens, are named by rotate, key remove, replace and change, seal and destroy"
  )
  func copies() throws {
    let folder = URL(fileURLWithPath: tool.store).deletingLastPathComponent().path
    // What a killed restore leaves, too.
    let copies =
      ["-replaced-1", "-replaced-12", "-damaged-log-2"].map { tool.store + $0 }
      + [".settings.coffer-replaced-1.00112233445566aa.tmp", ".settings.coffer.0123456789abcdef.tmp"]
      .map { folder + "/" + $0 }
    for copy in copies { try Data([1]).write(to: URL(fileURLWithPath: copy)) }
    for other in [".settings.coffer.0123.tmp", ".settings.coffer2.0123456789abcdef.tmp"] {
      try Data([1]).write(to: URL(fileURLWithPath: folder + "/" + other))
    }
    for other in ["-replaced-", "-replaced-x", "-replaced-1-wal", "-other-1"] {
      try Data([1]).write(to: URL(fileURLWithPath: tool.store + other))
    }
    let name = try #require(tool.store.split(separator: "/").last).description
    let named = copies.joined(separator: ", ") + "."
    for arguments in [
      ["rotate"], ["rotate", "--new-root-key", "--drop", "Ada"], ["key", "replace"],
      ["seal", "tokens", "--vault-key-file", tool.path("vault-key")],
    ] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 0 && run.message.contains(named), "\(arguments): \(run.message)")
    }
    #expect(try tool.addPassphrase("hunter2", label: "Ada").code == 0)
    let other = tool.path("other")
    #expect(try tool.run("key", "change", "Ada", "--new-key-file", other).message.contains(named))
    #expect(try tool.run("key", "remove", "Ada", "-f").message.contains(named))
    let doctor = try tool.succeed("doctor")
    for copy in copies { #expect(doctor.contains(URL(fileURLWithPath: copy).lastPathComponent)) }
    #expect(try tool.run("destroy", "--confirm", name).message.contains(named))
    for copy in copies { #expect(tool.exists(copy)) }
  }
}
