import ArgumentParser
import Coffer

/// The command `prefs validate`.
struct ValidateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "validate",
    abstract: "Check values against the declarations of their settings.",
    discussion: """
      Checks the named collection, or all collections with declared settings, for undeclared keys, values of the wrong \
      type or outside their limits, and deprecated settings. Values that an administrator of this host sets or locks are \
      checked, too. `prefs doctor` checks the store's file instead. The exit code is 8 if there are findings; a deprecated setting, \
      or a name that may be a slip for "locked", does not count. Values of secrets and sealed collections are not shown.

      An administrator's settings for the application shop are the files /etc/coffer/shop.d/*.json and *.plist, in the order of their \
      names. Their values are defaults. The dictionary "locked" has values that override all others, and that no user can \
      change; a list "locked" locks the named keys at the defaults of these files. The files of /etc/coffer/shop.d/locks have \
      locked values only. A key of another collection is named COLLECTION/KEY, and that of a suite \
      SUITE/COLLECTION/KEY; shop/timeout is timeout. Only root and the user may be able to write \
      to the files and the folders above them. For example:

        {"timeout": 30, "web/port": 8080, "locked": {"updates": false}}
        {"timeout": 30, "locked": ["timeout"]}

      Examples:
        prefs validate
        prefs validate shop --json
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
    let collection = try common.collection(name)
    let (collections, findings) = try CommandSession(common, in: collection.map { [$0] } ?? []).read { transaction in
      let declared = try DeclaredKeys(transaction)
      let collections = try collection.map { [$0.name] } ?? Self.collections(declared, transaction)
      let findings = try collections.flatMap {
        try Self.findings($0, declared, transaction) + Self.managedFindings($0, declared, transaction)
      }
      return (collections, findings)
    }
    let strays = collections.flatMap(ManagedSettings.strays)
    if json {
      try StandardOutput.write(JSONText.array(findings.map(Self.json)) + "\n")
    } else {
      var output = StandardOutput()
      for finding in findings {
        let name = KeyText.of(finding.key, in: finding.collection)
        output.write(DisplayText.escapingControls("\(name) \(finding.text)") + "\n")
      }
      try output.finish()
    }
    for stray in strays { Message.error(stray.description) }
    if !strays.isEmpty || findings.contains(where: { $0.kind.isFailure }) { throw ExitCode(ExitStatus.format.rawValue) }
  }

  /// The collections of the store, and those that are only declared.
  private static func collections(
    _ declared: DeclaredKeys, _ transaction: borrowing ReadTransaction
  ) throws -> [String] {
    let names = try transaction.allCollections() + declared.settings.map(\.declaration.collection)
    return Set(names.map(ByteString.init)).sorted().map(\.string)
  }

  /// The problems in the files of `/etc/coffer`.
  private static func managedFindings(
    _ collection: String, _ declared: DeclaredKeys, _ transaction: borrowing ReadTransaction
  ) throws -> [SettingFinding] {
    // An environment uses its parent's files.
    guard CollectionEnvironment(collection: collection) == nil else { return [] }
    let effective = try transaction.effectiveSettings(of: collection)
    let doubts = effective.doubts.filter { declared.setting($0.name, in: collection) == nil }.map {
      SettingFinding(
        collection: collection, key: $0.name, kind: .doubtful,
        text: "in \($0.place) locks nothing. Was it meant to be \"locked\"?")
    }
    guard effective.hasDeclarations else { return doubts }
    let keys = try effective.managedKeys(transaction)
    return doubts
      + keys.flatMap { key in
        [effective.locked(key), effective.managedDefault(key)].compactMap(\.self).flatMap { value, place in
          SettingFinding.all(
            of: key, in: collection, declared,
            isSealed: declared.setting(key, in: collection)?.declaration.type == .secret,
            place: place.description
          ) { value }
        }
      }
  }

  private static func findings(
    _ collection: String, _ declared: DeclaredKeys, _ transaction: borrowing ReadTransaction
  ) throws -> [SettingFinding] {
    guard !declared.settings(in: collection).isEmpty else { return [] }
    let isSealed = try transaction.isSealed(collection: collection)
    return try transaction.allKeys(inCollection: collection).flatMap { key in
      let findings = try SettingFinding.all(of: key, in: collection, declared, isSealed: isSealed) {
        try transaction.value(forKey: key, inCollection: collection)
      }
      return try findings + overruledFinding(key, collection, transaction)
    }
  }

  /// What is wrong for a program of this host that declares the setting differently than the fleet does.
  private static func overruledFinding(
    _ key: String, _ collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> [SettingFinding] {
    guard let own = try transaction.overruledDeclaration(forKey: key, inCollection: collection),
      let value = try transaction.value(forKey: key, inCollection: collection),
      let problem = own.declaration.problem(of: value, showsValue: own.declaration.type != .secret)
    else { return [] }
    return [
      SettingFinding(
        collection: collection, key: key, kind: own.declaration.type.accepts(value) ? .limit : .type,
        text: "must be \(problem), as \(own.owner) declares it on this host.")
    ]
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
