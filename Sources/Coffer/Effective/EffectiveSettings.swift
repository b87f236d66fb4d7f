import CofferCrypto

/// What is in force in one collection.
///
/// Everything that shows or sets a setting asks here which value it has and where it comes from, who has locked it, and what
/// administrators say of it.
///
/// The value of a setting is the first of these:
///
/// 1. what an administrator has locked,
/// 2. in a program that takes them: forced values, arguments, variables of the process (``Preferences/Layer``),
/// 3. the store: the environment's own value, then its parent's; in a program's search list also its suites and the global
///    collection,
/// 4. an administrator's default,
/// 5. the default that the program has registered, or else declared.
///
/// A value that its setting's declaration does not allow is skipped for the next one, as programs do.
///
/// A tool knows nothing of the second and of what a program registers. Administrators' files name a setting by its place in
/// the store, see ``ManagedSettings/name(of:in:)``.
package struct EffectiveSettings: Sendable {
  /// The collection with its environment, if it has one.
  package let collection: String
  /// The collections whose values show, in order: the environment, then its parent.
  package let shown: [String]
  /// The applications whose administrators' files are asked, the one that a command names first.
  package let applications: [String]
  /// Whether programs declare settings of the collection.
  package let hasDeclarations: Bool
  let files: [ManagedSettings]
  /// The files of applications that declare nothing here now: they count for what no other application declares, because
  /// an application that does not declare a setting any more may still read it.
  private var formerFiles: [ManagedSettings] = []
  /// The keys for which ``formerFiles`` do not count.
  private var declaredKeys: Set<ByteString> = []
  /// The keys that the first application declares, where there are others: its programs read its files alone for them.
  let ownKeys: Set<ByteString>
  /// Names with slashes that are no keys of this collection, and so those of other ones.
  var otherNames: Set<ByteString> = []
  /// The parent of an environment that was named as a collection, and so shows its own values alone.
  private let hidden: String?

  /// What is known before the store is open: the files of the application that the tool names, or else of the one that the
  /// collection is named after.
  ///
  /// - Parameter parent: The collection whose values show where the environment has none.
  /// - Throws: As ``AdministratorFiles/settings(ofApplication:)``.
  package init(of collection: String, parent: String? = nil, _ files: AdministratorFiles) throws {
    try self.init(collection, parent, files, declaring: [], ownKeys: [])
  }

  /// - Parameters:
  ///   - declaring: The applications that declare settings of the collection, in versions that may run.
  ///   - ownKeys: The keys that the application declares which the tool names, if others declare some, too.
  init(
    _ collection: String, _ parent: String?, _ files: AdministratorFiles, declaring: [String], ownKeys: Set<ByteString>
  ) throws {
    let environment = CollectionEnvironment(collection: collection)
    self.collection = collection
    shown = [collection] + (parent.map { [$0] } ?? [])
    hidden = parent == nil ? environment?.parent : nil
    hasDeclarations = !declaring.isEmpty
    // No command lifts a lock in the files that the collection is named after, by naming another application.
    let own = environment?.parent ?? collection
    var seen: Set<ByteString> = []
    applications = ([files.application ?? own] + declaring + [own]).filter { seen.insert(ByteString($0)).inserted }
    self.files = try applications.map(files.settings)
    self.ownKeys = ownKeys
  }

  /// What is in force in a collection alone, by files that are known.
  ///
  /// - Parameters:
  ///   - ownKeys: The keys for which the first files count alone.
  ///   - formerFiles: The files that do not count for the declared keys.
  init(
    _ collection: String, _ files: [ManagedSettings], ownKeys: Set<ByteString>, formerFiles: [ManagedSettings],
    declaredKeys: Set<ByteString>
  ) {
    (self.collection, shown, hidden, hasDeclarations) = (collection, [collection], nil, false)
    (applications, self.files, self.ownKeys) = ([], files, ownKeys)
    (self.formerFiles, self.declaredKeys) = (formerFiles, declaredKeys)
  }

  /// Those of some applications whose files are not asked for every key.
  func former(of known: [String]) -> [String] {
    let present = Set(applications.map { ByteString($0) })
    return known.filter { !present.contains(ByteString($0)) }
  }

  /// Adds the files of applications that have declared settings in the store, and none in this collection now.
  ///
  /// - Parameter keys: Returns the keys that are declared here.
  mutating func addFormer(
    _ known: [String], _ all: AdministratorFiles, _ keys: () throws -> Set<ByteString>
  ) throws {
    formerFiles = former(of: known).compactMap { application in
      // Files that cannot be read concern those who use the application, and are reported to them.
      guard let files = try? all.settings(ofApplication: application), !files.isEmpty,
        !files.keys(in: collection).isEmpty
      else { return nil }
      return files
    }
    if !formerFiles.isEmpty { declaredKeys = try keys() }
  }

  // MARK: - The order

  /// The first source that has the value of a setting: the order of precedence, for tools and programs alike.
  @inline(__always)
  static func first<Found>(
    above: () throws -> Found?, stored: () throws -> Found?, managed: () throws -> Found?,
    fallback: () throws -> Found?
  ) rethrows -> Found? {
    if let found = try above() { return found }
    if let found = try stored() { return found }
    if let found = try managed() { return found }
    return try fallback()
  }

  /// The value of a setting and its source.
  package enum Found<Stored> {
    case locked(Value, ManagedSettings.Place)
    /// What is stored, in the form that was asked for: an item, or only what is known without reading it.
    case stored(Stored)
    case managed(Value, ManagedSettings.Place)
    case declared(Value)
  }

  /// Finds the first good value.
  ///
  /// - Parameters:
  ///   - stored: Returns what a collection has.
  ///   - declared: Returns the declared default.
  ///   - isGood: Whether a value at a place is good; a bad one is skipped. A declared default is not asked about.
  package func find<Stored>(
    _ key: String, stored: (_ collection: String) throws -> Stored?, declared: () throws -> Value?,
    isGood: (_ found: Found<Stored>, _ place: String) throws -> Bool
  ) throws -> Found<Stored>? {
    var isHidden = false
    func managed(_ values: [Managed], _ source: (Managed) -> Found<Stored>) throws -> Found<Stored>? {
      for value in values {
        let found = source(value)
        if try isGood(found, value.place.description) { return found }
      }
      return nil
    }
    return try Self.first(
      above: { try managed(all(key, in: \.locked)) { .locked($0.value, $0.place) } },
      stored: {
        for name in shown {
          if let stored = try stored(name), try isGood(.stored(stored), Self.place(name)) { return .stored(stored) }
        }
        // A default is not in force where the parent has a value.
        isHidden = try hidden.map { try stored($0) != nil } ?? false
        return nil
      },
      managed: { isHidden ? nil : try managed(managedDefaults(key)) { .managed($0.value, $0.place) } },
      fallback: { isHidden ? nil : try declared().map { .declared($0) } })
  }

  /// A stored value's place, for ``SettingProblem``.
  package static func place(_ collection: String) -> String { "collection \"\(collection)\"" }

  /// The value in force, and the bad ones that stand before it.
  package struct Search<Stored> {
    /// What was found; nil where the setting has no value.
    ///
    /// The first bad value where there are only such: what a program takes instead, only the program knows.
    package let found: Found<Stored>?
    /// The bad values that programs skip, in order.
    package let problems: [SettingProblem]
    /// Whether ``found`` is bad, too.
    package let isBad: Bool

    package init(found: Found<Stored>?, problems: [SettingProblem] = [], isBad: Bool = false) {
      (self.found, self.problems, self.isBad) = (found, problems, isBad)
    }
  }

  // MARK: - Administrators

  /// A value of an administrator, and its place.
  package typealias Managed = (value: Value, place: ManagedSettings.Place)

  /// The locked value of a key; nil if it is not locked.
  package func locked(_ key: String) -> Managed? { all(key, in: \.locked).first }

  /// The same before the store is open, as far as no declaration changes it: in the files that are asked first.
  package func surelyLocked(_ key: String) -> Managed? {
    guard let first = files.first else { return nil }
    return first.entry(first.name(of: key, in: collection), in: \.locked).flatMap { entry in
      entry.place.map { (entry.value, $0) }
    }
  }

  /// An administrator's default for a key.
  package func managedDefault(_ key: String) -> Managed? { managedDefaults(key).first }

  private func managedDefaults(_ key: String) -> [Managed] {
    otherNames.contains(ByteString(key)) ? [] : all(key, in: \.defaults)
  }

  private func all(
    _ key: String, in part: KeyPath<ManagedSettings, [ByteString: ManagedSettings.Entry]>
  ) -> [Managed] {
    var read = ownKeys.contains(ByteString(key)) ? files.prefix(1) : files[...]
    if !formerFiles.isEmpty, !declaredKeys.contains(ByteString(key)) { read += formerFiles }
    return read.flatMap { file -> [Managed] in
      guard !file.isEmpty, let entry = file.entry(file.name(of: key, in: collection), in: part) else { return [] }
      return entry.all.compactMap { entry in entry.place.map { (entry.value, $0) } }
    }
  }

  /// - Throws: `CofferError.lockedByAdministrator`.
  package func requireUnlocked(_ key: String) throws {
    guard let file = locked(key)?.place.file else { return }
    throw CofferError.lockedByAdministrator(collection: collection, key: key, file: file)
  }

  var allFiles: [ManagedSettings] { files + formerFiles }

  /// Whether administrators have set anything in the files that are asked.
  package var hasFiles: Bool { allFiles.contains { !$0.isEmpty } }

  /// The keys of the collection with a lock or a default of an administrator.
  package var managedKeys: [String] {
    let keys = allFiles.flatMap { $0.isEmpty ? [] : $0.keys(in: collection).map { ByteString($0) } }
    return Set(keys).subtracting(otherNames).map(\.string).filter { key in
      formerFiles.isEmpty || locked(key) != nil || managedDefault(key) != nil
    }.sorted { ByteString($0) < ByteString($1) }
  }
}

/// The administrators' files as a tool reads them: those of each application once.
package final class AdministratorFiles: Sendable {
  /// The application that the tool is used for; nil if each collection is that of an application of its name.
  let application: String?
  private let roots: [ManagedFolder]
  private let known = Lock<[ByteString: ManagedSettings]>([:])

  package convenience init(application: String? = nil) {
    self.init(application: application, roots: ManagedFolder.roots)
  }

  /// - Parameter roots: The parents of applications' folders.
  init(application: String?, roots: [ManagedFolder]) { (self.application, self.roots) = (application, roots) }

  /// - Throws: `CofferError.malformedSettings` for a file that does not hold a dictionary of settings, or is TOML;
  ///   `.permissionDenied` if a file cannot be read, or if others can write to it or to a folder above it; `.inputOutput`.
  func settings(ofApplication application: String) throws -> ManagedSettings {
    if let settings = known.withLock({ $0[ByteString(application)] }) { return settings }
    let settings = try ManagedSettings(in: folders(of: application))
    known.withLock { $0[ByteString(application)] = settings }
    return settings
  }

  /// The collections that names in the files of applications may be in: what is before each slash.
  func collections(namedFor applications: [String]) throws -> [String] {
    let names = try applications.flatMap { application in
      let settings = try settings(ofApplication: application)
      return Array(settings.locked.keys) + settings.defaults.keys
    }
    return names.map(\.string).flatMap { name in
      name.utf8.indices.filter { name.utf8[$0] == UInt8(ascii: "/") }.map { String(name[..<$0]) }
    }
  }

  /// A value in the files of an application.
  package struct Entry {
    /// Its name, without the application's own collection.
    package let name: String
    package let value: Value
    package let place: ManagedSettings.Place
    package let isLocked: Bool
  }

  /// The values in the files of an application, in the order of their names, locked ones first.
  ///
  /// - Throws: As ``settings(ofApplication:)``.
  package func entries(ofApplication application: String) throws -> [Entry] {
    let settings = try settings(ofApplication: application)
    let parts = [(settings.locked, true), (settings.defaults, false)]
    return Set(settings.locked.keys).union(settings.defaults.keys).sorted().flatMap { name in
      parts.flatMap { values, isLocked in (values[name]?.all ?? []).map { ($0, isLocked) } }.compactMap {
        entry, isLocked in
        entry.place.map { Entry(name: name.string, value: entry.value, place: $0, isLocked: isLocked) }
      }
    }
  }

  /// Names in the files of an application that may be slips for `locked`, and their places.
  ///
  /// - Throws: As ``settings(ofApplication:)``.
  package func doubts(
    ofApplication application: String
  ) throws -> [(name: String, place: ManagedSettings.Place)] {
    try settings(ofApplication: application).doubts
  }

  func folders(of application: String) -> ManagedSettings.Folders {
    ManagedSettings.Folders(ofApplication: application, in: roots)
  }

  /// Reads the files again when they are asked for next.
  package func forget() { known.withLock { $0 = [:] } }
}

/// What may be set through a database that a tool uses, besides values as their settings are declared.
package struct SettingRules: Sendable {
  /// Says what is locked.
  package let files: AdministratorFiles
  /// Whether to set keys that are not declared, in a collection with declarations.
  package var allowsUndeclared: Bool

  package init(files: AdministratorFiles, allowsUndeclared: Bool = false) {
    (self.files, self.allowsUndeclared) = (files, allowsUndeclared)
  }
}
