#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Session {
  package var declarations: DeclarationTable {
    DeclarationTable(connection: connection, at: transaction.time)
  }

  /// Records a version of a program and its declarations, and puts them in force unless a newer version's are.
  ///
  /// Former names of settings that another version uses are kept from now on.
  ///
  /// - Parameter kept: Declarations of an older version that a store has kept for it.
  /// - Returns: The renames that this has begun, and whether the declarations are in force.
  /// - Throws: `CofferError.conflictingDeclarations`, `.retypedInPlace`; `.malformedSettings` for former names that cannot be
  ///   meant.
  func declare(
    _ new: ProgramVersion, kept: [Declaration] = []
  ) throws -> (begun: [BegunRename], isInForce: Bool) {
    try new.checkFormerNames()
    return try changingTogether { try keepingSecrets { try replaceDeclarations(new, kept: kept) } }
  }

  private func replaceDeclarations(
    _ new: ProgramVersion, kept: [Declaration]
  ) throws -> (begun: [BegunRename], isInForce: Bool) {
    let (table, versions) = (declarations, VersionTable(connection: connection))
    try table.create(at: transaction.time, until: transaction.time + ProgramVersion.defaultRunTime)
    let present = try table.application(new.application, version: new.version)
    let earlier = try versions.all(of: new.application)
    let inUse = try versionsInUse(elsewhere: true)
    let isOwn = { (other: VersionsInUse.Version) in ByteString(other.application) == ByteString(new.application) }
    try refuseRetyping(new, inUse) {
      isOwn($0) ? $0.version != new.version && ($0.until ?? .max) > transaction.time : !$0.isOfThisHost
    }
    try dropEndedVersions()
    let isNewest = !VersionText.isLess(new.version, than: present?.version)
    if isNewest {
      let places = Set(new.declarations.map(\.place))
      let names = Set(try renames().all.filter { $0.application == new.application }.map(\.former))
      let stillKept = try table.all(of: new.application).filter {
        $0.renamed != nil && names.contains($0.place) && !places.contains($0.place)
      }
      try table.replace(
        new.declarations, kept: stillKept, of: new.application, version: new.version, fingerprint: new.fingerprint)
    }
    // Of what is in force, a difference is a conflict.
    try refuseRetyping(new, inUse) { !isOwn($0) && $0.isOfThisHost }
    try versions.save(new)
    // Its earlier declarations under the same version may be in use, too.
    var others = earlier.filter { $0.version == new.version && $0.until > transaction.time } + [new]
    if !kept.isEmpty { others.append(.older(than: new, kept)) }
    let begun = try beginRenames(by: new, versionsInUse(also: others))
    note(.declared(new.application))
    transaction.forgetDeclarations()
    return (begun, isNewest)
  }

  /// Begins the renames of settings whose former names other hosts of a fleet use, have renamed, or keep.
  ///
  /// - Parameter choosing: Decides which name counts where several have a value.
  func beginRenamesOfFleets(_ choosing: NameChoice) throws {
    guard try Schema.version(connection).hasVersions, try declarations.hasShared else { return }
    let known = try renames().all
    var begun = try beginRenames(by: nil, versionsInUse())
    let present = try renames().all
    let (names, earlier) = (Set(present.map(\.names)), Set(known.map(\.names)))
    try forgetBehind(known.filter { !names.contains($0.names) })
    begun += present.filter { $0.isOfFleet && !earlier.contains($0.names) }.map {
      BegunRename(rename: $0, precedence: .chosen)
    }
    transaction.forgetDeclarations()
    guard !begun.isEmpty else { return }
    try bringInStep(new: begun, choosing: choosing)
  }

  /// Begins the renames whose two names are in use from now on, and keeps the others as long as their former names are.
  ///
  /// - Parameter new: The version that has just declared its settings; nil if other hosts have.
  private func beginRenames(by new: ProgramVersion?, _ versions: VersionsInUse) throws -> [BegunRename] {
    let table = RenameTable(connection: connection)
    let present = try table.all()
    for rename in present {
      guard let until = versions[rename.former].compactMap(\.until).max(), until > rename.until else { continue }
      try table.save(rename.until(until))
    }
    var known = Dictionary(present.map { ($0.names, $0) }) { first, _ in first }
    let places = new.map { Set($0.declarations.map(\.place)) }
    var begun: [BegunRename] = []
    var kept = KeptNames(present, versions)
    func refuse(_ reason: String) throws {
      throw CofferError.malformedSettings(source: "the declarations of \(new?.name ?? "")", reason: reason)
    }
    for version in versions.all {
      let isNew = new.map { version.isOfThisHost && version.name == $0.name } ?? false
      // One that is not in force may have renamed what a newer version has taken back.
      guard version.isInForce || isNew else { continue }
      for declaration in version.declarations.values.sorted(by: { $0.place < $1.place }) {
        for former in declaration.formerNames where version.declarations[former.place] == nil {
          // A version that uses both names has two settings.
          let older = versions[former.place].filter { $0.declarations[declaration.place] == nil }
          let own = older.filter { ByteString($0.application) == ByteString(version.application) }
          guard
            let newest = (own.isEmpty ? older : own).max(by: { VersionText.isLess($0.version, than: $1.version) }),
            let found = newest.declarations[former.place]
          else { continue }
          let isKept = version.isOfThisHost && ByteString(newest.application) == ByteString(version.application)
          if let rename = known[Rename.Pair(current: declaration.place, former: former.place)] {
            // It began when only another host had renamed the setting.
            if isKept { try keep(found, for: rename) }
            continue
          }
          let rename = Rename(
            former, of: declaration, by: version.application,
            // Without a conversion, a value of another type is not the same value.
            isConverted: former.isConverted || found.type != declaration.type,
            until: older.compactMap(\.until).max() ?? transaction.time + ProgramVersion.defaultRunTime)
          if let problem = kept.problem(of: rename, declaration, by: version) {
            // What others have declared cannot be refused any more: their names stay apart.
            if isNew { try refuse(problem) }
            continue
          }
          kept.add(rename)
          known[rename.names] = rename
          try table.save(rename)
          if isKept { try keep(found, for: rename) }
          begun.append(
            BegunRename(
              rename: rename,
              precedence: places.map { $0.contains(declaration.place) ? .former : .current } ?? .chosen))
        }
      }
    }
    if let new, let problem = kept.problem(of: new) { try refuse(problem) }
    try loadRenames()
    return begun
  }

  /// Keeps the declaration of a former name.
  private func keep(_ declaration: Declaration, for rename: Rename) throws {
    guard try !declarations.has(rename.former, of: rename.application) else { return }
    var kept = declaration
    kept.renamed = rename.current
    try declarations.insert(kept, of: rename.application)
    note(.declared(rename.application))
  }

  /// Moves the values of former names that no version uses, as a program does that declares its settings; those that need a
  /// conversion wait for it.
  fileprivate func takeOverFormerValues(of new: ProgramVersion) throws {
    try changingTogether {
      let (versions, renames) = (try versionsInUse(), try renames())
      let names = try collections.all().map(\.0)
      for declaration in new.declarations {
        for former in declaration.formerNames where !former.isConverted && versions[former.place].isEmpty {
          let rename = Rename(former, of: declaration, by: new.application, until: transaction.time)
          for pair in rename.places(among: names).sorted(by: { $0.current < $1.current })
          where !renames.otherNames(of: pair.former).contains(pair.current) {
            try takeOver(pair, rename)
          }
        }
      }
    }
  }
}

extension ProgramVersion {
  /// The version for which another one's store keeps declarations.
  fileprivate static func older(than new: ProgramVersion, _ kept: [Declaration]) -> ProgramVersion {
    ProgramVersion(
      application: new.application, version: nil, fingerprint: [], opened: new.opened, until: new.until,
      declarations: kept.map { declaration in
        var declaration = declaration
        declaration.renamed = nil
        return declaration
      })
  }

  /// - Throws: `CofferError.malformedSettings` for a former name that would make one name two settings, or one setting two.
  fileprivate func checkFormerNames() throws {
    let places = Set(declarations.map(\.place))
    var owners: [SettingPlace: SettingPlace] = [:]
    func refuse(_ reason: String) throws {
      throw CofferError.malformedSettings(source: "the declarations of \(name)", reason: reason)
    }
    for declaration in declarations {
      let place = declaration.place
      for former in declaration.formerNames.map(\.place) {
        if former == place { try refuse("\(place) is declared as formerly \(former), its own name") }
        if places.contains(former) {
          try refuse(
            "\(place) is declared as formerly \(former), which is declared, too; one name cannot be two settings")
        }
        if let other = owners.updateValue(place, forKey: former), other != place {
          try refuse("\(other) and \(place) are both declared as formerly \(former); only one of them can be")
        }
      }
    }
  }
}

extension Reading where Self: ~Copyable {
  // MARK: Declared settings

  /// The stored declaration of a setting, or nil.
  ///
  /// - Throws: `CofferError.damaged` when the declaration does not parse.
  package borrowing func declaration(forKey key: String, inCollection collection: String) throws -> Declaration? {
    try reading { try $0.declarations.declaration(key, in: collection) }
  }

  /// Whether a setting is declared as a secret: its value is hidden also where it is stored as text, or under a former name.
  package borrowing func isDeclaredSecret(_ key: String, inCollection collection: String) throws -> Bool {
    try reading { try $0.isDeclaredSecret(key, in: collection) }
  }

  /// The versions of programs that have declared settings, and may run or are the newest.
  package borrowing func programVersions() throws -> [ProgramVersion] {
    try reading { try VersionTable(connection: $0.connection).all() }
  }

  /// Whether the declarations of a version are in force, and not those of a newer one.
  package borrowing func isInForce(_ version: String?, of application: String) throws -> Bool {
    try reading { try $0.declarations.application(application, version: nil)?.version == version }
  }

  /// The renames whose former names are kept.
  package borrowing func renames() throws -> [Rename] {
    try reading { try $0.renames().all }
  }

  /// The other names of a setting that are kept; usually none.
  package borrowing func otherNames(ofKey key: String, inCollection collection: String) throws -> [SettingPlace] {
    try reading { try $0.otherNames(of: key, in: collection) }
  }

  /// The items that have not followed another name of their setting.
  package borrowing func itemsBehind() throws -> [RenameTable.Behind] {
    try reading { try RenameTable(connection: $0.connection).behind() }
  }

  /// All declared settings, in the order of their collections and keys.
  ///
  /// - Throws: `CofferError.damaged` when a declaration does not parse.
  package borrowing func declaredSettings() throws -> [DeclaredSetting] {
    try reading { try $0.declarations.all() }
  }
}

extension ReadWriteTransaction {
  /// Lets the other names of renamed settings follow, as at the end of the transaction.
  package borrowing func letNamesFollow() throws { try session.letNamesFollow() }

  /// The same after settings were given together, as in a file: their values are all kept, or none.
  ///
  /// - Parameters:
  ///   - places: The settings that were given.
  ///   - source: What they were given in.
  /// - Throws: `CofferError.malformedSettings` if two of them are names of one setting, and one's value would be lost.
  package borrowing func letNamesFollow(_ places: Set<SettingPlace>, in source: String) throws {
    let session = session
    func item(_ place: SettingPlace) throws -> HeldItem? {
      try session.item(place.key.string, in: place.collection.string)
    }
    var pairs: [(place: SettingPlace, other: SettingPlace, item: HeldItem)] = []
    for place in places.sorted() {
      let others = try session.otherNames(of: place.key.string, in: place.collection.string)
      // One that was removed has no value to lose.
      guard let other = others.first(where: places.contains), let item = try item(place) else { continue }
      pairs.append((place, other, item))
    }
    try letNamesFollow()
    for pair in pairs where try item(pair.place) != pair.item {
      throw CofferError.malformedSettings(
        source: source, reason: "\(pair.place) and \(pair.other) are names of one setting, with two values")
    }
  }

  /// Ends the names of renamed settings that no version uses any more; their values go into the history.
  package borrowing func contract(_ isChosen: (Rename) -> Bool) throws -> [Contraction] {
    try session.contract(isChosen)
  }

  /// Declares an application's settings, replacing all of its earlier declarations, and takes over the values of their former
  /// names that need no conversion.
  ///
  /// Programs use `Preferences.declare(_:strict:)`; this is for tools, and for programs in other languages.
  ///
  /// - Parameters:
  ///   - declarations: Those that are kept for an older version, as another store's, count as that version's.
  ///   - application: The collection of the application's own settings.
  /// - Throws: `CofferError.conflictingDeclarations` when another application declares a setting differently,
  ///   `.malformedSettings` when a declaration is invalid; nothing is changed then.
  package borrowing func declare(
    _ declarations: [Declaration], by application: String, version: String? = nil
  ) throws {
    for declaration in declarations { try declaration.check() }
    let (opened, until) = ProgramVersion.times(
      openedAt: session.transaction.time, mayRunFor: ProgramVersion.defaultRunTime)
    // Not a program's fingerprint: a program that declares the same settings afterwards writes them once more.
    let new = ProgramVersion(
      application: application, version: version, fingerprint: [], opened: opened, until: until,
      declarations: declarations.filter { $0.renamed == nil })
    let (begun, isInForce) = try session.declare(new, kept: declarations.filter { $0.renamed != nil })
    try session.bringInStep(retryingRefused: true, new: begun)
    if isInForce { try session.takeOverFormerValues(of: new) }
  }
}
