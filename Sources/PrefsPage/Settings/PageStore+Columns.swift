import Coffer
import PrefsCommands

extension PageStore {
  // MARK: - Environments as columns

  /// A part of the settings of collections that have environments, with a cell for the collection and for each environment.
  func columns(_ request: PageRequest) throws -> String {
    let filter = try request.filter()
    let part = try part(of: request)
    let (families, found, state) = withIndex { index in
      (index.families(of: filter.collection), index.columns(filter), ListState(&index, filter))
    }
    let environments = Set(families.flatMap(\.environments)).sorted()
    let hasParents = families.contains(where: \.isParentShown)
    let json = SettingJSON(reader: state.reader, scope: scope)
    return try connection.read { transaction in
      let rows =
        request.flag("onlyDifferent")
        ? try found.filter { row in
          let base = try json.valueInForce(row.key, row.family.parent, transaction)
          return try row.mayDiffer
            && row.family.environments.contains { try json.differs(row, environment: $0, from: base, transaction) }
        } : found
      let shown = try rows[part.clamped(to: rows.indices)].map { row in
        try self.json(row, (hasParents ? [nil] : []) + environments, json, transaction)
      }
      let names = (hasParents ? ["null"] : []) + environments.map(JSONText.quoted)
      return JSONText.object(
        [
          ("total", "\(rows.count)"), ("count", "\(rows.count)"), ("rows", JSONText.array(shown)),
          ("columns", JSONText.array(names)),
        ] + (try members(state, transaction)))
    }
  }

  /// - Parameter columns: The names of environments, and nil for the collection itself.
  private func json(
    _ row: ColumnRow, _ columns: [String?], _ json: SettingJSON, _ transaction: borrowing ReadTransaction
  ) throws -> String {
    let base = try json.valueInForce(row.key, row.family.parent, transaction)
    let cells = try columns.map { name in
      let isThere = name.map { row.family.environments.contains($0) } ?? row.family.isParentShown
      guard isThere else { return "null" }
      let collection = name.map { "\(row.family.parent)@\($0)" } ?? row.family.parent
      let differs = try name.map { try json.differs(row, environment: $0, from: base, transaction) } ?? false
      return JSONText.object([
        ("differs", differs ? "true" : "false"), ("setting", try json.row(row.key, collection, transaction)),
      ])
    }
    let declaration = json.reader.declared.setting(row.key, in: row.family.parent)?.declaration
    return JSONText.object([
      ("collection", JSONText.quoted(row.family.parent)), ("key", JSONText.quoted(row.key)),
      ("summary", JSONText.quoted(declaration?.summary ?? "")), ("cells", JSONText.array(cells)),
    ])
  }

  // MARK: - Copying across

  /// What copying a setting, or all that are set in a collection, to another one would change, for ``apply(_:)``.
  func previewCopy(_ request: PageRequest) throws -> String {
    try requireWritable()
    let (from, to) = (try request.text("from"), try request.text("to"))
    let key = try request.optionalText("key")
    for collection in [from, to] { try scope.require(collection) }
    session.files.forget()
    let reader = json.reader
    let plan = try unlocking {
      try connection.read { transaction in
        let keys = try key.map { [$0] } ?? transaction.allKeys(inCollection: from)
        let entries = try keys.map { key in
          try copy(key, from, to, reader, transaction)
        }
        let unchanged = entries.filter { $0 == nil }.count
        let notes =
          unchanged == 0
          ? [] : ["\(DisplayText.count(unchanged, "setting has", "settings have")) that value in \(to) already."]
        return ChangePlan(entries: entries.compactMap(\.self), notes: notes)
      }
    }
    return plans.withLock { $0.add(plan) }
  }

  /// - Returns: nil if the other collection has that value itself.
  private func copy(
    _ key: String, _ from: String, _ to: String, _ reader: SettingReader, _ transaction: borrowing ReadTransaction
  ) throws -> ChangePlan.Entry? {
    let found = try reader.effectiveSettings(in: from, transaction).item(key, transaction).found
    guard let value = found?.value else {
      throw Failure(.notFound, "\(KeyText.of(key, in: from)) has no value to copy. Nothing was changed.")
    }
    let present = try transaction.value(forKey: key, inCollection: to)
    if let present, try present.stored == value.stored { return nil }
    let isSealed = try transaction.isSealed(collection: to)
    let wasSealed = try transaction.isSealed(collection: from)
    let problem: String? =
      if wasSealed, !isSealed {
        "\(DisplayText.collection(from)) is sealed, and \(DisplayText.collection(to)) is not."
      } else if present?.kind == .secret, value.kind != .secret {
        "It is a secret there, and would become readable."
      } else {
        self.problem(value, key, to, transaction)
      }
    return ChangePlan.Entry(
      change: SettingChange(
        collection: to, key: key, version: try transaction.version(forKey: key, inCollection: to),
        action: .value(value)),
      before: line(present, key, to, isSealed: isSealed, reader),
      after: line(value, key, to, isSealed: isSealed || wasSealed, reader), problem: problem)
  }
}

/// A value in force, to compare it with another one.
struct ComparedValue: Equatable {
  /// nil if there is none, or it is sealed.
  let value: Value?
  /// The collection of a sealed value: only that of the same item is known to be equal.
  let sealedIn: ByteString?
}

extension SettingJSON {
  func valueInForce(
    _ key: String, _ collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> ComparedValue {
    let declaration = reader.declared.setting(key, in: collection)?.declaration
    switch try reader.effectiveSettings(in: collection, transaction).info(key, by: declaration, transaction).found {
    case .stored(let info)?:
      if info.kind == .sealed || reader.isSealed(info.collection) {
        return ComparedValue(value: nil, sealedIn: ByteString(info.collection))
      }
      return ComparedValue(value: try transaction.value(forKey: key, inCollection: info.collection), sealedIn: nil)
    case .locked(let value, _)?, .managed(let value, _)?, .declared(let value)?:
      return ComparedValue(value: value, sealedIn: nil)
    case nil: return ComparedValue(value: nil, sealedIn: nil)
    }
  }

  /// Whether a setting has another value in an environment than in the collection itself.
  func differs(
    _ row: ColumnRow, environment: String, from base: ComparedValue,
    _ transaction: borrowing some Reading & ~Copyable
  ) throws -> Bool {
    guard row.mayDiffer else { return false }
    return try valueInForce(row.key, "\(row.family.parent)@\(environment)", transaction) != base
  }
}
