import Foundation
import TestSupport
import Testing

@testable import CofferStorage

@Suite("The names in a folder") struct FolderNamesTests {
  // The C library reads some 1,360 entries at once; the last one ends where its memory does.
  @Test("are all there, in a folder of 1,500 files, in any encoding, and nothing beyond an entry is read")
  func names() throws {
    let folder = try ScratchFolder()
    let names = (1000..<2500).map { Array("\($0)".utf8) } + [[0xff, 0xfe]]
    let descriptor = open(folder.path, O_RDONLY | O_DIRECTORY)
    defer { close(descriptor) }
    for name in names {
      close(openat(descriptor, name.map { CChar(bitPattern: $0) } + [0], O_CREAT | O_WRONLY, 0o600))
    }
    #expect(try Set(FolderNames.read(folder.path)) == Set(names))
    for _ in 0..<2 { #expect(try FolderNames.read(descriptor).count == names.count) }
  }

  @Test("cannot be read where there is no folder")
  func missing() throws {
    let folder = try ScratchFolder()
    #expect { try FolderNames.read(folder.file("missing")) } throws: { ($0 as? FolderNames.Failure)?.errno == ENOENT }
    try Data().write(to: URL(fileURLWithPath: folder.file("file")))
    #expect { try FolderNames.read(folder.file("file")) } throws: { ($0 as? FolderNames.Failure)?.errno == ENOTDIR }
  }
}
