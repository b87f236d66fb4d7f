/// The folders to watch for changes of some paths: each path, because it may be a folder, and all folders in which a name on
/// the way to it is looked up, those on the way of links' targets included.
struct WatchedFolders {
  /// The relevant names in a folder.
  enum Names {
    case all
    case some(Set<String>)

    func concerns(_ name: String) -> Bool {
      switch self {
      case .all: true
      case .some(let names): names.contains(name)
      }
    }

    func union(_ other: Names) -> Names {
      if case .some(let names) = self, case .some(let others) = other { .some(names.union(others)) } else { .all }
    }
  }

  private(set) var names: [String: Names] = [:]

  init(_ paths: [String]) {
    for path in paths {
      let end = addWay(to: path)
      names[end] = .all
    }
  }

  /// The folders that lead to the one around the file at `path`; nothing in that one.
  init(leadingToFolderOf path: String) {
    _ = addWay(to: FilePath.folder(above: path))
  }

  /// Some names in one folder, and no folder on the way to it.
  init(folder: String, names: Set<String>) { self.names[folder] = .some(names) }

  /// Adds each folder in which a name is looked up, missing ones included: they may appear later.
  ///
  /// - Returns: The path without links.
  private mutating func addWay(to path: String) -> String {
    FilePath.walk(path) { place in
      add(FilePath.lastComponent(of: place), in: FilePath.folder(above: place))
      return true
    }
  }

  private mutating func add(_ name: String, in folder: String) {
    let name = Names.some([name])
    names[folder] = names[folder].map { $0.union(name) } ?? name
  }

  #if !os(Linux)
    /// The folders, and the direct contents of those watched as a whole.
    var filesAndFolders: [String] {
      names.flatMap { folder, names -> [String] in
        guard case .all = names else { return [folder] }
        let files = (try? FolderNames.read(folder)) ?? []
        return [folder] + files.map { "\(folder)/\(String(decoding: $0, as: UTF8.self))" }
      }
    }
  #endif
}
