#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Session {
  package var declarations: DeclarationTable {
    DeclarationTable(connection: connection)
  }

  /// Records a version of a program and its declarations, and puts them in force unless a newer version's are.
  ///
  /// Former names of settings that another version declares, and that may still run, are kept from now on.
  ///
  /// - Returns: The renames that this has begun.
  /// - Throws: `CofferError.conflictingDeclarations`, `.retypedInPlace`.
  func declare(_ new: ProgramVersion) throws -> [Rename] {
    try changingTogether {
      let (table, versions) = (declarations, VersionTable(connection: connection))
      try table.create(at: transaction.time, until: transaction.time + ProgramVersion.defaultRunTime)
      let present = try table.application(new.application, version: new.version)
      let running = try versions.all(of: new.application).filter { $0.until > transaction.time }
      try refuseRetyping(new, running.filter { $0.version != new.version })
      try dropEndedVersions()
      let declared = try table.all(of: new.application)
      let isNewest = !VersionText.isLess(new.version, than: present?.version)
      // Its earlier declarations under the same version may be in use, too.
      let begun =
        isNewest
        ? try renames(by: new, since: running)
        : try renames(by: declared.filter { $0.renamed == nil }, since: new)
      for (rename, _) in begun { try RenameTable(connection: connection).save(rename) }
      try prolongRenames(for: new)
      let all = try loadRenames().all
      if isNewest {
        let places = Set(new.declarations.map(\.place))
        let kept = declared.filter { $0.renamed != nil } + begun.map(\.kept)
        let names = Set(all.filter { $0.application == new.application }.map(\.former)).subtracting(places)
        try table.replace(
          new.declarations, kept: kept.filter { names.contains($0.place) }, of: new.application, version: new.version,
          fingerprint: new.fingerprint)
      } else {
        let places = Set(declared.map(\.place))
        for (_, kept) in begun where !places.contains(kept.place) { try table.insert(kept, of: new.application) }
      }
      try versions.save(new)
      note(.declared(new.application))
      transaction.effective = [:]
      return begun.map(\.rename)
    }
  }

  /// Throws if a version that may still run reads the values of a setting in another form.
  private func refuseRetyping(_ new: ProgramVersion, _ others: [ProgramVersion]) throws {
    for declaration in new.declarations {
      for other in others {
        guard let earlier = other.declaration(of: declaration.place), earlier.type != declaration.type else { continue }
        throw CofferError.retypedInPlace(
          setting: declaration.place.description, type: declaration.type.description,
          other: other.name, otherType: earlier.type.description, until: Date(milliseconds: other.until))
      }
    }
  }

  private typealias BegunRename = (rename: Rename, kept: Declaration)

  /// The renames of a newest version whose former names others declare that may still run.
  private func renames(by new: ProgramVersion, since running: [ProgramVersion]) throws -> [BegunRename] {
    let places = Set(new.declarations.map(\.place))
    return try renames(by: new.declarations, of: new.application) { former in
      guard !places.contains(former) else { return nil }
      let declaring = running.filter { $0.declaration(of: former) != nil }
      guard let until = declaring.map(\.until).max(),
        let newest = declaring.max(by: { VersionText.isLess($0.version, than: $1.version) }),
        let declaration = newest.declaration(of: former)
      else { return nil }
      return (until, declaration)
    }
  }

  /// The renames of the declarations in force whose former names an older version declares, which has come back.
  private func renames(by declarations: [Declaration], since old: ProgramVersion) throws -> [BegunRename] {
    let places = Set(declarations.map(\.place))
    return try renames(by: declarations, of: old.application) { former in
      places.contains(former) ? nil : old.declaration(of: former).map { (old.until, $0) }
    }
  }

  private func renames(
    by declarations: [Declaration], of application: String,
    _ older: (SettingPlace) -> (until: Int64, Declaration)?
  ) throws -> [BegunRename] {
    let present = try renames().all
    return declarations.flatMap { declaration in
      declaration.formerNames.compactMap { former -> BegunRename? in
        guard !present.contains(where: { $0.current == declaration.place && $0.former == former.place }),
          let (until, found) = older(former.place)
        else { return nil }
        var kept = found
        kept.renamed = declaration.place
        let rename = Rename(
          current: declaration.place, former: former.place, application: application,
          hasSuites: !declaration.isShared && ByteString(declaration.collection) != ByteString(application),
          isConverted: former.isConverted, until: until)
        return (rename, kept)
      }
    }
  }

  /// Keeps the former names that a version declares as long as it may run.
  private func prolongRenames(for version: ProgramVersion) throws {
    let table = RenameTable(connection: connection)
    for rename in try table.all() where ByteString(rename.application) == ByteString(version.application) {
      guard version.declaration(of: rename.former) != nil, rename.until < version.until else { continue }
      try table.save(rename.until(version.until))
    }
  }
}

extension Reading where Self: ~Copyable {
  // MARK: Declared settings

  /// The stored declaration of a setting, or nil.
  ///
  /// - Throws: `CofferError.damaged` when the declaration does not parse.
  package borrowing func declaration(forKey key: String, inCollection collection: String) throws -> Declaration? {
    let session = session
    return try session.reading { try session.declarations.declaration(key, in: collection) }
  }

  /// The versions of programs that have declared settings, and may run or are the newest.
  package borrowing func programVersions() throws -> [ProgramVersion] {
    let session = session
    return try session.reading { try VersionTable(connection: session.connection).all() }
  }

  /// The renames whose former names are kept.
  package borrowing func renames() throws -> [Rename] {
    let session = session
    return try session.reading { try RenameTable(connection: session.connection).all() }
  }

  /// The items that have not followed another name of their setting.
  package borrowing func itemsBehind() throws -> [RenameTable.Behind] {
    let session = session
    return try session.reading { try RenameTable(connection: session.connection).behind() }
  }

  /// All declared settings, in the order of their collections and keys.
  ///
  /// - Throws: `CofferError.damaged` when a declaration does not parse.
  package borrowing func declaredSettings() throws -> [DeclaredSetting] {
    let session = session
    return try session.reading { try session.declarations.all() }
  }
}

extension ReadWriteTransaction {
  /// Ends the former names that no older version can use any more; their values go into the history.
  package borrowing func contract(_ isChosen: (Rename) -> Bool) throws -> [Contraction] {
    try session.contract(isChosen)
  }

  /// Declares an application's settings, replacing all of its earlier declarations.
  ///
  /// Programs use `Preferences.declare(_:strict:)`; this is for tools, and for programs in other languages.
  ///
  /// - Parameter application: The collection of the application's own settings.
  /// - Throws: `CofferError.conflictingDeclarations` when another application declares a setting differently,
  ///   `.malformedSettings` when a declaration is invalid; nothing is changed then.
  package borrowing func declare(
    _ declarations: [Declaration], by application: String, version: String? = nil
  ) throws {
    for declaration in declarations { try declaration.check() }
    let (opened, until) = ProgramVersion.times(
      openedAt: session.transaction.time, mayRunFor: ProgramVersion.defaultRunTime)
    // Not a program's fingerprint: a program that declares the same settings afterwards writes them once more.
    let begun = try session.declare(
      ProgramVersion(
        application: application, version: version, fingerprint: [], opened: opened, until: until,
        declarations: declarations.filter { $0.renamed == nil }))
    try session.bringInStep(retryingRefused: true, new: begun)
  }
}
