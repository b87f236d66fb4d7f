// The end of renames: of the two names of a setting, the one goes that no version of a program uses any more.

extension Session {
  /// Forgets the versions that may not run any more, except those whose declarations are in force.
  func dropEndedVersions() throws {
    let versions = VersionTable(connection: connection)
    for version in try versions.all() where version.until <= transaction.time {
      let present = try declarations.application(version.application, version: nil)
      if version.version != present?.version { try versions.remove(version) }
    }
  }

  /// What would become of renames if they were to be ended now.
  ///
  /// - Parameter isChosen: Whether a rename is to be ended.
  func endings(_ isChosen: (Rename) -> Bool) throws -> [Contraction] {
    let all = try renames()
    guard !all.all.isEmpty else { return [] }
    let (versions, names) = (try versionsInUse(), try collections.all().map(\.0))
    let behind = try RenameTable(connection: connection).behind()
    var ended: Set<SettingPlace> = []
    let endings: [Contraction] = try all.all.filter(isChosen).compactMap { rename in
      guard !ended.contains(rename.current), !ended.contains(rename.former) else { return nil }
      func outcome(_ name: SettingPlace, _ other: SettingPlace) throws -> Contraction.Outcome {
        if rename.isOfFleet { return .inFleet }
        if let user = all.user(of: name, versions) {
          return .inUse(by: user.name, until: user.isInForce ? nil : user.until)
        }
        if rename.until > transaction.time {
          return .inUse(by: rename.application, until: rename.until)
        }
        let isFormer = name == rename.former
        let places = behind.isEmpty ? [] : rename.places(among: names)
        let waiting = behind.first { item in
          places.contains { pair in
            let (gone, kept) = isFormer ? (pair.former, pair.current) : (pair.current, pair.former)
            return item.place == kept && item.source == gone
          }
        }
        if let waiting { return .behind(waiting) }
        if let managed = try managed(rename, isFormer: isFormer, names) { return managed }
        ended.insert(name)
        return .contracted
      }
      let former = try outcome(rename.former, rename.current)
      // It was taken back: no version declares the new name any more.
      if case .inUse = former, all.user(of: rename.current, versions) == nil {
        return try contraction(of: rename, rename.current, try outcome(rename.current, rename.former))
      }
      return try contraction(of: rename, rename.former, former)
    }
    // A name in between may end by one rename, and be kept by another one.
    return endings.filter { ending in
      if case .contracted = ending.outcome { return true }
      return !ended.contains(ending.name)
    }
  }

  private func contraction(
    of rename: Rename, _ name: SettingPlace, _ outcome: Contraction.Outcome
  ) throws -> Contraction {
    Contraction(rename: rename, name: name, outcome: outcome, isInFleet: try declarations.isInFleet(name))
  }

  /// What an administrator gives to the name that is to end, and not to the other: only an administrator lifts a lock.
  private func managed(_ rename: Rename, isFormer: Bool, _ names: [String]) throws -> Contraction.Outcome? {
    let files = settingRules?.files ?? AdministratorFiles()
    let collections = [rename.current, rename.former].map(\.collection.string)
    let named = try files.collections(namedFor: [rename.application] + collections)
    for pair in rename.places(among: names + collections + named).sorted(by: { $0.former < $1.former }) {
      let (gone, kept) = isFormer ? (pair.former, pair.current) : (pair.current, pair.former)
      let own = try effectiveSettings(of: gone.collection.string, files)
      guard !own.allFiles.allSatisfy(\.isEmpty) else { continue }
      let other = try effectiveSettings(of: kept.collection.string, files)
      let (lock, otherLock) = (own.locked(gone.key.string), other.locked(kept.key.string))
      if let lock, otherLock == nil { return .managed(lock.place, gone, kept) }
      if let given = own.managedDefault(gone.key.string), otherLock == nil,
        other.managedDefault(kept.key.string) == nil
      {
        return .managed(given.place, gone, kept)
      }
    }
    return nil
  }

  /// Ends names that no version uses any more: their values go into the history.
  ///
  /// - Parameter isChosen: Whether a rename is to be ended.
  /// - Returns: What became of each.
  func contract(_ isChosen: (Rename) -> Bool) throws -> [Contraction] {
    try changingTogether { try keepingSecrets { try endNames(isChosen) } }
  }

  private func endNames(_ isChosen: (Rename) -> Bool) throws -> [Contraction] {
    try letNamesFollow()
    let table = RenameTable(connection: connection)
    let (all, names) = (try renames(), try collections.all().map(\.0))
    let secrets = try secretNames()
    let endings = try endings(isChosen)
    try keepingAllHistory {
      for ending in endings {
        guard case .contracted = ending.outcome else { continue }
        for rename in all.all(of: ending.name) {
          let isFormer = rename.former == ending.name
          for place in rename.places(among: names).map({ isFormer ? $0.former : $0.current }).sorted() {
            if try removeAlone(place.key.string, in: place.collection.string) { transaction.followers.append(place) }
            try table.removeBehind(place)
            // The name is free for another setting from now on, which need not be a secret.
            let (key, collection) = (place.key.string, place.collection.string)
            if secrets.contains(key, in: collection) { try veil(key, in: collection) }
          }
          try table.remove(rename)
          // It may still be kept for another setting.
          let other = all.all(of: rename.former).first {
            $0.former == rename.former && $0.former != ending.name && $0.current != ending.name
              && $0.application == rename.application
          }
          try declarations.removeKept(rename.former, of: rename.application, keptFor: other?.current)
          // So that fleets look for it.
          note(.declared(rename.application))
        }
        note(.contracted(ending.rename.current.collection.string))
      }
    }
    // A version that comes back declares its settings again, and finds its names again.
    try dropEndedVersions()
    try loadRenames()
    return endings
  }
}

extension Renames {
  /// The renames from or to a declared name.
  fileprivate func all(of name: SettingPlace) -> [Rename] {
    declared(name).map { all[$0] }
  }

  /// A version that uses a name, or whose name follows another one only through it.
  fileprivate func user(of name: SettingPlace, _ versions: VersionsInUse) -> VersionsInUse.Version? {
    let own = versions[name]
    if let last = own.first(where: \.isInForce) ?? own.max(by: { $0.until ?? 0 < $1.until ?? 0 }) { return last }
    let others = Set(all(of: name).map { $0.current == name ? $0.former : $0.current }).filter { !versions[$0].isEmpty }
    let isBetween = others.contains { one in
      others.contains { other in one != other && !all(of: one).contains { $0.current == other || $0.former == other } }
    }
    return isBetween ? others.sorted().first.flatMap { versions[$0].first } : nil
  }
}

/// What became of a rename that was to be ended.
package struct Contraction: Sendable {
  package enum Outcome: Sendable {
    case contracted
    /// A version uses the name, until then, in milliseconds since 1970; nil while its declarations are in force.
    case inUse(by: String, until: Int64?)
    /// A fleet keeps it, for versions that other hosts may run.
    case inFleet
    /// The other name has not followed it yet.
    case behind(RenameTable.Behind)
    /// An administrator's file names the first one, and not the second one.
    case managed(ManagedSettings.Place, SettingPlace, SettingPlace)
  }

  package let rename: Rename
  /// The name that ends: the former one, unless no version declares the new one any more.
  package let name: SettingPlace
  package let outcome: Outcome
  /// Whether a fleet shares the name: other hosts keep it as long as a version that they know may use it.
  ///
  /// They push no start of an older version, as its declarations are not those of the fleet.
  package let isInFleet: Bool
}
