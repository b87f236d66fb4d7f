import Foundation

/// A folder for the files of a run.
struct Folder {
  let path: String

  /// Makes a folder with a name of its own inside another one.
  init(inside parent: String, named name: String) throws {
    path = "\(parent)/\(name)-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// A folder that is there.
  init(existing path: String) {
    self.path = path
  }

  func subfolder(_ name: String) throws -> Folder { try Folder(inside: path, named: name) }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  func remove() {
    try? FileManager.default.removeItem(atPath: path)
  }
}
