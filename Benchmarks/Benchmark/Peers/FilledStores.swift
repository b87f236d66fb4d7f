import Foundation

/// The same keys and texts in a store of each kind, closed.
struct FilledStores {
  let folder: Folder
  let keyCount: Int
  let byteCount: Int

  /// The first key read, and its text.
  var sampleKey: String { Samples.key(keyCount / 2) }
  var sampleText: String { Samples.text(keyCount / 2, version: 0, byteCount: byteCount) }

  /// The suite of `UserDefaults`.
  var suite: String {
    // Those of different rows are in folders with the same name.
    "coffer-benchmark-" + folder.path.split(separator: "/").suffix(2).joined(separator: "-")
  }

  func path(_ kind: StoreKind) -> String { folder.file(kind.owner.rawValue) }

  init(existing folder: Folder, keyCount: Int, byteCount: Int) {
    self.folder = folder
    self.keyCount = keyCount
    self.byteCount = byteCount
  }

  /// Fills stores below `parent`, unless done before.
  ///
  /// - Parameter kinds: nil for all contenders.
  init(below parent: Folder, keyCount: Int, byteCount: Int = 100, kinds: [StoreKind]? = nil) throws {
    let folder = Folder(existing: parent.file("filled-\(keyCount)-\(byteCount)"))
    self.init(existing: folder, keyCount: keyCount, byteCount: byteCount)
    try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
    for kind in kinds ?? StoreKind.contenders(keyCount: keyCount) where kind.owner == kind {
      guard !FileManager.default.fileExists(atPath: folder.file("\(kind.rawValue).filled")) else { continue }
      if kind == .defaults {
        try DefaultsPeer.fill(suite, keyCount, byteCount: byteCount)
      } else {
        let store = try kind.create(self)
        try store.fill(keyCount, byteCount: byteCount)
        try store.close()
      }
      try Data().write(to: URL(fileURLWithPath: folder.file("\(kind.rawValue).filled")))
    }
  }
}
