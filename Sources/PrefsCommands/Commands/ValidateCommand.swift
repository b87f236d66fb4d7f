import ArgumentParser
import Coffer

/// The command `prefs validate`.
struct ValidateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "validate",
    abstract: "Check values against the declarations of their settings.",
    discussion: """
      Checks the named collection, those in which the application of --app declares settings, or all collections with declared \
      settings, for undeclared keys, values of the wrong \
      type or outside their limits, and deprecated settings. Values that an administrator of this host sets or locks are \
      checked, too: also names under which no program is known to read anything, locks of one setting that differ between \
      the applications that declare it, and locks in the files of others, which those do not read. `prefs doctor` checks the store's file instead. The exit code is 8 if there are findings; \
      a deprecated setting, and what may be meant as it is, does not count. Values of secrets and sealed collections are not shown.

      An administrator's settings for the application shop are the files /etc/coffer/shop.d/*.json and *.plist, in the order of their \
      names. Their values are defaults. The dictionary "locked" has values that override all others, and that no user can \
      change; a list "locked" locks the named keys at the defaults of these files. The files of /etc/coffer/shop.d/locks have \
      locked values only. A key of another collection is named COLLECTION/KEY, and that of a suite \
      SUITE/COLLECTION/KEY; shop/timeout is timeout. Only root and the user may be able to write \
      to the files and the folders above them. For example:

        {"timeout": 30, "web/port": 8080, "locked": {"updates": false}}
        {"timeout": 30, "locked": ["timeout"]}

      URLs, UUIDs, dates, data and secrets are written as `prefs export` writes them: {"home": {"$url": "https://example.com"}}.

      Examples:
        prefs validate
        prefs validate shop --json
        prefs --app shop validate
      """)

  @Argument(help: "The collection; without it, all of them.", completion: Completions.collections)
  var name: String?

  @Flag(help: "Print a JSON array.")
  var json = false

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if name != nil, !common.collection.isEmpty { throw ValidationError("Name the collection once.") }
  }

  mutating func run() throws {
    let named = try common.collection(name)
    let (applications, findings) = try CommandSession(common, in: named.map { [$0] } ?? []).read { transaction in
      let declared = try DeclaredKeys(transaction)
      var scope = named.map { [$0.name] }
      if let application = common.application(name) {
        scope = try common.inRequestedEnvironment(declared.collections(of: application, transaction))
      }
      if let named, common.application(name) == nil || scope == [] {
        try Self.requireKnown(named, declared, transaction)
      }
      let stored = try (scope ?? declared.collections(transaction)).flatMap {
        try Self.findings($0, declared, transaction)
      }
      let applications = try Self.applications(of: scope, named, declared, transaction)
      let managed = try Self.managedFindings(scope, applications, declared, transaction)
      // Stable: what is stored first.
      let findings = (stored + managed).enumerated().sorted { a, b in
        let names = [a, b].map { ByteString($0.element.collection) }
        return names[0] == names[1] ? a.offset < b.offset : names[0] < names[1]
      }
      return (applications, findings.map(\.element))
    }
    let strays = applications.flatMap(ManagedSettings.strays)
    if json {
      try StandardOutput.write(JSONText.array(findings.map(Self.json)) + "\n")
    } else {
      var output = StandardOutput()
      for finding in findings {
        output.write(DisplayText.escapingControls(finding.sentence) + "\n")
      }
      try output.finish()
    }
    for stray in strays { Message.error(stray.description) }
    if !strays.isEmpty || findings.contains(where: { $0.kind.isFailure }) { throw ExitCode(ExitStatus.format.rawValue) }
  }

  /// Throws if nothing is known of a collection: what is misspelt must not pass for valid.
  private static func requireKnown(
    _ collection: NamedCollection, _ declared: DeclaredKeys, _ transaction: borrowing ReadTransaction
  ) throws {
    guard declared.settings(in: collection.name).isEmpty,
      ManagedSettings.strays(ofApplication: collection.name).isEmpty,
      // Files that cannot be read are found below.
      let effective = try transaction.effectiveSettingsIfReadable(of: collection.name), !effective.hasFiles
    else { return }
    try KeyReference.requireItems(in: collection.name, transaction)
  }

  /// The applications whose files are checked.
  ///
  /// - Parameter scope: The collections that are checked; nil for all.
  private static func applications(
    of scope: [String]?, _ named: NamedCollection?, _ declared: DeclaredKeys, _ transaction: borrowing ReadTransaction
  ) throws -> [String] {
    guard let scope else { return try declared.applications(transaction) }
    var seen: Set<ByteString> = []
    return try (scope.isEmpty ? [named?.name ?? ""] : scope)
      .flatMap { try transaction.effectiveSettings(of: $0).applications }
      .filter { seen.insert(ByteString($0)).inserted }
  }

  /// The problems in the files of `/etc/coffer`.
  ///
  /// - Parameter scope: The collections that are checked; nil for all.
  private static func managedFindings(
    _ scope: [String]?, _ applications: [String], _ declared: DeclaredKeys, _ transaction: borrowing ReadTransaction
  ) throws -> [SettingFinding] {
    // An environment uses its parent's files, which are checked with that.
    let plain = scope?.filter { CollectionEnvironment(collection: $0) == nil }
    if let scope, !scope.isEmpty, plain == [] { return [] }
    let findings =
      try applications.flatMap { try ManagedFindings(application: $0, declared: declared).all(transaction) }
      + ManagedFindings.disagreements(declared) + SettingFinding.ofNames(transaction)
    // Of the files of other applications, what they say of these collections, or of none that is known.
    guard let plain else { return findings }
    let names = Set(plain.map { ByteString($0) })
    return findings.filter { finding in
      let collection = CollectionEnvironment(collection: finding.collection)?.parent ?? finding.collection
      return names.contains(ByteString(collection)) || declared.settings(in: collection).isEmpty
    }
  }

  private static func findings(
    _ collection: String, _ declared: DeclaredKeys, _ transaction: borrowing ReadTransaction
  ) throws -> [SettingFinding] {
    guard !declared.settings(in: collection).isEmpty else { return [] }
    let isSealed = try transaction.isSealed(collection: collection)
    return try transaction.allKeys(inCollection: collection).flatMap { key in
      try SettingFinding.all(of: key, in: collection, declared, isSealed: isSealed) {
        try transaction.value(forKey: key, inCollection: collection)
      }
    } + disagreements(collection, declared)
  }

  /// The settings of which a program of this host and a fleet cannot both read the values.
  private static func disagreements(_ collection: String, _ declared: DeclaredKeys) -> [SettingFinding] {
    declared.settings.compactMap { setting in
      let place = setting.declaration.place
      guard place.collection == ByteString(collection), let text = setting.disagreement else { return nil }
      return SettingFinding(collection: collection, key: place.key.string, kind: .disagreement, text: text)
    }
  }

  private static func json(_ finding: SettingFinding) -> String {
    JSONText.object([
      ("collection", JSONText.quoted(finding.collection)),
      ("key", JSONText.quoted(finding.key)),
      ("kind", JSONText.quoted(finding.kind.rawValue)),
      ("text", JSONText.quoted(finding.text)),
      ("near", finding.near.map(JSONText.quoted) ?? "null"),
    ])
  }
}
