import CofferStorage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

extension ManagedSettings {
  /// The folders that hold the files of an application.
  struct Folders: Sendable {
    /// Of two locks, the first one's is in force.
    let inOrderOfLocks: [ManagedFolder]
    /// The application's collection.
    let application: String

    init(ofApplication identifier: String) {
      self.init(ofApplication: identifier, in: ManagedFolder.roots)
    }

    /// - Parameter roots: The parents of the application's folders.
    init(ofApplication identifier: String, in roots: [ManagedFolder]) {
      // An administrator's settings apply in every environment.
      let identifier = CollectionEnvironment(collection: identifier)?.parent ?? identifier
      application = identifier
      // Such an identifier has no folder; opening its store reports the error.
      let hasFolder = !identifier.isEmpty && !identifier.utf8.contains(UInt8(ascii: "/"))
      inOrderOfLocks = hasFolder ? roots.map { $0.folder(ofApplication: identifier) } : []
    }

    /// The order of reading: of two defaults, the last one's is in force.
    var inOrderOfDefaults: [ManagedFolder] { ManagedFolder.inOrderOfDefaults(inOrderOfLocks) }

    static func locks(in folder: String) -> String { "\(folder)/locks" }

    /// What is in one of the paths, listed once: what keeps it from being listed is one problem.
    struct Listing {
      private let folder: String
      private let names: [String]

      /// - Throws: As `Folders.names(in:)`.
      init(of folder: String) throws {
        self.folder = folder
        names = try Folders.names(in: folder)
      }

      /// The paths of the settings' files.
      var files: [String] { Folders.files(names, in: folder) }

      /// The paths of the files in the folder of locks, if there is one.
      func locks() throws -> [String] {
        // Some file systems do not tell upper case from lower case.
        guard names.contains(where: { $0.lowercased() == "locks" }) else { return [] }
        return try Folders.files(in: Folders.locks(in: folder))
      }

      /// Throws if files are in a folder whose name was certainly meant to be `locks`.
      func refuseMistakable() throws {
        for name in names where name != "locks" {
          let lower = name.lowercased()
          guard lower == "locked" || EditDistance.between(lower, "locks") <= 1 else { continue }
          let place = "\(folder)/\(name)"
          // Where names differ only in case, it is the folder itself.
          guard Folders.resolved(place) != Folders.resolved(Folders.locks(in: folder)),
            let file = try Folders.files(in: place).first
          else { continue }
          throw CofferError.malformedSettings(
            source: file, reason: "files in \"\(name)\" lock nothing; the folder of locks is \"locks\"")
        }
      }
    }

    /// What an administrator may have meant for this application, and is not read, as errors.
    func strays(in roots: [ManagedFolder]) -> [CofferError] {
      zip(roots.map(\.path), inOrderOfLocks.map(\.path)).flatMap { root, folder -> [CofferError] in
        let own = ByteString(application.lowercased())
        return ((try? Self.names(in: root)) ?? []).compactMap { name in
          let place = "\(root)/\(name)"
          guard place != folder, Self.resolved(place) != Self.resolved(folder) else { return nil }
          let endings = ["", ".json", ".plist", ".d"].filter {
            ByteString(name.lowercased()) == ByteString(own.string + $0)
          }
          guard let ending = endings.first else { return nil }
          let isFile = [".json", ".plist"].contains(ending)
          guard isFile || (try? Self.files(in: place))?.isEmpty == false else { return nil }
          return CofferError.malformedSettings(
            source: place, reason: "those of \(application) are files in \(folder)")
        }
      }
    }

    /// The paths to watch for changes: the folders, and the files in them, which may be links.
    var watchedPaths: [String] {
      let folders = inOrderOfLocks.flatMap { [$0.path, Self.locks(in: $0.path)] }
      let files = folders.flatMap { folder in ((try? Self.names(in: folder)) ?? []).map { "\(folder)/\($0)" } }
      return folders + files
    }

    /// The paths of the settings' files in a folder, in the order of their names, those that are of a kind that cannot be read
    /// included.
    ///
    /// - Throws: `CofferError.permissionDenied`.
    static func files(in folder: String) throws -> [String] { files(try names(in: folder), in: folder) }

    private static func files(_ names: [String], in folder: String) -> [String] {
      names.filter { name in
        let lower = name.lowercased()
        return !name.utf8.starts(with: ".".utf8)
          && [".json", ".plist", ".toml", ".yaml", ".yml"].contains { lower.hasSuffix($0) }
      }.map { "\(folder)/\($0)" }
    }

    /// The names in a folder, in the order of their UTF-8 bytes; empty if there is no folder.
    ///
    /// - Throws: `CofferError.permissionDenied`; `.inputOutput` for a link that leads nowhere, as to a file system that is not mounted,
    ///   and `.malformedSettings` for something else than a folder: what they lock is not known.
    static func names(in folder: String) throws -> [String] {
      do {
        let names = try FolderNames.read(folder).map { ByteString(String(decoding: $0, as: UTF8.self)) }
        return names.sorted().map(\.string)
      } catch {
        switch error.errno {
        case ENOENT:
          let dangling = [folder, above(folder)].first { isThere($0) && resolved($0) == nil }
          if let dangling {
            throw CofferError.inputOutput(
              path: dangling, reason: "managed settings cannot be read: the link leads nowhere")
          }
          // It has come meanwhile, as by the exchange of a link.
          return isThere(folder) ? try names(in: folder) : []
        case ENOTDIR:
          throw CofferError.malformedSettings(
            source: isFolder(above(folder)) ? folder : above(folder),
            reason: "managed settings are files in a folder of this name")
        // No file system holds such a name.
        case ENAMETOOLONG: return []
        default: break
        }
        throw CofferError.permissionDenied(
          path: folder, reason: "managed settings cannot be read: no permission to list the folder")
      }
    }

    private static func isThere(_ path: String) -> Bool {
      var status = stat()
      return lstat(path, &status) == 0
    }

    private static func isFolder(_ path: String) -> Bool {
      var status = stat()
      return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// The path without links; nil if it leads nowhere.
    static func resolved(_ path: String) -> String? {
      guard let resolved = realpath(path, nil) else { return nil }
      defer { free(resolved) }
      return String(cString: resolved)
    }

    static func above(_ path: String) -> String {
      path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    }
  }
}
