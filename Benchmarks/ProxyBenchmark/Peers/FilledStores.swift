import Foundation

/// The same keys and texts in a store of each kind, closed: what opening is measured on.
struct FilledStores {
  let folder: Folder
  let keyCount: Int

  /// The key that is read first, and its text.
  var sampleKey: String { Samples.key(keyCount / 2) }
  var sampleText: String { Samples.text(keyCount / 2, version: 0) }

  var cofferPath: String { folder.file("Coffer.coffer") }
  var cofferKeyFile: String { folder.file("Coffer.key") }
  var plainPath: String { folder.file("plain.sqlite") }
  var grdbPath: String { folder.file("GRDB.sqlite") }
  /// The suite of `UserDefaults`.
  var suite: String { "coffer-benchmark-\(keyCount)" }

  init(existing folder: Folder, keyCount: Int) {
    self.folder = folder
    self.keyCount = keyCount
  }

  /// Fills stores below `parent`, unless it has been done.
  init(below parent: Folder, keyCount: Int) throws {
    self.init(existing: Folder(existing: parent.file("filled-\(keyCount)")), keyCount: keyCount)
    guard !FileManager.default.fileExists(atPath: folder.path) else { return }
    try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
    let coffer = try CofferPeer(in: folder)
    try coffer.fill(keyCount)
    try coffer.close()
    let plain = try PlainDatabase(path: plainPath, isNew: true)
    try plain.fill(keyCount)
    try plain.close()
    let grdb = try GRDBPeer(path: grdbPath)
    try grdb.create()
    try grdb.fill(keyCount)
    try grdb.close()
    guard Opener.contenders(keyCount: keyCount).contains(.defaults), let defaults = UserDefaults(suiteName: suite)
    else {
      return
    }
    for number in 0..<keyCount { defaults.set(Samples.text(number, version: 0), forKey: Samples.key(number)) }
    defaults.synchronize()
  }
}
