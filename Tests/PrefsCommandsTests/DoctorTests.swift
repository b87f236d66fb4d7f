import Foundation
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

@Suite("What doctor says")
struct DoctorReportTests {
  private func json(_ run: Tool.Run) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? [String: Any])
  }

  @Test("A folder that others can write, and a key file that they can read, are problems")
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

  @Test("A note is no problem")
  func notes() throws {
    let tool = try Tool()
    try tool.succeed("set", "x", "1")
    try tool.write(".local/share/prefs/.settings.coffer.0011223344556677.tmp", "x".utf8)
    let text = try tool.succeed("doctor")
    #expect(text.contains("No problems found.") && text.contains("0011223344556677.tmp"))
    // Another one may tell of the system's SQLite.
    #expect(text.contains("1 note:") || text.contains("2 notes:") && text.contains("#walresetbug"))
    let report = try json(try tool.run("doctor", "--json"))
    let notes = try #require(report["notes"] as? [String])
    #expect(notes.count(where: { !$0.contains("#walresetbug") }) == 1 && report["ok"] as? Bool == true)
    let log = try #require(report["log"] as? [String: Any])
    #expect(log["whole"] as? Bool == true && log["frames"] as? Int == 0)
  }

  @Test("Of a store that does not open it names the pages, asks for a passphrase once, and points to salvage")
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

  @Test("Without an envelope it says that there is none to go on with")
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
