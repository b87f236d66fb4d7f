import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An administrator's settings for an application on this host: defaults, and locked values that users cannot change.
///
/// `Preferences.open(application:at:key:layers:environment:declaring:strict:mode:options:)` reads it from the files of
/// `/etc/coffer/IDENTIFIER.d`:
///
/// ```json
/// {"timeout": 30, "web/port": 8080, "locked": {"updates": false}}
/// ```
///
/// - Files are JSON objects, `*.json`, or property lists, `*.plist`, read in the order of their names' UTF-8 bytes, each as what
///   its name says. If two files have the same key, the later one wins. Names that begin with a dot and files of other kinds
///   are ignored, except that `*.toml`, `*.yaml`, `*.yml` and other spellings of the endings, such as `*.JSON`, are errors: the
///   library has no parsers of TOML and YAML, because they would bring all of Foundation into every program for a file that most
///   hosts don't have, and ignoring such a file would ignore its locks.
/// - Values at the top level of a file are defaults: they show if a setting is stored nowhere, and come before registered
///   defaults.
/// - Values in its dictionary `locked`, and in the files of the folder `locks` beside it, are locked: they override
///   everything else, and setting such a key throws ``CofferError/lockedByAdministrator(collection:key:file:)``.
/// - `locked` may also be a list of names, as in `{"updates": false, "locked": ["updates"]}`: it locks these keys at their
///   defaults from the files of the same folder, or of one read earlier. A name without such a default is an error, and so is a
///   `locked` of another kind.
/// - A dictionary or a list under a name that can be mistaken for it (`Locked`, `lock`, `locks`, `lokced`) is an error, and so is
///   a list under a similar name if it names only defaults of the file. A setting that is really called so, and has such values, can
///   be locked in a file of the folder `locks`, where no name has a meaning. `prefs doctor` and `prefs validate` report other names
///   with one slip.
/// - Files in a folder whose name can be mistaken for `locks` (`lock`, `Locks`, `lokcs`) are an error. Files beside the folder
///   `IDENTIFIER.d` are not read: `prefs doctor` and `prefs validate` report `IDENTIFIER.json` and a folder `IDENTIFIER`.
/// - A setting is named by its place in the store: a typed key with a collection is `collection/key`, and in a suite
///   `suite/collection/key`; a suite's settings are not those of the application. The application's own collection may be spelled
///   out, too: for `org.example.editor`, `org.example.editor/timeout` is `timeout`. Both in one dictionary are an error.
/// - Values that JSON, or a property list, has no type for are written as `prefs export` writes them: `{"$url": "https://example.com"}`,
///   `{"$uuid": "…"}`, `{"$date": "2026-01-31T08:30:00Z"}`, `{"$data": "BASE64"}`, `{"$secret": "…"}`. Everyone who may read the
///   file reads such a secret.
/// - If the variable `PREFS_MANAGED_DIR` is set, its folder `IDENTIFIER.d` is read too, after the one in `/etc`: its defaults come
///   before those of that one, and it cannot lift the locks of that one. A value that the setting's declaration does not allow is
///   skipped for that of the other folder.
/// - A file counts only if root and this user alone can change its contents: they own the file and all folders above it, and
///   none of these is writable by group or others. A file that fails this check is an error; it is not skipped.
///
/// The files are read when settings are opened, and again when they change; readers and listeners see such a change like any
/// other. If a file is unusable, settings do not open, and commands that need them fail: no lock is lifted in silence. If one becomes
/// unusable while a program runs, the values last read stay in force, and ``Preferences/errors`` reports why, once. `prefs doctor`
/// lists what is wrong with the files of all applications.
public struct ManagedSettings: Sendable {
  /// A value, and where it comes from.
  struct Entry: Sendable {
    let value: Value
    /// The text it was read from; nil if it was given as a value.
    let text: String?
    /// Its place in a file of an administrator.
    let place: Place?
    /// Those of folders that rank below, in order: programs take one of them where the value is bad.
    private(set) var below: [Entry] = []

    /// This entry before those of a folder that ranks below.
    func before(_ other: Entry) -> Entry {
      var whole = self
      whole.below += other.all
      return whole
    }

    /// The entry, and those below it.
    var all: [Entry] { [self] + below }

    init(_ value: Value, from place: Place? = nil) {
      self.value = value
      self.place = place
      text = nil
    }

    init(text: String) {
      self.text = text
      place = nil
      value = SettingsText.value(text)
    }
  }

  /// The place of a value.
  public struct Place: Hashable, Sendable, CustomStringConvertible {
    /// The file.
    public let file: String
    /// The line of the value's name, from 1; nil in a binary property list.
    public let line: Int?

    /// Both, as in `/etc/coffer/shop.d/10.json:3`.
    public var description: String { line.map { "\(file):\($0)" } ?? file }
  }

  private(set) var defaults: [ByteString: Entry] = [:]
  private(set) var locked: [ByteString: Entry] = [:]

  /// The names that files list as locked, until their defaults are known.
  private var listed: [(name: String, place: Place)] = []

  /// The names of dictionaries and lists that may be slips for `locked`.
  private(set) var doubts: [(name: String, place: Place)] = []

  /// The application's own collection with a slash, which names may begin with.
  private let ownPrefix: String

  var isEmpty: Bool { defaults.isEmpty && locked.isEmpty }

  /// Reads the files of an application.
  init(in folders: Folders) throws {
    var problems: [any Error] = []
    self.init(in: folders) { problems.append($0) }
    if let first = problems.first { throw first }
  }

  /// Reads those of the files that can be read.
  ///
  /// - Parameter report: Called with what is wrong with others.
  private init(in folders: Folders, report: (any Error) -> Void) {
    self.init(ofCollection: folders.application)
    var locks: [ManagedFolder: [ByteString: Entry]] = [:]
    for folder in folders.inOrderOfDefaults {
      var own = ManagedSettings(ofCollection: folders.application)
      var isWhole = true
      func attempt(_ body: () throws -> Void) {
        do { try body() } catch {
          isWhole = false
          report(error)
        }
      }
      attempt {
        let listing = try Folders.Listing(of: folder.path)
        attempt { try listing.refuseMistakable() }
        for file in listing.files { attempt { try own.read(file: file, isLocked: false) } }
        for file in try listing.locks() { attempt { try own.read(file: file, isLocked: true) } }
      }
      // What a list locks may be in a file that could not be read.
      if isWhole { attempt { try own.lockListed(besides: self) } }
      defaults.merge(own.defaults) { $1.before($0) }
      locks[folder] = own.locked
      doubts += own.doubts
    }
    for folder in folders.inOrderOfLocks { locked.merge(locks[folder] ?? [:]) { $0.before($1) } }
  }

  /// Those of an application before any file is read.
  init(ofCollection application: String) { ownPrefix = application + "/" }

  // MARK: Values

  /// The name of a key in the files: its place in the store, without the application's own collection and without an environment.
  ///
  /// A typed key with a collection is `collection/key`, in a suite `suite/collection/key`.
  func name(of key: String, in collection: String) -> String {
    isOf(collection) ? key : "\(CollectionEnvironment(collection: collection)?.parent ?? collection)/\(key)"
  }

  /// Whether a collection is the application's own, or an environment of that.
  func isOf(_ collection: String) -> Bool {
    ownPrefix.utf8.dropLast().elementsEqual((CollectionEnvironment(collection: collection)?.parent ?? collection).utf8)
  }

  /// The keys that may be meant by the names with a default or a lock, for a collection.
  func keys(in collection: String) -> [String] {
    let names = Set(defaults.keys).union(locked.keys).map(\.string)
    guard !isOf(collection) else { return names }
    // The names do not spell out the application's own collection.
    let prefix = ownName(name(of: "", in: collection))
    return names.compactMap {
      $0.utf8.starts(with: prefix.utf8) ? String(decoding: $0.utf8.dropFirst(prefix.utf8.count), as: UTF8.self) : nil
    }
  }

  /// The name without the application's own collection.
  func ownName(_ name: String) -> String {
    name.utf8.starts(with: ownPrefix.utf8)
      ? String(decoding: name.utf8.dropFirst(ownPrefix.utf8.count), as: UTF8.self) : name
  }

  /// The entry for a name as typed keys have it, which may spell out the application's own collection.
  func entry(_ name: String, in part: KeyPath<ManagedSettings, [ByteString: Entry]>) -> Entry? {
    self[keyPath: part][ByteString(ownName(name))]
  }

  /// The values of one part by the keys of a suite, or, without one, of the application.
  func values(in part: KeyPath<ManagedSettings, [ByteString: Entry]>, ofSuite suite: String?) -> [ByteString: Value] {
    guard let suite else { return self[keyPath: part].mapValues(\.value) }
    let keys = keys(in: suite).map { key in
      (ByteString(key), entry(name(of: key, in: suite), in: part)?.value)
    }
    return Dictionary(keys.compactMap { key, value in value.map { (key, $0) } }) { $1 }
  }

  /// The keys whose default or locked values differ in `other`.
  func differingKeys(from other: ManagedSettings) -> Set<ByteString> {
    let keys = [defaults, locked, other.defaults, other.locked].reduce(into: Set()) { $0.formUnion($1.keys) }
    return keys.filter { key in
      [\.defaults, \.locked].contains { (part: KeyPath<ManagedSettings, [ByteString: Entry]>) in
        self[keyPath: part][key]?.all.map(\.value) != other[keyPath: part][key]?.all.map(\.value)
      }
    }
  }

  // MARK: Reading

  private mutating func read(file path: String, isLocked: Bool) throws {
    guard path.hasSuffix(".json") || path.hasSuffix(".plist") else {
      throw CofferError.malformedSettings(
        source: path, reason: "managed settings must be JSON or a property list, named *.json or *.plist")
    }
    guard let place = Folders.resolved(path) else {
      throw CofferError.inputOutput(path: path, reason: "the file could not be found")
    }
    // The route through a link counts too: someone who can write to the link's folder can redirect it.
    for folder in [place, Folders.above(path)] {
      if let whole = Folders.resolved(folder), let problem = FilePermissions.problem(ofWholePath: whole) {
        throw CofferError.permissionDenied(path: path, reason: "managed settings were not read: \(problem)")
      }
    }
    guard let data = try SettingsFile.contents(of: place) else { return }
    var (settings, lines) = try SettingsFile.settingsAndLines(in: data, named: path)
    if !isLocked {
      try lookForSlips(settings, lines, in: path)
      try takeLocks(settings.removeValue(forKey: "locked"), lines, in: path)
    }
    try add(settings, to: isLocked ? \.locked : \.defaults) { Place(file: path, line: lines[[$0]]) }
  }

  private mutating func takeLocks(_ locks: Value?, _ lines: [[String]: Int], in path: String) throws {
    func malformed(_ place: [String], _ reason: String) -> CofferError {
      .malformedSettings(source: Place(file: path, line: lines[place]).description, reason: reason)
    }
    switch locks {
    case nil: break
    case .dictionary(let values):
      if let key = values.keys.sorted().first(where: { values[$0] == .null }) {
        throw malformed(["locked", key], "the locked value for key \"\(key)\" is null")
      }
      try add(values, to: \.locked) { Place(file: path, line: lines[["locked", $0]]) }
    case .array(let names):
      for (index, name) in names.enumerated() {
        let place = ["locked", String(index)]
        guard case .string(let name) = name else {
          throw malformed(place, "the list of locked names has something else")
        }
        listed.append((ownName(name), Place(file: path, line: lines[place] ?? lines[["locked"]])))
      }
    default:
      throw malformed(["locked"], "\"locked\" is neither a dictionary of locked values nor a list of names")
    }
  }

  /// Throws for a dictionary or a list that was certainly meant to lock something, and notes those that may have been.
  private mutating func lookForSlips(_ settings: [String: Value], _ lines: [[String]: Int], in path: String) throws {
    for (name, value) in settings.sorted(by: { $0.key < $1.key }) where name != "locked" {
      let namesDefaults: Bool
      switch value {
      case .dictionary: namesDefaults = false
      case .array(let names):
        namesDefaults =
          !names.isEmpty
          && names.allSatisfy { if case .string(let key) = $0 { settings[key] != nil } else { false } }
      default: continue
      }
      let lower = name.lowercased()
      let distance = EditDistance.between(lower, "locked")
      // Another form of it, or its letters in another order, can have no other meaning.
      let isSlip = ["locked", "lock", "locks"].contains(lower) || lower.sorted() == "locked".sorted()
      let place = Place(file: path, line: lines[[name]])
      if isSlip || namesDefaults && distance <= 2 {
        throw CofferError.malformedSettings(
          source: place.description,
          reason:
            "\"\(name)\" locks nothing; did you mean \"locked\"? A setting of this name can be locked in the folder \"locks\""
        )
      }
      if distance == 1 { doubts.append((name, place)) }
    }
  }

  /// Locks the listed names at their defaults.
  ///
  /// - Parameter earlier: The settings of folders read before.
  private mutating func lockListed(besides earlier: ManagedSettings) throws {
    for (name, place) in listed where locked[ByteString(name)] == nil {
      guard let entry = defaults[ByteString(name)] ?? earlier.defaults[ByteString(name)] else {
        throw CofferError.malformedSettings(
          source: place.description,
          reason:
            "\"\(name)\" is locked at its default, and these files give none; write \"\(name)\": VALUE beside \"locked\""
        )
      }
      locked[ByteString(name)] = Entry(entry.value, from: place)
    }
    listed = []
  }

  private mutating func add(
    _ values: [String: Value], to part: WritableKeyPath<ManagedSettings, [ByteString: Entry]>,
    from place: (_ key: String) -> Place
  ) throws {
    for (key, value) in values {
      let name = ownName(key)
      if !name.utf8.elementsEqual(key.utf8), values[name] != nil {
        throw CofferError.malformedSettings(
          source: place(key).description, reason: "\"\(key)\" and \"\(name)\" are the same setting")
      }
      do {
        self[keyPath: part][ByteString(name)] = Entry(try MarkedValue.value(value), from: place(key))
      } catch let error as ValueCodingError {
        throw CofferError.malformedSettings(
          source: place(key).description, reason: "the value for key \"\(key)\": \(error.reason)")
      }
    }
  }
}

// MARK: - Problems

extension ManagedSettings {
  /// What is wrong with the files of all applications of this host, as errors that name file and line.
  ///
  /// - Parameter own: The applications whose files have to be readable; others may be other users' business.
  package static func problems(ofApplications own: [String]) -> [CofferError] { problems(own, in: ManagedFolder.roots) }

  /// What may have been meant for an application, and is not read, as errors.
  package static func strays(ofApplication identifier: String) -> [CofferError] {
    Folders(ofApplication: identifier).strays(in: ManagedFolder.roots)
  }

  static func problems(_ own: [String], in roots: [ManagedFolder]) -> [CofferError] {
    let own = Set(own.map { ByteString($0) })
    var problems: [CofferError] = []
    var identifiers = own
    let roots = roots.filter { root in
      do {
        for name in try Folders.names(in: root.path) where name.hasSuffix(".d") && name != ".d" {
          identifiers.insert(ByteString(String(name.dropLast(2))))
        }
        return true
      } catch let error as CofferError {
        problems.append(error)
        // Folders in one that cannot be listed may be readable; where there is none, each of them would say so again.
        if case .permissionDenied = error { return true }
      } catch {}
      return false
    }
    for name in identifiers.sorted() {
      let folders = Folders(ofApplication: name.string, in: roots)
      if own.contains(name) { problems += folders.strays(in: roots) }
      _ = ManagedSettings(in: folders) { error in
        guard let error = error as? CofferError else { return }
        // Of others' files, what this user may not read is their business.
        if case .permissionDenied = error, !own.contains(name) { return }
        problems.append(error)
      }
    }
    return problems
  }
}
