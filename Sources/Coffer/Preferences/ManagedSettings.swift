import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What the administrator of a host gives an application: defaults, and values that nobody may change.
///
/// ``Preferences/open(application:at:key:layers:environment:declaring:strict:mode:options:)`` reads it from the files of
/// `/etc/coffer/IDENTIFIER.d`:
///
/// ```json
/// {"timeout": 30, "web/port": 8080, "locked": {"updates": false}}
/// ```
///
/// - Files are JSON objects, `*.json`, or property lists, `*.plist`, read in the order of their names' UTF-8 bytes; of two that
///   have one key the later one counts. Names that begin with a dot, and those of other kinds, are left alone, but for `*.toml`,
///   which is an error: the library has no parser for it, and a lock that is not read should be noticed.
/// - What a file has at its top are defaults: they show where a setting is stored nowhere, before registered ones.
/// - What stands in its dictionary `locked`, and in the files of the folder `locks` beside it, is locked: it shows whatever else
///   there is, and setting such a key throws ``CofferError/lockedByAdministrator(collection:key:file:)``.
/// - A typed key that names a collection goes by `collection/key`, as in a ``Preferences/Layer``.
/// - The folder `IDENTIFIER.d` in that of the variable `PREFS_MANAGED_DIR` is read, too, after the one in `/etc`, and cannot lift
///   a lock of it.
/// - A file counts only where nobody but root and this user can put other contents there: it and all folders above it belong to
///   one of them, and are not writable by group or others. A file that does not keep to that is an error, not left out.
///
/// It is read when settings are opened, and stays as it was then until they are opened again.
public struct ManagedSettings: Sendable {
  typealias Entry = Preferences.Layer.Entry

  private(set) var defaults: [ByteString: Entry] = [:]
  private(set) var locked: [ByteString: Entry] = [:]

  package var isEmpty: Bool { defaults.isEmpty && locked.isEmpty }

  /// Reads what there is for an application.
  ///
  /// - Throws: `CofferError.malformedSettings` for a file that holds no settings by name, or is TOML; `.permissionDenied` where a
  ///   file may not be read, or others may write to it or a folder above; `.inputOutput`.
  public init(ofApplication identifier: String) throws {
    try self.init(
      ofApplication: identifier,
      in: ["/etc/coffer"] + [StandardLocation.variable("PREFS_MANAGED_DIR")].compactMap(\.self))
  }

  /// - Parameter roots: The folders that have one for each application; locks of the first are not lifted by the others.
  init(ofApplication identifier: String, in roots: [String]) throws {
    // An administrator's settings hold in every environment.
    let identifier = CollectionEnvironment(collection: identifier)?.parent ?? identifier
    // Such a one has no folder; what opens its store says so.
    guard !identifier.isEmpty, !identifier.utf8.contains(UInt8(ascii: "/")) else { return }
    for root in roots {
      var own = ManagedSettings()
      try own.read("\(root)/\(identifier).d", isLocked: false)
      try own.read("\(root)/\(identifier).d/locks", isLocked: true)
      defaults.merge(own.defaults) { $1 }
      locked.merge(own.locked) { first, _ in first }
    }
  }

  private init() {}

  // MARK: Values

  /// The value that is locked for a key, and the file that says so; nil where none is.
  public func locked(forKey key: String) -> (value: Value, file: String)? {
    locked[ByteString(key)].map { ($0.value, $0.file ?? "") }
  }

  /// The default for a key, and the file that gives it; nil where none does.
  public func defaultValue(forKey key: String) -> (value: Value, file: String)? {
    defaults[ByteString(key)].map { ($0.value, $0.file ?? "") }
  }

  /// The keys that have a default or are locked, in the order of their UTF-8 bytes.
  package var allKeys: [String] { Set(defaults.keys).union(locked.keys).sorted().map(\.string) }

  /// - Throws: `CofferError.lockedByAdministrator`.
  package func requireUnlocked(_ key: String, in collection: String) throws {
    guard let file = locked(forKey: key)?.file else { return }
    throw CofferError.lockedByAdministrator(collection: collection, key: key, file: file)
  }

  // MARK: Reading

  private mutating func read(_ folder: String, isLocked: Bool) throws {
    guard let entries = opendir(folder) else {
      if errno == ENOENT || errno == ENOTDIR { return }
      throw CofferError.permissionDenied(path: folder, reason: "managed settings cannot be read: the folder may not be")
    }
    defer { closedir(entries) }
    var names: [ByteString] = []
    while let entry = readdir(entries) {
      names.append(
        ByteString(
          withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }))
    }
    for name in names.sorted().map(\.string) where !name.utf8.starts(with: ".".utf8) {
      if name.hasSuffix(".json") || name.hasSuffix(".plist") {
        try read(file: "\(folder)/\(name)", isLocked: isLocked)
      } else if name.hasSuffix(".toml") {
        throw CofferError.malformedSettings(
          source: "\(folder)/\(name)", reason: "managed settings are JSON or property lists; write it as one of these")
      }
    }
  }

  private mutating func read(file path: String, isLocked: Bool) throws {
    guard let resolved = realpath(path, nil) else {
      throw CofferError.inputOutput(path: path, reason: "the file could not be found")
    }
    defer { free(resolved) }
    let place = String(cString: resolved)
    // The way there through a link counts, too: who can write to its folder can lead it elsewhere.
    for folder in [place, StandardPath.folder(above: path)] {
      guard let whole = realpath(folder, nil) else { continue }
      defer { free(whole) }
      if let problem = FilePermissions.problem(ofWholePath: String(cString: whole)) {
        throw CofferError.permissionDenied(path: path, reason: "managed settings are not read: \(problem)")
      }
    }
    guard let data = try SettingsFile.contents(of: place) else { return }
    var settings = try SettingsFile.settings(in: data, named: path)
    if !isLocked, case .dictionary(let values)? = settings["locked"] {
      if let key = values.keys.sorted().first(where: { values[$0] == .null }) {
        throw CofferError.malformedSettings(source: path, reason: "the locked value for key \"\(key)\" is null")
      }
      settings["locked"] = nil
      add(values, from: path, to: \.locked)
    }
    add(settings, from: path, to: isLocked ? \.locked : \.defaults)
  }

  private mutating func add(
    _ values: [String: Value], from file: String, to part: WritableKeyPath<ManagedSettings, [ByteString: Entry]>
  ) {
    for (key, value) in values { self[keyPath: part][ByteString(key)] = Entry(value, file: file) }
  }
}

/// Paths by their text alone.
private enum StandardPath {
  static func folder(above path: String) -> String {
    path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
  }
}
