import CofferCrypto
import Foundation
import TestSupport
import Testing

@testable import CofferStorage

@Suite("What gives a key") struct KeySourceTests {
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

  @Test("has its time: a command that goes on is ended", arguments: ["", "echo key; ", "echo key; exec >&-; "])
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

  @Test("has its time: a command that minds no SIGTERM is ended, too")
  func stubbornCommand() throws {
    expectUnavailable("did not end within") {
      _ = try KeyCommand.output(of: "trap '' TERM; while :; do sleep 0.1; done", within: .milliseconds(500))
    }
  }

  #if os(Linux)
    @Test("has its time: what a command has started is ended with it")
    func commandOfCommand() throws {
      let path = folder.file("process")
      expectUnavailable("did not end within") {
        _ = try KeyCommand.output(
          of: "sh -c 'echo $$ > \(path); exec sleep 600'; echo key", within: .milliseconds(500))
      }
      let process = try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)
      func isRunning() -> Bool {
        // One that has ended may still wait for somebody to ask how.
        let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        return status.map { !$0.contains(") Z ") } ?? false
      }
      // A signal takes its time.
      for _ in 0..<1000 where isRunning() { usleep(10_000) }
      #expect(!isRunning())
    }
  #endif

  @Test("has its time: a pipe that nobody writes into is given up, and one that somebody does is read")
  func pipe() throws {
    let path = folder.file("pipe")
    try #require(mkfifo(path, 0o600) == 0)
    expectUnavailable("the key file \(path) gave no data") {
      _ = try KeyFile.read(at: path, within: .milliseconds(20))
    }
    let key = [UInt8](repeating: 7, count: 32)
    let writer = Thread {
      // Opens when somebody reads.
      let descriptor = open(path, O_WRONLY)
      _ = write(descriptor, key, 16)
      _ = key[16...].withUnsafeBytes { write(descriptor, $0.baseAddress, 16) }
      close(descriptor)
    }
    writer.start()
    #expect(try KeyFile.read(at: path).withUnsafeBytes(Array.init) == key)
  }

  @Test("is no symbolic link that leads nowhere: none is made over it, and none is there")
  func danglingLink() throws {
    let path = folder.file("key")
    try #require(symlink(folder.file("nothing"), path) == 0)
    expectUnavailable("leads nowhere") { _ = try KeyFile.make(at: path) }
    expectUnavailable("leads nowhere") { _ = try KeyFile.read(at: path) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["key"])
  }

  @Test("is made once, and only who made it is told so")
  func making() throws {
    #expect(try KeyFile.make(at: folder.file("key")))
    #expect(try !KeyFile.make(at: folder.file("key")))
  }

  @Test("opens no file of one byte, which is not called empty")
  func oneByte() throws {
    let path = folder.file("store")
    for (bytes, reason) in [("", "the file is empty"), ("x", "it has no header of a store")] {
      try Data(bytes.utf8).write(to: URL(fileURLWithPath: path))
      #expect(throws: StorageError.notAStore(path: path, reason: reason)) {
        try Store.open(at: path, key: .key(.random(count: 32)))
      }
    }
  }
}
