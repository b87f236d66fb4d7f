import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

@Suite("A source of a key") struct KeySourceTests {
  private let folder: ScratchFolder

  init() throws {
    folder = try ScratchFolder()
  }

  private func expectUnavailable(
    _ words: String, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) {
    #expect(sourceLocation: sourceLocation) {
      try body()
    } throws: {
      guard case StorageError.keyUnavailable(let reason) = $0 else { return false }
      return reason.contains(words)
    }
  }

  @Test("is limited in time: a command that hangs is ended", arguments: ["", "echo key; ", "echo key; exec >&-; "])
  func endlessCommand(_ beginning: String) throws {
    let pidFile = folder.file("pid")
    var limit = Duration.milliseconds(200)
    // Until the shell was fast enough to say who it is.
    repeat {
      limit *= 2
      expectUnavailable("did not end within") {
        _ = try KeyCommand.output(of: "echo $$ > \(pidFile); \(beginning)exec sleep 600", within: limit)
      }
    } while (try? String(contentsOfFile: pidFile, encoding: .utf8))?.hasSuffix("\n") != true && limit < .seconds(60)
    let text = try String(contentsOfFile: pidFile, encoding: .utf8)
    let child = try #require(pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)))
    #expect(kill(child, 0) != 0 && errno == ESRCH)
  }

  @Test("is limited in time: a command that ignores SIGTERM is killed")
  func stubbornCommand() throws {
    expectUnavailable("did not end within") {
      _ = try KeyCommand.output(of: "trap '' TERM; while :; do sleep 0.1; done", within: .milliseconds(500))
    }
  }

  #if os(Linux)
    @Test("is limited in time: the children of a command are ended with it")
    func commandOfCommand() throws {
      let path = folder.file("process")
      expectUnavailable("did not end within") {
        _ = try KeyCommand.output(
          of: "sh -c 'echo $$ > \(path); exec sleep 600'; echo key", within: .milliseconds(500))
      }
      let process = try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)
      func isRunning() -> Bool {
        // One that has ended may still wait to be reaped.
        let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        return status.map { !$0.contains(") Z ") } ?? false
      }
      // A signal takes its time.
      for _ in 0..<1000 where isRunning() { usleep(10_000) }
      #expect(!isRunning())
    }
  #endif

  @Test("is limited in time: a pipe without a writer is abandoned, and one with a writer is read")
  func pipe() throws {
    let path = folder.file("pipe")
    try #require(mkfifo(path, 0o600) == 0)
    expectUnavailable("the key file \(path) gave no data") {
      _ = try KeyFile.read(at: path, within: .milliseconds(20))
    }
    let key = [UInt8](repeating: 7, count: 32)
    let writer = Thread {
      // Opens when there is a reader.
      let descriptor = open(path, O_WRONLY)
      _ = write(descriptor, key, 16)
      _ = key[16...].withUnsafeBytes { write(descriptor, $0.baseAddress, 16) }
      close(descriptor)
    }
    writer.start()
    #expect(try KeyFile.read(at: path).withUnsafeBytes(Array.init) == key)
  }

  @Test("is never a dangling symbolic link: no key is created over it, and none is found")
  func danglingLink() throws {
    let path = folder.file("key")
    try #require(symlink(folder.file("nothing"), path) == 0)
    expectUnavailable("dangling symbolic link") { _ = try KeyFile.make(at: path) }
    expectUnavailable("dangling symbolic link") { _ = try KeyFile.read(at: path) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["key"])
  }

  @Test("is created once, and reported only to its creator")
  func making() throws {
    #expect(try KeyFile.make(at: folder.file("key")))
    #expect(try !KeyFile.make(at: folder.file("key")))
  }

  @Test("refuses a file of one byte, without calling it empty")
  func oneByte() throws {
    let path = folder.file("store")
    for (bytes, reason) in [("", "the file is empty"), ("x", "it does not begin with a store's header")] {
      try Data(bytes.utf8).write(to: URL(fileURLWithPath: path))
      #expect(throws: StorageError.notAStore(path: path, reason: reason)) {
        try Store.open(at: path, key: .key(.random(count: 32)))
      }
    }
  }
}
