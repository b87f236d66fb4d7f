import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

@Suite("The file that opens the page") struct BrowserOpenerTests {
  @Test("Lies in a folder that a browser in a sandbox may read, and no other user, and that is removed")
  func visibleFolder() throws {
    let home = try ScratchFolder()
    let folder = try PrivateFolder(visibleInHome: home.path)
    let name = try #require(folder.path.split(separator: "/").last)
    #expect(folder.path == "\(home.path)/\(name)")
    #expect(!name.hasPrefix("."))
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.path)
    #expect(attributes[.posixPermissions] as? Int == 0o700)
    try FileDescriptor.writeNewFile(Array("token".utf8), to: "\(folder.path)/page.html")
    #expect(folder.wipe())
    #expect(try FileManager.default.contentsOfDirectory(atPath: home.path).isEmpty)
  }
}
