import Foundation

/// A file on a disk that may lose power: its durable contents, and its pending changes.
struct DiskFile {
  /// A requested change.
  enum Change {
    case write(offset: Int, Data)
    case truncate(size: Int)
  }

  /// The fate of a change in a power cut.
  enum Fate {
    case lost, kept
    /// Written up to here, counted from the beginning of the file.
    case torn(at: Int)
  }

  private struct Pending {
    let change: Change
    /// Whether it was synced; it stays pending because an earlier change may be lost.
    var isSynced = false
    /// Whether a sync of it has failed: no later sync writes it to the disk.
    var isDoomed = false
  }

  private static let sectorByteCount = 512

  private var durable: [UInt8] = []
  private var pending: [Pending] = []

  mutating func append(_ change: Change) {
    pending.append(Pending(change: change))
  }

  mutating func sync() {
    for index in pending.indices where !pending[index].isDoomed { pending[index].isSynced = true }
    let count = pending.prefix(while: \.isSynced).count
    for entry in pending.prefix(count) { Self.apply(entry.change, .kept, to: &durable) }
    pending.removeFirst(count)
  }

  /// After an error the system keeps the bytes in its cache as if written, and never retries.
  mutating func failSync() {
    for index in pending.indices where !pending[index].isSynced { pending[index].isDoomed = true }
  }

  /// The indices of the changes that a power cut may undo.
  var undecided: [Int] { pending.indices.filter { !pending[$0].isSynced } }

  /// The contents after a power cut.
  func bytes(_ fate: (Int) -> Fate) -> [UInt8] {
    var bytes = durable
    for (index, entry) in pending.enumerated() {
      Self.apply(entry.change, entry.isSynced ? .kept : fate(index), to: &bytes)
    }
    return bytes
  }

  /// Where sectors end inside the write with this number.
  func tears(of index: Int) -> [Int] {
    guard case .write(let offset, let data) = pending[index].change else { return [] }
    let first = (offset / Self.sectorByteCount + 1) * Self.sectorByteCount
    return Array(stride(from: first, to: offset + data.count, by: Self.sectorByteCount))
  }

  private static func apply(_ change: Change, _ fate: Fate, to bytes: inout [UInt8]) {
    switch (change, fate) {
    case (_, .lost): break
    case (.write(let offset, let data), .kept): write(data, at: offset, to: &bytes)
    case (.write(let offset, let data), .torn(let end)):
      // The file may have grown before its bytes came.
      if bytes.count < offset + data.count {
        bytes += [UInt8](repeating: 0, count: offset + data.count - bytes.count)
      }
      write(data.prefix(end - offset), at: offset, to: &bytes)
    case (.truncate(let size), _):
      if size < bytes.count {
        bytes.removeSubrange(size...)
      } else {
        bytes += [UInt8](repeating: 0, count: size - bytes.count)
      }
    }
  }

  private static func write(_ data: Data, at offset: Int, to bytes: inout [UInt8]) {
    if bytes.count < offset + data.count {
      bytes += [UInt8](repeating: 0, count: offset + data.count - bytes.count)
    }
    bytes.replaceSubrange(offset..<offset + data.count, with: data)
  }
}
