extension Preferences {
  // MARK: Declaring

  /// Declares the settings of this program in its store, where tools find them, and checks the existing values.
  ///
  /// ```swift
  /// let preferences = try Preferences.open(application: "org.example.shop", declaring: settings, strict: true)
  /// ```
  ///
  /// `open` does this if it is given settings. Values of former names and types (``Key/Former``) are taken over; a former name
  /// is kept while an older version that declares it may run, see <doc:ChangingSettings>. Nothing is written if the
  /// declarations are the same as last time and the last recorded opening is recent, or the store is read-only. Declarations
  /// by a newer version of the program are kept.
  ///
  /// - Parameter strict: Whether to throw if a value from any source does not match its declaration; nothing is taken over
  ///   then. Otherwise such a value is skipped when it is read, and reported.
  /// - Throws: `CofferError.conflictingDeclarations` when a setting is declared in two ways, by these settings or by another
  ///   program in the same store; `.retypedInPlace` when another version that may still run declares another type;
  ///   `.malformedSettings` for former names that would make one setting of two, or one that is declared while it is kept; if
  ///   strict, `.invalidSettings` with the complete list of problems.
  public func declare(_ settings: Settings, strict: Bool = false) throws {
    let fingerprint = try settings.fingerprint(of: parent)
    let formers = settings.keys.filter { !$0.formerNames.isEmpty }
    let database = proxy.database
    try database.convert(formers.flatMap { key in key.converters(in: placeWithoutEnvironment(of: key)) })
    let trial = try proxy.state.reader.read { transaction in
      let session = transaction.session
      return try session.reading { () throws -> Trial in
        Trial(
          isKnown: try isKnown(settings, fingerprint, session),
          takenOver: try takeOver(formers, session, isTrial: true),
          isWaiting: try !formers.isEmpty && session.isConversionWaiting()
            || settings.contracts && canContract(session))
      }
    }
    let declarations = trial.isKnown ? [] : try settings.declarations(of: parent)
    if strict {
      let found = try problems(of: settings)
      let problems = found.filter { !trial.takenOver.hasTaken($0) } + trial.takenOver.problems
      guard problems.isEmpty else { throw CofferError.invalidSettings(problems) }
    }
    for problem in trial.takenOver.problems { database.report(problem, instead: "the default") }
    guard !database.isReadOnly, !trial.isKnown || !trial.takenOver.taken.isEmpty || trial.isWaiting else { return }
    try proxy.writer.readWrite { transaction in
      let session = transaction.session
      session.transaction.keepsAllHistory = true
      // Another process with the same settings may have been faster.
      let isStillKnown = try session.reading { try isKnown(settings, fingerprint, session) }
      var begun: [Session.BegunRename] = []
      if !isStillKnown {
        let declarations = try trial.isKnown ? settings.declarations(of: parent) : declarations
        let (opened, until) = ProgramVersion.times(openedAt: session.transaction.time, mayRunFor: settings.runTime)
        begun = try session.declare(
          ProgramVersion(
            application: parent, version: settings.version, fingerprint: fingerprint, opened: opened, until: until,
            declarations: declarations)
        ).begun
      }
      try session.bringInStep(retryingRefused: !isStillKnown, new: begun)
      _ = try takeOver(formers, session, isTrial: false)
      if settings.contracts { try contract(session) }
    }
  }

  /// What declaring would do.
  private struct Trial {
    let isKnown: Bool
    let takenOver: TakenOver
    /// Whether there is something else to do.
    let isWaiting: Bool
  }

  /// Whether nothing has to be recorded of the settings: these declarations are, and until when the program may run.
  private func isKnown(_ settings: Settings, _ fingerprint: [UInt8], _ session: Session) throws -> Bool {
    guard let present = try session.declarations.application(parent, version: settings.version),
      let own = present.own, own.fingerprint == fingerprint,
      own.until >= session.transaction.time + settings.runTime
    else { return false }
    return present.fingerprint == fingerprint || VersionText.isLess(settings.version, than: present.version)
  }

  private func canContract(_ session: Session) throws -> Bool {
    try session.endings { $0.application == parent }.contains { ending in
      switch ending.outcome {
      case .inUse, .inFleet, .managed: false
      case .contracted, .behind: true
      }
    }
  }

  private func contract(_ session: Session) throws {
    for contraction in try session.contract({ $0.application == parent }) {
      let name = contraction.name
      switch contraction.outcome {
      case .contracted: break
      case .inUse(let version, _): proxy.database.options.logger.notice("\(name) is kept for \(version).")
      case .inFleet: proxy.database.options.logger.notice("\(name) is kept in a fleet.")
      case .behind(let item):
        proxy.database.options.logger.warning("\(name) is kept: \(item.place) has not followed \(item.source).")
      case .managed(let file, let former, let current):
        proxy.database.options.logger.warning("\(name) is kept: \(file) names \(former), and not \(current).")
      }
    }
  }

  /// What is wrong with the values of the settings, from all sources, including values that reads skip.
  ///
  /// - Throws: Errors of reading the values: `CofferError.vaultLocked`, `.damaged`, `.inputOutput` and similar errors.
  public func problems(of settings: Settings) throws -> [SettingProblem] {
    try settings.keys.flatMap { try $0.problems(in: self) }
  }

  // MARK: Former settings

  private struct TakenOver {
    var taken: Set<SettingPlace> = []
    var problems: [SettingProblem] = []

    /// Whether a value is wrong only because it has not been taken over yet.
    func hasTaken(_ problem: SettingProblem) -> Bool {
      taken.contains(SettingPlace(problem.key, in: problem.collection))
    }
  }

  private func takeOver(_ keys: [Keys], _ session: Session, isTrial: Bool) throws -> TakenOver {
    var result = TakenOver()
    guard !keys.isEmpty else { return result }
    let all = try session.collections.all().map(\.0)
    let renames = isTrial ? Renames() : try session.renames()
    let environments = Set(all.compactMap { CollectionEnvironment(collection: $0)?.name }).sorted()
    for key in keys {
      for place in places(of: key, among: all).flatMap({ $0.inEach(of: environments) }) {
        switch try key.takeOver(session, in: place, except: renames, isTrial: isTrial) {
        case .nothing: break
        case .taken: result.taken.insert(SettingPlace(key.name, in: place.collection))
        case .problem(let problem): result.problems.append(problem)
        }
      }
    }
    return result
  }

  /// The places where a setting may be: in its collection, and in the suites' collections of that name.
  private func places(of key: Keys, among all: [String]) -> [FormerPlace] {
    let own = [FormerPlace(collection: placeWithoutEnvironment(of: key), suitePrefix: "", application: parent)]
    guard let collection = key.collection, !key.isShared, ByteString(collection) != ByteString(parent) else {
      return own
    }
    let suffix = Array("/\(collection)".utf8)
    return own
      + all.compactMap { name in
        guard name.utf8.count > suffix.count, name.utf8.suffix(suffix.count).elementsEqual(suffix) else { return nil }
        let prefix = String(decoding: name.utf8.dropLast(suffix.count - 1), as: UTF8.self)
        return FormerPlace(collection: name, suitePrefix: prefix, application: parent)
      }
  }
}

/// A place where a setting takes over its former value.
struct FormerPlace {
  /// The collection of the setting.
  var collection: String
  /// The prefix of collection names in the same suite.
  let suitePrefix: String
  /// The application's own collection.
  let application: String
  /// The suffix of collection names in the same environment.
  var environmentSuffix = ""

  /// This place, and the corresponding ones in environments.
  func inEach(of environments: [String]) -> [FormerPlace] {
    [self]
      + environments.map { environment in
        FormerPlace(
          collection: "\(collection)@\(environment)", suitePrefix: suitePrefix, application: application,
          environmentSuffix: "@\(environment)")
      }
  }

  /// Another collection in the same suite and environment; nil for the application's own, of which no suite has a part.
  func collection(named name: String) -> String? {
    guard suitePrefix.isEmpty || ByteString(name) != ByteString(application) else { return nil }
    return suitePrefix + name + environmentSuffix
  }
}
