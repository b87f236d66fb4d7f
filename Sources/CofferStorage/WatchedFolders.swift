/// The folders to watch for changes of some paths: each path, because it may be a folder, and all folders above it,
/// which lead to it.
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
      names[path] = .all
      addFolders(above: path)
    }
  }

  /// The folders that lead to the one around the file at `path`; nothing in that one.
  init(leadingToFolderOf path: String) {
    addFolders(above: FilePath.folder(above: path))
  }

  private mutating func addFolders(above path: String) {
    var place = path
    while case let folder = FilePath.folder(above: place), folder != place {
      let name = Names.some([FilePath.lastComponent(of: place)])
      names[folder] = names[folder].map { $0.union(name) } ?? name
      place = folder
    }
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
