#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The last seen state of a folder, without the objects themselves, so that only changes need to be read.
struct FolderSnapshot: Sendable {
  private struct Entry {
    let stamp: FileStamp?
    let digest: ObjectDigest
  }

  private struct Shard {
    var stamp: FileStamp?
    var entries: [String: Entry] = [:]
  }

  private var shards: [String: Shard] = [:]
  private var hash = ObjectSetHash()

  /// The revision of this state.
  ///
  /// It depends on the objects alone, so that copies of a folder agree.
  var revision: CarrierRevision { CarrierRevision(text: hash.text) }

  /// The current and former shards that may have changed since they were last seen.
  func suspects(among present: [String], of folder: CarrierFolder) -> [String] {
    shards(and: present).filter { shard in
      guard let known = shards[shard]?.stamp else { return true }
      return known != FileStamp(of: folder.shardPath(shard))
    }
  }

  func shards(and present: [String]) -> [String] { Set(present).union(shards.keys).sorted() }

  /// Whether anything may have changed since the last check.
  ///
  /// - Parameter staleCommit: The stamp of a pending commit that was already checked.
  func isSuspect(_ folder: CarrierFolder, staleCommit: FileStamp?) throws -> Bool {
    if folder.hasPendingFile, staleCommit == nil || FileStamp(of: folder.pendingPath) != staleCommit { return true }
    return try !suspects(among: folder.shards(), of: folder).isEmpty
  }

  struct Update {
    var changes: [CarrierChange] = []
    /// An incomplete file.
    ///
    /// Its previous object stays valid, and the file is checked again.
    var incompletePath: String?
  }

  /// Checks a shard's files, and reads those that are new or may have changed.
  mutating func update(_ shard: String, of folder: CarrierFolder) throws -> Update {
    var update = Update()
    let path = folder.shardPath(shard)
    // Before its names are read, so that later changes are seen next time.
    var stamp = FileStamp(of: path)
    var known = shards.removeValue(forKey: shard)?.entries ?? [:]
    var entries: [String: Entry] = [:]
    for file in try folder.fileNames(in: path) ?? [] {
      guard let name = try CarrierFolder.objectName(ofFile: file, in: shard) else { continue }
      let old = known[name]
      let fileStamp = FileStamp(of: "\(path)/\(file)")
      if let old, let fileStamp, old.stamp == fileStamp {
        entries[name] = old
      } else {
        switch try folder.file(at: "\(path)/\(file)") {
        case .absent: continue
        case .incomplete:
          update.incompletePath = "\(path)/\(file)"
          stamp = nil
          entries[name] = old
        case .whole(let object, let digest):
          entries[name] = Entry(stamp: fileStamp, digest: digest)
          if old?.digest != digest {
            update.changes.append(.put(CarrierObject(name: name, bytes: object)))
            if let old { try hash.remove(name, old.digest) }
            try hash.add(name, digest)
          }
        }
      }
      known[name] = nil
    }
    for (name, old) in known {
      update.changes.append(.remove(name: name))
      try hash.remove(name, old.digest)
    }
    if stamp != nil || !entries.isEmpty { shards[shard] = Shard(stamp: stamp, entries: entries) }
    return update
  }
}

/// Shows whether a file or folder has changed: its identity, size and times.
struct FileStamp: Hashable, Sendable {
  private let inode: UInt64
  private let byteCount: Int64
  private let modified: Int64
  private let changed: Int64

  /// Nil if it does not exist, or has changed so recently that another change may leave the same times: file systems count in steps
  /// of up to two seconds.
  ///
  /// - Parameter now: Nanoseconds since 1970.
  init?(of path: String, now: Int64 = timespec.now.nanoseconds) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    inode = UInt64(status.st_ino)
    byteCount = Int64(status.st_size)
    (modified, changed) = (status.modificationNanoseconds, status.changeNanoseconds)
    guard max(modified, changed) < now - 3_000_000_000 else { return nil }
  }
}

extension timespec {
  fileprivate static var now: timespec {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return now
  }

  fileprivate var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}

extension stat {
  #if canImport(Darwin)
    fileprivate var modificationNanoseconds: Int64 { st_mtimespec.nanoseconds }
    fileprivate var changeNanoseconds: Int64 { st_ctimespec.nanoseconds }
  #else
    fileprivate var modificationNanoseconds: Int64 { st_mtim.nanoseconds }
    fileprivate var changeNanoseconds: Int64 { st_ctim.nanoseconds }
  #endif

  var isRegularFile: Bool { st_mode & S_IFMT == S_IFREG }
}
