extension Preferences {
  // MARK: Declaring

  /// Declares the settings of this program in its store, where tools find them, and checks the existing values.
  ///
  /// ```swift
  /// let preferences = try Preferences.open(application: "org.example.shop", declaring: settings, strict: true)
  /// ```
  ///
  /// `open` does this if it is given settings. Values of former names and types (``Key/Former``) are taken over. Nothing is
  /// written if the declarations are the same as last time, or the store is read-only. Declarations by a newer version of
  /// the program are kept.
  ///
  /// - Parameter strict: Whether to throw if a value from any source does not match its declaration; nothing is taken over
  ///   then. Otherwise such a value is skipped when it is read, and reported.
  /// - Throws: `CofferError.conflictingDeclarations` when a setting is declared in two ways, by these settings or by another
  ///   program in the same store; if strict, `.invalidSettings` with the complete list of problems.
  public func declare(_ settings: Settings, strict: Bool = false) throws {
    let fingerprint = try settings.fingerprint(of: parent)
    let formers = settings.keys.filter(\.hasFormers)
    let trial = try proxy.state.reader.read { transaction in
      let session = transaction.session
      return try session.reading {
        (
          application: try session.declarations.application(parent),
          takenOver: try takeOver(formers, session, isTrial: true)
        )
      }
    }
    let isKnown = trial.application?.fingerprint == fingerprint
    let declarations = isKnown ? [] : try settings.declarations(of: parent)
    if strict {
      let found = try problems(of: settings)
      let problems = found.filter { !trial.takenOver.hasTaken($0) } + trial.takenOver.problems
      guard problems.isEmpty else { throw CofferError.invalidSettings(problems) }
    }
    for problem in trial.takenOver.problems { proxy.database.report(problem, instead: "the default") }
    guard !proxy.database.isReadOnly, !isKnown || !trial.takenOver.taken.isEmpty else { return }
    try proxy.readWriteConnection.readWrite { transaction in
      let session = transaction.session
      let present = try session.reading { try session.declarations.application(parent) }
      if present?.fingerprint != fingerprint, !VersionText.isLess(settings.version, than: present?.version) {
        try session.declare(declarations, by: parent, version: settings.version, fingerprint: fingerprint)
      }
      session.transaction.keepsAllHistory = true
      _ = try takeOver(formers, session, isTrial: false)
    }
  }

  /// What is wrong with the values of the settings, from all sources, including values that reads skip.
  ///
  /// - Throws: Errors of reading the values: `CofferError.locked`, `.damaged`, `.inputOutput` and similar errors.
  public func problems(of settings: Settings) throws -> [SettingProblem] {
    try settings.keys.flatMap { try $0.problems(in: self) }
  }

  // MARK: Former settings

  private struct TakenOver {
    var taken: Set<ItemPlace> = []
    var problems: [SettingProblem] = []

    struct ItemPlace: Hashable {
      let collection: ByteString
      let key: ByteString
    }

    /// Whether a value is wrong only because it has not been taken over yet.
    func hasTaken(_ problem: SettingProblem) -> Bool {
      taken.contains(ItemPlace(collection: ByteString(problem.collection), key: ByteString(problem.key)))
    }
  }

  private func takeOver(_ keys: [Keys], _ session: Session, isTrial: Bool) throws -> TakenOver {
    var result = TakenOver()
    guard !keys.isEmpty else { return result }
    let all = try session.collections.all().map(\.0)
    let environments = Set(all.compactMap { CollectionEnvironment(collection: $0)?.name }).sorted()
    for key in keys {
      for place in places(of: key, among: all).flatMap({ $0.inEach(of: environments) }) {
        let name = place.collection
        switch try key.takeOver(session, in: place, isTrial: isTrial) {
        case .nothing: break
        case .taken:
          result.taken.insert(TakenOver.ItemPlace(collection: ByteString(name), key: ByteString(key.name)))
        case .problem(let problem): result.problems.append(problem)
        }
      }
    }
    return result
  }

  /// The places where a setting may be: in its collection, and in the suites' collections of that name.
  private func places(of key: Keys, among all: [String]) -> [FormerPlace] {
    let own = [FormerPlace(collection: placeWithoutEnvironment(of: key), suitePrefix: "")]
    guard let collection = key.collection, !key.isShared else { return own }
    let suffix = Array("/\(collection)".utf8)
    return own
      + all.compactMap { name in
        guard name.utf8.count > suffix.count, name.utf8.suffix(suffix.count).elementsEqual(suffix) else { return nil }
        let prefix = String(decoding: name.utf8.dropLast(suffix.count - 1), as: UTF8.self)
        return FormerPlace(collection: name, suitePrefix: prefix)
      }
  }
}

/// A place where a setting takes over its former value.
struct FormerPlace {
  /// The collection of the setting.
  var collection: String
  /// The prefix of collection names in the same suite.
  let suitePrefix: String
  /// The suffix of collection names in the same environment.
  var environmentSuffix = ""

  /// This place, and the corresponding ones in environments.
  func inEach(of environments: [String]) -> [FormerPlace] {
    [self]
      + environments.map { environment in
        FormerPlace(
          collection: "\(collection)@\(environment)", suitePrefix: suitePrefix, environmentSuffix: "@\(environment)")
      }
  }
}

/// Versions of programs: numbers separated by dots; missing ones count as 0.
private enum VersionText {
  static func isLess(_ version: String?, than other: String?) -> Bool {
    guard let version, let other else { return false }
    let (numbers, others) = (numbers(version), numbers(other))
    for index in 0..<max(numbers.count, others.count) {
      let (a, b) = (index < numbers.count ? numbers[index] : 0, index < others.count ? others[index] : 0)
      if a != b { return a < b }
    }
    return false
  }

  private static func numbers(_ version: String) -> [Int] {
    version.split(separator: ".").map { Int($0.prefix { $0.isASCII && $0.isNumber }) ?? 0 }
  }
}
