import Foundation
import Testing

/// Replays the corpus of the fuzzer, without the fuzzer: its initial inputs, and its findings.
@Suite("Readers of untrusted bytes") struct ReplayTests {
  private static let corpus = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Corpus")

  @Test("survive every input that fuzzing has kept", arguments: FuzzTarget.all.map(\.name))
  func replay(_ name: String) throws {
    let target = try #require(FuzzTarget.all.first { $0.name == name })
    let folder = Self.corpus.appendingPathComponent(name)
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    #expect(!files.isEmpty)
    for file in files {
      let bytes = try Array(Data(contentsOf: file))
      #expect(throws: Never.self, "\(name)/\(file.lastPathComponent)") { try target.check(bytes) }
    }
  }

  @Test("survive a change of any byte of valid inputs", arguments: FuzzTarget.all.map(\.name))
  func mutations(_ name: String) throws {
    let target = try #require(FuzzTarget.all.first { $0.name == name })
    let seed = Self.corpus.appendingPathComponent(name).appendingPathComponent("seed-0")
    let bytes = try Array(Data(contentsOf: seed))
    for step in 0..<min(bytes.count, 64) {
      let place = step * bytes.count / min(bytes.count, 64)
      for change in [0x01, 0x80, 0xff] as [UInt8] {
        var changed = bytes
        changed[place] ^= change
        #expect(throws: Never.self, "\(name), byte \(place) xor \(change)") { try target.check(changed) }
      }
    }
  }

  @Test("have one corpus each, and there are no others")
  func folders() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
    #expect(Set(names) == Set(FuzzTarget.all.map(\.name)))
  }
}
