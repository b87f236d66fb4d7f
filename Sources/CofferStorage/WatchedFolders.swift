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

  /// As many links as Linux follows in one path, path_resolution(7).
  private static let linkLimit = 40

  /// Looks up the names of `path` one by one, as the system does, and adds the folder of each.
  ///
  /// A missing folder may appear later.
  ///
  /// - Returns: The path without links.
  private mutating func addWay(to path: String) -> String {
    var names = Self.components(of: FilePath.absolute(path))
    var place = ""
    var linkCount = 0
    while let name = names.popLast() {
      if name == "." { continue }
      if name == ".." {
        place = String(place[..<(place.lastIndex(of: "/") ?? place.startIndex)])
        continue
      }
      add(name, in: place.isEmpty ? "/" : place)
      let next = "\(place)/\(name)"
      if linkCount < Self.linkLimit, let target = FilePath.linkTarget(next) {
        linkCount += 1
        names += Self.components(of: target)
        if target.utf8.first == UInt8(ascii: "/") { place = "" }
      } else {
        place = next
      }
    }
    return place.isEmpty ? "/" : place
  }

  /// The names in a path, the last one first.
  private static func components(of path: String) -> [String] {
    path.utf8.split(separator: UInt8(ascii: "/")).reversed().map { String(Substring($0)) }
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
