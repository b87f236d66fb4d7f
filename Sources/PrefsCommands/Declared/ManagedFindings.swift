import Coffer

/// What is wrong with the settings in the administrator's files of an application.
struct ManagedFindings {
  let application: String
  let declared: DeclaredKeys

  /// Whether what the application reads is known.
  private var isDeclaring: Bool {
    declared.settings.contains { $0.isDeclared(by: application) }
  }

  /// A place in the store that a name in the files may mean.
  private typealias Place = (collection: String, key: String)

  /// All findings, in the order of the names in the files.
  ///
  /// - Throws: As `AdministratorFiles.entries(ofApplication:)`.
  func all(_ transaction: borrowing some Reading & ~Copyable) throws -> [SettingFinding] {
    let files = AdministratorFiles()
    var all: [SettingFinding] = []
    for slip in try files.doubts(ofApplication: application) where declared.setting(slip.name, in: application) == nil {
      all.append(
        SettingFinding(
          collection: application, key: slip.name, kind: .doubtful,
          text: "in \(slip.place) locks nothing. Was it meant to be \"locked\"?"))
    }
    for entry in try files.entries(ofApplication: application) { all += try findings(of: entry, transaction) }
    return all
  }

  private func findings(
    of entry: AdministratorFiles.Entry, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [SettingFinding] {
    let places = Self.places(entry.name, application)
    // An administrator's settings hold in all environments, and none is named.
    for (collection, key) in places where CollectionEnvironment(collection: collection) == nil {
      guard let setting = declared.setting(key, in: collection),
        setting.isDeclared(by: application) || !isDeclaring
      else { continue }
      let findings = SettingFinding.all(
        of: key, in: collection, declared, isSealed: false, place: entry.place.description
      ) {
        entry.value
      }
      guard entry.isLocked, !isDeclaring else { return findings }
      // Tools that name no application take it for a lock, as the collection is called so.
      let text = "in \(entry.place) locks nothing for \(setting.ownerText), which reads its own files."
      return findings + [SettingFinding(collection: collection, key: key, kind: .doubtful, text: text)]
    }
    for place in places where try isOfSuite(place, transaction) { return [] }
    return try unbound(entry, places, transaction).map { [$0] } ?? []
  }

  /// Whether a place is one of the application's own settings in a suite, as far as that can be known: in a collection of which
  /// nothing is declared, and which is there.
  private func isOfSuite(_ place: Place, _ transaction: borrowing some Reading & ~Copyable) throws -> Bool {
    guard ByteString(place.collection) != ByteString(application),
      CollectionEnvironment(collection: place.collection) == nil,
      let own = declared.setting(place.key, in: application), own.isDeclared(by: application),
      declared.settings(in: place.collection).isEmpty
    else { return false }
    return try transaction.numberOfKeys(inCollection: place.collection) > 0
  }

  /// The places that a name may mean: a key of the application's own collection, and the one after each slash.
  private static func places(_ name: String, _ application: String) -> [Place] {
    var places: [Place] = [(application, name)]
    for slash in name.utf8.indices where name.utf8[slash] == UInt8(ascii: "/") {
      places.append((String(name[..<slash]), String(name[name.utf8.index(after: slash)...])))
    }
    return places
  }

  /// The finding for a name under which the application declares nothing.
  private func unbound(
    _ entry: AdministratorFiles.Entry, _ places: [Place], _ transaction: borrowing some Reading & ~Copyable
  ) throws -> SettingFinding? {
    func finding(_ kind: SettingFinding.Kind, _ place: Place, _ text: String) -> SettingFinding {
      SettingFinding(
        collection: place.collection, key: place.key, kind: kind, text: "in \(entry.place) \(text)",
        near: near(place))
    }
    let effect = entry.isLocked ? "locks nothing that is known" : "sets nothing that is known"
    let kind: SettingFinding.Kind = isDeclaring && entry.isLocked ? .unknown : .doubtful
    let plain = places.filter { CollectionEnvironment(collection: $0.collection) == nil }
    // A former name that has ended: no program looks for it any more.
    if let place = plain.first(where: { declared.successor(of: $0.key, in: $0.collection) != nil }) {
      return finding(.unknown, place, "is \(declared.absence(of: place.key, in: place.collection))")
    }
    // What is stored, and not declared, is known where nothing is declared.
    if try plain.contains(where: { try declared.settings(in: $0.collection).isEmpty && isThere($0, transaction) }) {
      return nil
    }
    for place in places.reversed() {
      guard let environment = CollectionEnvironment(collection: place.collection) else { continue }
      let isOwn = ByteString(environment.parent) == ByteString(application)
      let name = isOwn ? place.key : "\(environment.parent)/\(place.key)"
      return finding(
        kind, place, "\(effect): an administrator's settings hold in all environments. Write \"\(name)\".")
    }
    let place = places.last { !declared.settings(in: $0.collection).isEmpty } ?? places[0]
    if case .dictionary(let members) = entry.value, try isCollection(entry.name, transaction) {
      let key = members.keys.sorted().first ?? "KEY"
      return finding(
        kind, place, "\(effect): it is a collection. Write each of its settings as \"\(entry.name)/\(key)\".")
    }
    if let setting = declared.setting(place.key, in: place.collection) {
      return finding(
        kind, place,
        "\(effect): \(application) does not declare it, but \(setting.ownerText), which reads its own files.")
    }
    if !declared.settings(in: place.collection).isEmpty {
      return finding(.unknown, place, "is \(declared.absence(of: place.key, in: place.collection))")
    }
    guard isDeclaring else { return nil }
    return finding(
      kind, place, "\(effect): it is not declared\(near(place).map { "; did you mean \"\($0)\"?" } ?? ".")")
  }

  /// The declared setting that was most likely meant: one of this name in another collection, or one of a similar name.
  private func near(_ place: Place) -> String? {
    let same = declared.settings.first {
      ByteString($0.declaration.name) == ByteString(place.key) && $0.isDeclared(by: application)
    }
    return same.map { KeyText.of($0.declaration.name, in: $0.declaration.collection) }
      ?? declared.near(place.key, in: place.collection)
  }

  private func isThere(_ place: Place, _ transaction: borrowing some Reading & ~Copyable) throws -> Bool {
    try transaction.version(forKey: place.key, inCollection: place.collection) > 0
  }

  private func isCollection(_ name: String, _ transaction: borrowing some Reading & ~Copyable) throws -> Bool {
    try !declared.settings(in: name).isEmpty || transaction.numberOfKeys(inCollection: name) > 0
  }

  // MARK: - Of several applications

  /// The settings that several applications declare, and whose locks in their files differ.
  static func disagreements(_ declared: DeclaredKeys) throws -> [SettingFinding] {
    try declared.settings.filter { $0.owners.count > 1 }.compactMap { setting in
      let (key, collection) = (setting.declaration.name, setting.declaration.collection)
      let locks = try setting.owners.map { owner in
        let files = AdministratorFiles(application: owner.application)
        return try EffectiveSettings(of: collection, files).locked(key)
      }
      let given = locks.compactMap(\.self)
      guard let first = given.first else { return nil }
      let places = given.map { $0.place.description }.joined(separator: " and ")
      if given.contains(where: { $0.value != first.value }) {
        return SettingFinding(
          collection: collection, key: key, kind: .disagreement,
          text: "is locked at different values in \(places); each program has that of its own files.")
      }
      guard given.count < locks.count else { return nil }
      let free = zip(setting.owners, locks).filter { $1 == nil }.map { $0.0.application }.joined(separator: " and ")
      return SettingFinding(
        collection: collection, key: key, kind: .doubtful, text: "is locked in \(places), but not for \(free).")
    }
  }
}

extension DeclaredKeys {
  /// The collections of a store, and those that are only declared.
  func collections(_ transaction: borrowing some Reading & ~Copyable) throws -> [String] {
    let names = try transaction.allCollections() + settings.map(\.declaration.collection)
    return Set(names.map(ByteString.init)).sorted().map(\.string)
  }

  /// The applications whose files may concern a store: those that declare settings, and those that collections are named after.
  func applications(_ transaction: borrowing some Reading & ~Copyable) throws -> [String] {
    // Which of them have settings is not asked: that reads pages, and these may be damaged.
    applications(named: try transaction.session.namesOfAllCollections() + settings.map(\.declaration.collection))
  }

  /// The collections of an application: its own, and those in which it declares settings, with their environments, and the parts of
  /// them that suites have.
  package func collections(
    of application: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [String] {
    try collections(transaction).filter { name in
      let parent = CollectionEnvironment(collection: name)?.parent ?? name
      return ByteString(parent) == ByteString(application)
        || settings(in: name).contains { $0.isDeclared(by: application) }
    }
  }

  /// The applications that declare settings, and those that some collections are named after.
  private func applications(named collections: [String]) -> [String] {
    let names =
      collections.map { CollectionEnvironment(collection: $0)?.parent ?? $0 }
      + settings.flatMap { $0.owners.map(\.application) + ($0.overruled.map { [$0.application] } ?? []) }
    return Set(names.map(ByteString.init)).sorted().map(\.string)
  }
}

extension DeclaredKeys.Setting {
  func isDeclared(by application: String) -> Bool {
    (owners.map(\.application) + (overruled.map { [$0.application] } ?? [])).contains {
      ByteString($0) == ByteString(application)
    }
  }
}
