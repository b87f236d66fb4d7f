import CofferStorage

/// The versions of programs that use the settings of a store under the names that they declare: those that may run, those
/// whose declarations are in force, and those that declare settings on other hosts of a fleet.
struct VersionsInUse {
  struct Version {
    let application: String
    let version: String?
    /// The application and the version, for sentences.
    let name: String
    /// Until when it may run, in milliseconds since 1970; nil if only other hosts know.
    let until: Int64?
    /// Whether its declarations are in force, so that it may run later, too.
    let isInForce: Bool
    /// Whether it declares settings on this host.
    let isOfThisHost: Bool
    let declarations: [SettingPlace: Declaration]

    init(
      _ version: ProgramVersion, isInForce: Bool, isOfThisHost: Bool = true, until: Int64?, name: String? = nil
    ) {
      (application, self.version, self.name) = (version.application, version.version, name ?? version.name)
      (self.until, self.isInForce, self.isOfThisHost) = (until, isInForce, isOfThisHost)
      declarations = Dictionary(version.declarations.map { ($0.place, $0) }) { first, _ in first }
    }
  }

  let all: [Version]
  private let byName: [SettingPlace: [Int]]

  init(_ all: [Version]) {
    self.all = all
    var byName: [SettingPlace: [Int]] = [:]
    for (index, version) in all.enumerated() {
      for place in version.declarations.keys { byName[place, default: []].append(index) }
    }
    self.byName = byName
  }

  /// Those that use a name.
  subscript(place: SettingPlace) -> [Version] { byName[place, default: []].map { all[$0] } }
}

extension DeclarationTable {
  /// The versions whose declarations fleets share; a name that one keeps only for older versions is not one that it uses.
  ///
  /// - Parameter elsewhere: Whether only those count that no program of this host has made, too. Then those for which a name is kept
  ///   are versions of their own.
  func versionsInFleets(elsewhere: Bool) throws -> [VersionsInUse.Version] {
    guard try hasShared else { return [] }
    struct Owner: Hashable {
      let application: ByteString
      var version: ByteString?
      var isKept = false
    }
    var declared: [Owner: [Declaration]] = [:]
    try connection.statement(
      """
      SELECT application, application_version, declaration, collection, key, own FROM fleet_declarations
      WHERE shared AND declaration IS NOT NULL
      """
    ).query { row in
      if elsewhere, !row.isNull(5) { return }
      var owner = Owner(application: ByteString(row.text(0)), version: row.optionalText(1).map(ByteString.init))
      // One that cannot be read here does not hold.
      guard let declaration = try? Self.parse(row.text(2), row.text(4), in: row.text(3)) else { return }
      if declaration.renamed != nil {
        guard elsewhere else { return }
        (owner.version, owner.isKept) = (nil, true)
      }
      declared[owner, default: []].append(declaration)
    }
    return declared.map { owner, declarations in
      let version = ProgramVersion(
        application: owner.application.string, version: owner.version?.string, fingerprint: [], opened: 0, until: 0,
        declarations: declarations)
      let name = owner.isKept ? "an older version of \(version.application)" : version.name
      return VersionsInUse.Version(
        version, isInForce: true, isOfThisHost: false, until: nil, name: "\(name) in a fleet")
    }
  }
}
