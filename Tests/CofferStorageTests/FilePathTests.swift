import Foundation
import TestSupport
import Testing

@testable import CofferStorage

@Suite("A path") struct FilePathTests {
  @Test("is looked up name by name, as the system does: links' targets, and names that begin with a combining mark")
  func walk() throws {
    let folder = try ScratchFolder()
    let name = "\u{301}odd"
    for path in ["target", "target/\(name)"] {
      try FileManager.default.createDirectory(atPath: folder.file(path), withIntermediateDirectories: false)
    }
    try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: "./target/../target")
    var visited: [String] = []
    let end = FilePath.walk(folder.file("link/\(name)/missing")) { place in
      visited.append(place)
      return true
    }
    #expect(end == folder.file("target/\(name)/missing"))
    let own = visited.drop { $0 != folder.file("link") }
    #expect(own == ["link", "target", "target", "target/\(name)", "target/\(name)/missing"].map(folder.file)[...])
    #expect(FilePath.folder(above: "/a/\(name)") == "/a" && FilePath.lastComponent(of: "/a/\(name)") == name)
    #expect(FilePath.walk("/a/b") { $0 != "/a" } == "/a")
  }

  @Test("with a number is one as Coffer writes numbers, and no other spelling of it")
  func numbered() throws {
    let folder = try ScratchFolder()
    for name in ["10", "2", "1", "+3", "007", "-4", "0", "00", "5 ", " 6", "8a", "\u{0661}", "9223372036854775808", ""]
    {
      try Data().write(to: URL(fileURLWithPath: folder.file("s-replaced-\(name)")))
    }
    #expect(FilePath.numbered(folder.file("s-replaced-")) == ["1", "2", "10"].map { folder.file("s-replaced-\($0)") })
  }
}
