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
///   which is an error. The library has no parser for TOML: programs that link it would bring one, and all of Foundation with it,
///   for a file that most hosts do not have. To leave such a file out would leave out its locks.
/// - What a file has at its top are defaults: they show where a setting is stored nowhere, before registered ones.
/// - What stands in its dictionary `locked`, and in the files of the folder `locks` beside it, is locked: it shows whatever else
///   there is, and setting such a key throws ``CofferError/lockedByAdministrator(collection:key:file:)``.
/// - A typed key that names a collection goes by `collection/key`, as in a ``Preferences/Layer``.
/// - The folder `IDENTIFIER.d` in that of the variable `PREFS_MANAGED_DIR` is read, too, after the one in `/etc`, and cannot lift
///   a lock of it.
/// - A file counts only where nobody but root and this user can put other contents there: it and all folders above it belong to
///   one of them, and are not writable by group or others. A file that does not keep to that is an error, not left out.
///
/// The files are read when settings are opened, and again when they change: what changes shows to readers and listeners as any
/// other change does. Where one of them can no longer be used, what was read last stays in force, and
/// ``Preferences/errors`` says why, once.
public struct ManagedSettings: Sendable {
  typealias Entry = Preferences.Layer.Entry

  /// Where a value stands.
  public struct Place: Hashable, Sendable, CustomStringConvertible {
    /// The file.
    public let file: String
    /// The line of its name, from 1; nil in a binary property list.
    public let line: Int?

    /// Both, as in `/etc/coffer/shop.d/10.json:3`.
    public var description: String { line.map { "\(file):\($0)" } ?? file }
  }

  private(set) var defaults: [ByteString: Entry] = [:]
  private(set) var locked: [ByteString: Entry] = [:]

  package var isEmpty: Bool { defaults.isEmpty && locked.isEmpty }

  /// Reads what there is for an application.
  ///
  /// - Throws: `CofferError.malformedSettings` for a file that holds no settings by name, or is TOML; `.permissionDenied` where a
  ///   file may not be read, or others may write to it or a folder above; `.inputOutput`.
  public init(ofApplication identifier: String) throws {
    try self.init(in: Folders(ofApplication: identifier))
  }

  init(in folders: Folders) throws {
    for folder in folders.paths {
      var own = ManagedSettings()
      try own.read(folder, isLocked: false)
      try own.read(Folders.locks(in: folder), isLocked: true)
      defaults.merge(own.defaults) { $1 }
      locked.merge(own.locked) { first, _ in first }
    }
  }

  init() {}

  // MARK: Values

  /// The value that is locked for a key, and where that stands; nil where none is.
  public func locked(forKey key: String) -> (value: Value, place: Place)? { Self.given(locked[ByteString(key)]) }

  /// The default for a key, and where that stands; nil where there is none.
  public func defaultValue(forKey key: String) -> (value: Value, place: Place)? {
    Self.given(defaults[ByteString(key)])
  }

  private static func given(_ entry: Entry?) -> (value: Value, place: Place)? {
    guard let entry, let place = entry.place else { return nil }
    return (entry.value, place)
  }

  /// The keys that have a default or are locked, in the order of their UTF-8 bytes.
  package var allKeys: [String] { Set(defaults.keys).union(locked.keys).sorted().map(\.string) }

  /// - Throws: `CofferError.lockedByAdministrator`.
  package func requireUnlocked(_ key: String, in collection: String) throws {
    guard let file = locked(forKey: key)?.place.file else { return }
    throw CofferError.lockedByAdministrator(collection: collection, key: key, file: file)
  }

  /// The keys that have another value, as a default or locked, or none, in `other`.
  func differingKeys(from other: ManagedSettings) -> Set<ByteString> {
    let keys = [defaults, locked, other.defaults, other.locked].reduce(into: Set()) { $0.formUnion($1.keys) }
    return keys.filter { key in
      defaults[key]?.value != other.defaults[key]?.value || locked[key]?.value != other.locked[key]?.value
    }
  }

  // MARK: Reading

  private mutating func read(_ folder: String, isLocked: Bool) throws {
    for name in try Folders.names(in: folder) where !name.utf8.starts(with: ".".utf8) {
      if name.hasSuffix(".json") || name.hasSuffix(".plist") {
        try read(file: "\(folder)/\(name)", isLocked: isLocked)
      } else if name.hasSuffix(".toml") {
        throw CofferError.malformedSettings(
          source: "\(folder)/\(name)", reason: "managed settings are JSON or property lists; write it as one of these")
      }
    }
  }

  private mutating func read(file path: String, isLocked: Bool) throws {
    guard let place = Folders.resolved(path) else {
      throw CofferError.inputOutput(path: path, reason: "the file could not be found")
    }
    // The way there through a link counts, too: who can write to its folder can lead it elsewhere.
    for folder in [place, Folders.above(path)] {
      if let whole = Folders.resolved(folder), let problem = FilePermissions.problem(ofWholePath: whole) {
        throw CofferError.permissionDenied(path: path, reason: "managed settings are not read: \(problem)")
      }
    }
    guard let data = try SettingsFile.contents(of: place) else { return }
    var (settings, lines) = try SettingsFile.settingsAndLines(in: data, named: path)
    if !isLocked, case .dictionary(let values)? = settings["locked"] {
      if let key = values.keys.sorted().first(where: { values[$0] == .null }) {
        throw CofferError.malformedSettings(source: path, reason: "the locked value for key \"\(key)\" is null")
      }
      settings["locked"] = nil
      add(values, to: \.locked) { Place(file: path, line: lines[["locked", $0]]) }
    }
    add(settings, to: isLocked ? \.locked : \.defaults) { Place(file: path, line: lines[[$0]]) }
  }

  private mutating func add(
    _ values: [String: Value], to part: WritableKeyPath<ManagedSettings, [ByteString: Entry]>,
    from place: (_ key: String) -> Place
  ) {
    for (key, value) in values { self[keyPath: part][ByteString(key)] = Entry(value, from: place(key)) }
  }
}

extension ManagedSettings {
  /// The folders that hold the files of an application.
  struct Folders: Sendable {
    /// In this order; locks of the first are not lifted by the others.
    let paths: [String]

    init(ofApplication identifier: String) {
      self.init(
        ofApplication: identifier,
        in: ["/etc/coffer"] + [StandardLocation.variable("PREFS_MANAGED_DIR")].compactMap(\.self))
    }

    /// - Parameter roots: The folders that have one for each application.
    init(ofApplication identifier: String, in roots: [String]) {
      // An administrator's settings hold in every environment.
      let identifier = CollectionEnvironment(collection: identifier)?.parent ?? identifier
      // Such a one has no folder; what opens its store says so.
      let hasFolder = !identifier.isEmpty && !identifier.utf8.contains(UInt8(ascii: "/"))
      paths = hasFolder ? roots.map { "\($0)/\(identifier).d" } : []
    }

    static func locks(in folder: String) -> String { "\(folder)/locks" }

    /// What is to be watched for changes: the folders, and wherever links in them lead.
    var watchedPaths: [String] {
      let folders = paths.flatMap { [$0, Self.locks(in: $0)] }
      let files = folders.flatMap { folder in ((try? Self.names(in: folder)) ?? []).map { "\(folder)/\($0)" } }
      let targets = (folders + files).filter { Self.resolved($0) != $0 }.compactMap(Self.resolved)
      return folders + targets
    }

    /// The names in a folder, in the order of their UTF-8 bytes; none where there is no folder.
    ///
    /// - Throws: `CofferError.permissionDenied`.
    static func names(in folder: String) throws -> [String] {
      guard let entries = opendir(folder) else {
        if errno == ENOENT || errno == ENOTDIR { return [] }
        throw CofferError.permissionDenied(
          path: folder, reason: "managed settings cannot be read: the folder may not be")
      }
      defer { closedir(entries) }
      var names: [ByteString] = []
      while let entry = readdir(entries) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if name != ".", name != ".." { names.append(ByteString(name)) }
      }
      return names.sorted().map(\.string)
    }

    /// The path without links; nil where it leads nowhere.
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
