import Foundation

/// The files of a recording as a disk may hold them after a power cut: synced data is present; unsynced data may be.
///
/// Unsynced writes and truncations may have reached the disk in any order, and a write up to any sector. A new name
/// is on the disk once its file or its folder is synced; a removed one may come back until then.
package struct Disk {
  /// The contents of the files by name.
  package typealias Image = [String: [UInt8]]

  /// Writes the files of an image, all from one folder, to another one.
  package static func write(_ image: Image, of folder: ScratchFolder, to place: String) throws {
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    for (path, bytes) in image {
      let copy = place + path.dropFirst(folder.path.count)
      try Data(bytes).write(to: URL(fileURLWithPath: copy))
      chmod(copy, 0o600)
    }
  }

  private var files: [DiskFile] = []
  private var names: [String: Int] = [:]
  private var durableNames: [String: Int] = [:]
  /// Names created or removed since, in order.
  private var pendingNames: [(path: String, file: Int?)] = []
  /// The file and change of the last write, if it was one.
  private var lastWrite: (file: Int, change: Int)?

  package init() {}

  /// The disk after everything that a recorder has seen.
  package init(_ recorder: RecordingVFS) {
    for event in recorder.events { _ = apply(event) }
  }

  // MARK: What happens

  /// - Returns: Whether the possible contents of the disk have changed.
  package mutating func apply(_ event: RecordingVFS.Event) -> Bool {
    lastWrite = nil
    switch event {
    case .open, .sharedMemory, .mark, .witness: return false
    case .create(let path):
      files.append(DiskFile())
      name(path, files.count - 1)
    case .write(let path, let offset, let bytes): change(path, .write(offset: Int(offset), bytes))
    case .truncate(let path, let size): change(path, .truncate(size: Int(size)))
    case .sync(let path):
      guard let file = names[path] else { return false }
      files[file].sync()
      settleNames { $0.file == file || $0.path == path }
    case .failedSync(let path):
      guard let file = names[path] else { return false }
      files[file].failSync()
    case .delete(let path, let isSynced):
      name(path, nil)
      if isSynced { settleNames { Self.folder(of: $0.path) == Self.folder(of: path) } }
    case .link(let from, let to): name(to, names[from])
    case .rename(let from, let to):
      let file = names[from]
      name(from, nil)
      name(to, file)
    case .syncFolder(let folder): settleNames { Self.folder(of: $0.path) == folder }
    }
    return true
  }

  private mutating func change(_ path: String, _ change: DiskFile.Change) {
    guard let file = names[path] else { preconditionFailure("\(path) was never created") }
    files[file].append(change)
    if let last = files[file].undecided.last { lastWrite = (file, last) }
  }

  private mutating func name(_ path: String, _ file: Int?) {
    names[path] = file
    pendingNames.append((path, file))
  }

  private mutating func settleNames(_ isSettled: ((path: String, file: Int?)) -> Bool) {
    // A later change of the same name settles an earlier one.
    let settled = Set(pendingNames.filter(isSettled).map(\.path))
    for change in pendingNames where settled.contains(change.path) { durableNames[change.path] = change.file }
    pendingNames.removeAll { settled.contains($0.path) }
  }

  private static func folder(of path: String) -> Substring {
    path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex)
  }

  // MARK: What may be left

  /// The files that are certainly on the disk.
  package var surely: Image { image(durableNames) { _, _ in .lost } }

  /// Generates images: each unsynced file completely or not at all, in every combination; random parts of all; and the
  /// last write torn at each sector.
  package func images(
    subsetCount: Int, using generator: inout SplitMix64, _ body: (Image) throws -> Void
  ) rethrows {
    let named = Set(names.values).union(durableNames.values).union(pendingNames.compactMap(\.file))
    let open = named.sorted().filter { !files[$0].undecided.isEmpty }
    // In practice never more than four files are unsynced; otherwise only all and nothing are tried.
    let combinations = open.count > 4 ? [0, (1 << open.count) - 1] : Array(0..<1 << open.count)
    for names in [names, durableNames] {
      for combination in combinations {
        let kept = Set(open.enumerated().filter { combination & 1 << $0.offset != 0 }.map(\.element))
        try body(image(names) { file, _ in kept.contains(file) ? .kept : .lost })
      }
      if pendingNames.isEmpty { break }
    }
    for _ in 0..<(open.isEmpty && pendingNames.isEmpty ? 0 : subsetCount) {
      let share = [0.2, 0.5, 0.8].randomElement(using: &generator) ?? 0.5
      var fates: [Int: Set<Int>] = [:]
      for file in open {
        fates[file] = Set(files[file].undecided.filter { _ in Double.random(in: 0..<1, using: &generator) < share })
      }
      try body(image(randomNames(using: &generator)) { fates[$0]?.contains($1) ?? false ? .kept : .lost })
    }
    try tornImages(body)
  }

  private func tornImages(_ body: (Image) throws -> Void) rethrows {
    guard let lastWrite else { return }
    for tear in files[lastWrite.file].tears(of: lastWrite.change) {
      for others in [DiskFile.Fate.kept, .lost] {
        try body(image(names) { ($0, $1) == lastWrite ? .torn(at: tear) : others })
      }
    }
  }

  /// For each name one of the states it has been in since its folder was synced.
  private func randomNames(using generator: inout SplitMix64) -> [String: Int] {
    var result = durableNames
    for path in Set(pendingNames.map(\.path)).sorted() {
      let states = [durableNames[path]] + pendingNames.filter { $0.path == path }.map(\.file)
      result[path] = states.randomElement(using: &generator) ?? nil
    }
    return result
  }

  private func image(_ names: [String: Int], _ fate: (_ file: Int, _ change: Int) -> DiskFile.Fate) -> Image {
    names.mapValues { file in files[file].bytes { fate(file, $0) } }
  }
}
