/// A folder for files of administrators: the parent of applications' folders, or one of these.
struct ManagedFolder: Hashable, Sendable {
  let path: String

  init(_ path: String) { self.path = path }

  /// The parents of applications' folders, first the one whose locks count most: no variable lifts a lock of the host.
  static var roots: [ManagedFolder] {
    [ManagedFolder("/etc/coffer")] + [StandardLocation.variable("PREFS_MANAGED_DIR")].compactMap(\.self).map(Self.init)
  }

  /// The folders in the order of reading: the defaults of a later one count more, so a variable's before the host's.
  static func inOrderOfDefaults(_ folders: [ManagedFolder]) -> [ManagedFolder] { folders }

  /// The folder in this one with the files of an application.
  func folder(ofApplication identifier: String) -> ManagedFolder { ManagedFolder("\(path)/\(identifier).d") }
}
