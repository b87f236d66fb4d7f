import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("Findings of doctor")
struct DoctorReportTests {
  private func json(_ run: Tool.Run) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? [String: Any])
  }

  @Test("A folder writable by others, and a key file readable by others, are problems")
  func permissions() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    let folder = tool.home.path + "/.local/share/prefs"
    chmod(folder, 0o777)
    let wide = try tool.run("doctor")
    #expect(wide.code == 7 && wide.text.contains(folder) && wide.text.contains("mode 777"))
    chmod(folder, 0o700)
    chmod(tool.keyFile, 0o644)
    let readable = try tool.run("doctor", "--json")
    #expect(readable.code == 7)
    let report = try json(readable)
    #expect(report["keyFile"] as? String == tool.keyFile && report["salvage"] as? Bool == false)
    #expect(try #require(report["problems"] as? [String]) == ["\(tool.keyFile) is open to others (mode 644)."])
    chmod(tool.keyFile, 0o600)
    try tool.succeed("doctor")
  }

  @Test("A key file of another user is a problem", .enabled(if: geteuid() == 0))
  func foreignKeyFile() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    try #require(chown(tool.keyFile, 12_345, 12_345) == 0)
    let run = try tool.run("doctor")
    #expect(run.code == 7 && run.text.contains("\(tool.keyFile) belongs to another user (12345)"))
  }

  @Test("Plaintext left by a killed editor is a problem, beside the store and in the runtime folder")
  func editorFolders() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    for parent in [tool.home.path + "/.local/share/prefs", tool.runtime] {
      let folder = parent + "/.prefs-edit-AbCdEf"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      let run = try tool.run("doctor")
      #expect(run.code == 7 && run.text.contains("\(folder) was left by a killed `prefs edit`"))
      try FileManager.default.removeItem(atPath: folder)
    }
    try tool.succeed("doctor")
  }

  @Test("The pages of a store above 64 MiB are not checked without --deep, which the output says")
  func large() throws {
    let tool = try Tool()
    let file = tool.path("large")
    try #require(FileManager.default.createFile(atPath: file, contents: nil) && truncate(file, 65 << 20) == 0)
    try tool.succeed("set", "--type", "data", "--value-file", file, "x")
    let store = try FileHandle(forUpdating: URL(fileURLWithPath: tool.store))
    try store.seek(toOffset: 32 << 20)
    try store.write(contentsOf: [UInt8](repeating: 0, count: 16))
    try store.close()
    let run = try tool.run("doctor")
    #expect(run.code == 0 && run.text.contains("Pages and values were not checked; use --deep for that."))
    #expect(try tool.run("get", "x").code == 7)
  }

  @Test("Bytes after the last page are a problem, also in a store that is not read completely, and checked quickly")
  func tail() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    // Sparse: reading it would take hours.
    try #require(truncate(tool.store, 1 << 40) == 0)
    for arguments in [["doctor"], ["doctor", "--deep"]] {
      let run = try tool.run(arguments, input: "".utf8)
      #expect(run.code == 7 && run.text.contains("bytes after the last page"))
      #expect(run.text.contains("1 problem:"))
    }
  }

  @Test("A folder that others can enter is a note")
  func enterableFolder() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    let folder = tool.home.path + "/.local/share/prefs"
    chmod(folder, 0o711)
    let text = try tool.succeed("doctor")
    #expect(
      text.contains("No problems found.") && text.contains("The folder \(folder) can be entered by others (mode 711)"))
  }

  @Test("A note is not a problem")
  func notes() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    // The index of a store that was open under a temporary name.
    try tool.write(".local/share/prefs/.settings.coffer.0011223344556677.tmp-shm", "x".utf8)
    let text = try tool.succeed("doctor")
    #expect(text.contains("No problems found.") && text.contains("0011223344556677.tmp-shm"))
    // Another one may tell of the system's SQLite.
    #expect(text.contains("1 note:") || text.contains("2 notes:") && text.contains("#walresetbug"))
    let report = try json(try tool.run("doctor", "--json"))
    let notes = try #require(report["notes"] as? [String])
    #expect(notes.count(where: { !$0.contains("#walresetbug") }) == 1 && report["ok"] as? Bool == true)
    let log = try #require(report["log"] as? [String: Any])
    #expect(log["whole"] as? Bool == true && log["frames"] as? Int == 0)
  }

  @Test("For a store that does not open it names the pages, asks for a passphrase once, and points to salvage")
  func unopenable() throws {
    let tool = try Tool()
    let path = tool.path("p.coffer")
    let made = try tool.run(
      "set", "x", "1", "-d", path, "--passphrase-fd", "3", descriptors: [3: "correct horse\n"])
    try #require(made.code == 0, "\(made.message)")
    var bytes = try tool.contents(path)
    for page in [1, 2, 3] { bytes[16384 + (page - 1) * 4096 + 9] ^= 1 }
    try tool.write("p.coffer", bytes)
    let run = try tool.run("doctor", "-d", path, "--passphrase-fd", "3", descriptors: [3: "correct horse\n"])
    #expect(run.code == 7)
    #expect(run.text.contains("Pages 1 to 3 do not authenticate.") && run.text.contains("prefs salvage -o NEW"))
    let report = try json(
      try tool.run("doctor", "-d", path, "--json", "--passphrase-fd", "3", descriptors: [3: "correct horse\n"]))
    #expect(report["opens"] as? Bool == false && report["salvage"] as? Bool == true && report["ok"] as? Bool == false)
  }

  @Test("Without an envelope it reports that and stops")
  func noEnvelope() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    var bytes = try tool.contents(tool.store)
    for copy in [0, 8192] { bytes[copy + 100] ^= 1 }
    try tool.write("broken", bytes)
    let run = try tool.run("doctor", "-d", tool.path("broken"))
    #expect(run.code == 7 && run.text.contains("envelope"))
    #expect(!run.text.contains("salvage -o NEW"))
  }
}
