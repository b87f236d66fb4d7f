import Foundation

/// A folder for the files of a run.
struct Folder {
  let path: String

  /// Creates a folder with a unique name inside another one.
  init(inside parent: String, named name: String) throws {
    path = "\(parent)/\(name)-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// An existing folder.
  init(existing path: String) {
    self.path = path
  }

  func subfolder(_ name: String) throws -> Folder { try Folder(inside: path, named: name) }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  func remove() {
    try? FileManager.default.removeItem(atPath: path)
  }
}
