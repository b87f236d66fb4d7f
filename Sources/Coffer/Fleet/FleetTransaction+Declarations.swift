import CofferStorage

extension FleetTransaction {
  private var declarations: DeclarationTable { session.declarations }

  // MARK: Records

  /// The record of a declaration.
  package func declaration(_ key: String, in collection: String, of fleet: Int64) throws -> StoredRecord? {
    try reading { try tables.declaration(key, in: collection, of: fleet) }
  }

  /// What a program of this host declares.
  package func ownDeclaration(_ key: String, in collection: String) throws -> SharedDeclaration? {
    try reading { try declarations.own(key, in: collection) }
  }

  /// Notes in the change log that an application's declarations came from elsewhere.
  package func noteDeclarations(of application: String) { session.note(.declaredElsewhere(application)) }

  // MARK: Changes

  /// The declarations that differ from their records, in the order of their collections and keys.
  ///
  /// - Parameter shared: All that the fleet shares, if those are not all.
  package func localDeclarations(
    of fleet: StoredFleet, in collections: [String], besides shared: [String]? = nil
  ) throws -> [LocalDeclaration] {
    guard let id = fleet.id, !collections.isEmpty else { return [] }
    let shared = shared ?? collections
    return try reading {
      guard try mayHaveDeclared(since: fleet.pushed) || tables.areDeclarationsNotInStep(of: id) else { return [] }
      let times = try declarationTimes()
      let records = Dictionary(grouping: try tables.declarations(of: id)) { ByteString($0.collection) }
      return try collections.flatMap { collection in
        let recorded = records[ByteString(collection), default: []].map { ByteString($0.key) }
        return try declarations.ownKeys(in: collection, besides: shared).union(recorded).sorted().compactMap {
          try localDeclaration($0.string, in: collection, of: id, besides: shared, times)
        }
      }
    }
  }

  /// The change of a declaration that is not in sync; nil if there is none.
  ///
  /// - Parameter collections: Those that the fleet shares.
  package func localDeclaration(
    _ key: String, in collection: String, of fleet: Int64, besides collections: [String], _ times: DeclarationTimes
  ) throws -> LocalDeclaration? {
    let (record, own) = try reading {
      let record = try tables.declaration(key, in: collection, of: fleet)
      return (record, try declarations.own(key, in: collection, besides: record == nil ? collections : []))
    }
    let content: SharedDeclaration?
    if let stored = record?.declaration {
      if stored.isChanged(by: own) {
        content = own
      } else if let version = record?.version, version < 0 {
        content = stored.content ?? own
      } else {
        return nil
      }
    } else {
      guard let own else { return nil }
      content = own
    }
    // A removal, and what a user has restored, is as late as it is found.
    let isDeclared = content != nil && content == own
    let (modified, author) = isDeclared ? content.flatMap { times[$0.application] } ?? (0, "") : (time, "")
    return LocalDeclaration(
      collection: collection, key: key, content: content, own: own?.json, modified: modified, author: author,
      record: record,
      isLost: record.map { $0.lostVersion != nil && $0.declaration?.isChanged(by: own) == false } ?? false)
  }

  /// Whether anything may have been declared since a commit of the store.
  private func mayHaveDeclared(since number: CommitNumber) throws -> Bool {
    var isDeclared = false
    let rows: [Void]? = try session.changeLog.rows(after: number) { row, _ in
      guard let action = row.action else { return }
      let actions = CommitAction.all(in: action)
      // More than the log lists may be among those.
      if actions.count >= CommitAction.maximumCount || actions.contains(where: \.isDeclaration) { isDeclared = true }
    }
    return rows == nil || isDeclared
  }

  /// When applications last declared their settings, and who ran them, as far as the change log goes back.
  package struct DeclarationTimes {
    fileprivate var byApplication: [CommitAction: (time: Int64, author: String)] = [:]

    subscript(application: String) -> (time: Int64, author: String)? {
      // In the form in which the log has its name.
      CommitAction.text(of: [.declared(application)]).flatMap { CommitAction.all(in: $0).first }
        .flatMap { byApplication[$0] }
    }
  }

  package func declarationTimes() throws -> DeclarationTimes {
    var times = DeclarationTimes()
    try reading {
      try session.connection.statement(
        "SELECT time, author, action FROM changes WHERE action IS NOT NULL ORDER BY sequence"
      ).query { row in
        for action in CommitAction.all(in: row.text(2)) where action.isDeclaration {
          times.byApplication[action] = (row.integer(0), row.optionalText(1) ?? "")
        }
      }
    }
    return times
  }

  // MARK: Findings

  /// The values in a fleet's collections that violate a declaration, and the declarations that cannot be read here, as sentences.
  package func findings(of fleet: Int64, in collections: [String]) throws -> [String] {
    try reading {
      let declared = try declarations.all().map(\.declaration)
      return try collections.flatMap { collection in
        let names = Set(DeclarationTable.names(collection).map { ByteString($0.name) })
        let keys = declared.filter { names.contains(ByteString($0.collection)) }.map { ByteString($0.name) }
        return try Set(keys).sorted().flatMap { key in
          try [disagreement(on: key.string, in: collection), problem(of: key.string, in: collection)?.description]
            .compactMap(\.self)
        }
      } + unreadable(of: fleet)
    }
  }

  /// Says that no value of a setting suits both the fleet and a program of this host.
  private func disagreement(on key: String, in collection: String) throws -> String? {
    guard let shared = try declarations.foundInForce(key, in: collection),
      let text = try declarations.overruled(key, in: collection)?.disagreement(on: shared)
    else { return nil }
    return "\(KeyText.of(key, in: collection)) \(text)"
  }

  private func problem(of key: String, in collection: String) throws -> SettingProblem? {
    guard let row = try session.row(key, in: collection) else { return nil }
    let value = try session.core.value(row.item.object, key, in: collection)
    let isSecret = try session.isDeclaredSecret(key, in: collection)
    func problem(by declaration: Declaration, in place: String) -> SettingProblem? {
      declaration.problem(of: value, showsValue: !isSecret).map {
        SettingProblem(collection: collection, key: key, place: place, reason: $0)
      }
    }
    if let declaration = try declarations.declaration(key, in: collection),
      let found = problem(by: declaration, in: "the store")
    {
      return found
    }
    return try declarations.overruled(key, in: collection).flatMap {
      problem(by: $0.declaration, in: "the store, as \($0.owner) declares it on this host")
    }
  }

  private func unreadable(of fleet: Int64) throws -> [String] {
    try tables.declarations(of: fleet).compactMap { record in
      guard let stored = record.declaration, stored.isShared, let content = stored.content,
        content.declaration(of: record.key, in: record.collection) == nil
      else { return nil }
      return """
        The declaration of \(KeyText.of(record.key, in: record.collection)) by \(content.application) cannot be read here and is \
        not used; a later version may have written it.
        """
    }
  }
}

extension DeclaredSetting {
  /// The application with its version, for sentences.
  package var owner: String { version.map { "\(application) \($0)" } ?? application }

  /// The rest of a sentence that begins with a setting: that this declaration, by a program of this host, has another type than one of
  /// a fleet, so that they cannot both read its values; nil if it has not.
  func disagreement(on shared: DeclaredSetting) -> String? {
    guard declaration.type != shared.declaration.type else { return nil }
    return """
      is \(declaration.type) to \(owner) on this host, and \(shared.declaration.type) to \(shared.owner) in a fleet. Change one of \
      them: neither reads the values of the other.
      """
  }
}

extension Reading where Self: ~Copyable {
  /// What a program of this host declares while a fleet's declaration holds that differs from it; nil for nothing.
  ///
  /// - Parameter application: The application whose settings are asked for; nil for those of any on this host.
  package borrowing func overruledDeclaration(
    forKey key: String, inCollection collection: String, for application: String? = nil
  ) throws -> DeclaredSetting? {
    try reading { try $0.declarations.overruled(key, in: collection, for: application) }
  }
}
