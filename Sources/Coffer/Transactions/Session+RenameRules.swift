#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// Which renames cannot be meant, beside the versions that are in use: a name is one setting, and a setting has one new name.

/// The former names that are kept, and those that a declaration begins, by their declared names.
struct KeptNames {
  private(set) var renames: [Rename]
  let versions: VersionsInUse

  init(_ renames: [Rename], _ versions: VersionsInUse) { (self.renames, self.versions) = (renames, versions) }

  mutating func add(_ rename: Rename) { renames.append(rename) }

  /// All declared names of the setting that a name is one of.
  private func names(of place: SettingPlace) -> Set<SettingPlace> {
    var (seen, open): (Set<SettingPlace>, [SettingPlace]) = ([place], [place])
    while let next = open.popLast() {
      for rename in renames {
        for (one, other) in [(rename.current, rename.former), (rename.former, rename.current)]
        where one == next && seen.insert(other).inserted {
          open.append(other)
        }
      }
    }
    return seen
  }

  /// Why a rename would make one setting of two, as a clause; nil if it would not.
  ///
  /// - Parameters:
  ///   - declaration: That of the new name.
  ///   - version: The version that declares it.
  func problem(
    of rename: Rename, _ declaration: Declaration, by version: VersionsInUse.Version
  ) -> String? {
    let what = "\(rename.current) is declared as formerly \(rename.former)"
    let others = versions[rename.current].filter { ByteString($0.application) != ByteString(version.application) }
    let stranger = others.first { other in
      let names = other.declarations[rename.current]?.formerNames.map(\.place) ?? []
      return !names.contains(rename.former)
    }
    if let stranger {
      return "\(what), and \(stranger.name) declares \(rename.current) as a setting of its own; use another name"
    }
    let formerNames = Set(declaration.formerNames.map(\.place))
    for kept in renames where kept.former == rename.former && kept.application != rename.application {
      if names(of: kept.current).contains(rename.current) || formerNames.contains(kept.current) { continue }
      return "\(what), which \(kept.application) has renamed to \(kept.current); declare it under that name"
    }
    let names = names(of: rename.current).union(names(of: rename.former))
    for other in versions.all {
      let declared = names.filter { other.declarations[$0] != nil }.sorted()
      guard declared.count > 1 else { continue }
      let settings = declared.map(\.description).joined(separator: " and ")
      var end = ""
      if !other.isInForce, let until = other.until {
        end = ", and it may run until \(Timestamp.text(milliseconds: until))"
      }
      return "\(what), but to \(other.name), \(settings) are two settings\(end); use another name"
    }
    return nil
  }

  /// Why the names that a version declares would be fewer settings, as a clause; nil if they are not.
  func problem(of new: ProgramVersion) -> String? {
    let places = Set(new.declarations.map(\.place))
    for rename in renames.sorted(by: { ($0.former, $0.current) < ($1.former, $1.current) }) {
      let names = names(of: rename.former)
      let declared = names.intersection(places).sorted()
      guard declared.count > 1 else { continue }
      let former = places.contains(rename.former) ? rename.former : declared[0]
      let others = declared.filter { $0 != former }.map(\.description).joined(separator: " and ")
      let until = renames.filter { names.contains($0.current) }.map(\.until).max() ?? rename.until
      return "\(former) and \(others) are names of one setting, which are kept until "
        + "\(Timestamp.text(milliseconds: until)) or longer; use another name, or end the former one first (prefs schema contract)"
    }
    return nil
  }
}

extension Session {
  /// Throws if a version that may still run reads the values of a setting in another form.
  ///
  /// - Parameters:
  ///   - isChecked: Whether a version is one whose declarations count.
  func refuseRetyping(_ new: ProgramVersion, _ versions: VersionsInUse, _ isChecked: (VersionsInUse.Version) -> Bool)
    throws
  {
    for declaration in new.declarations {
      for other in versions[declaration.place] where isChecked(other) {
        guard let earlier = other.declarations[declaration.place], earlier.type != declaration.type else { continue }
        throw CofferError.retypedInPlace(
          setting: declaration.place.description, type: declaration.type.description,
          other: other.name, otherType: earlier.type.description, until: other.until.map(Date.init(milliseconds:)))
      }
    }
  }
}
