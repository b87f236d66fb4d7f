import Coffer
import PrefsCommands

extension PageStore {
  // MARK: - Columns

  /// A part of the settings of families, with a cell for each of their collections, and for what administrators give.
  func columns(_ request: PageRequest) throws -> String {
    let filter = try request.filter()
    let part = try part(of: request)
    let onlyDifferent = try request.flag("onlyDifferent")
    let (families, total, found, state) = withIndex { index in
      let all = index.columns(filter)
      let rows = onlyDifferent ? all.filter { $0.difference != .none } : all
      // Where the index does not know enough, the rows before the part have to be looked at, too.
      let isKnown = !onlyDifferent || rows.allSatisfy { $0.difference == .some }
      let found = index.shown(isKnown ? rows[part.clamped(to: rows.indices)] : rows[...], of: filter)
      return (
        index.families(of: filter.collection), isKnown ? rows.count : nil, found, ListState(&index, filter)
      )
    }
    let json = SettingJSON(reader: state.reader, scope: scope)
    let columns = Set(families.flatMap(\.members).map(\.column)).sorted()
    return try connection.read { transaction in
      var (shown, count) = (found[...], total ?? 0)
      if total == nil {
        let different = try found.filter { try json.differences($0, transaction).contains(true) }
        (shown, count) = (different[part.clamped(to: different.indices)], different.count)
      }
      let rows = try shown.map { try json.row($0, columns, transaction) }
      return JSONText.object(
        [
          ("total", "\(count)"), ("count", "\(count)"), ("rows", JSONText.array(rows)),
          ("columns", JSONText.array(columns.map(\.json))),
          // Columns have the full names of collections where there is one family.
          ("base", filter.collection == nil ? "null" : families.first.map { JSONText.quoted($0.base) } ?? "null"),
        ] + (try members(state, transaction)))
    }
  }

  // MARK: - Copying across

  /// What copying a setting, or all that are set in a collection, to another one would change, for ``apply(_:)``.
  func previewCopy(_ request: PageRequest) throws -> String {
    try requireWritable()
    let (from, to) = (try request.text("from"), try request.text("to"))
    let key = try request.optionalText("key")
    let isGiven = try request.flag("administrator")
    for collection in [from, to] { try scope.require(collection) }
    session.files.forget()
    let reader = json.reader
    let plan = try unlocking {
      try connection.read { transaction in
        let effective = try transaction.effectiveSettings(in: from)
        let keys =
          try key.map { [$0] } ?? (isGiven ? effective.managedKeys : transaction.allKeys(inCollection: from))
        let entries = try keys.map { key in
          let value =
            try isGiven ? effective.given(key)?.value : effective.item(key, transaction).found?.value
          return try copy(value, key, from, isSealed: !isGiven, to, reader, transaction)
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

  /// - Parameter isSealed: Whether the value is sealed where the collection is; that of an administrator is not.
  /// - Returns: nil if the other collection has that value itself.
  private func copy(
    _ value: Value?, _ key: String, _ from: String, isSealed mayBeSealed: Bool, _ to: String, _ reader: SettingReader,
    _ transaction: borrowing ReadTransaction
  ) throws -> ChangePlan.Entry? {
    guard let value else {
      throw Failure(.notFound, "\(KeyText.of(key, in: from)) has no value to copy. Nothing was changed.")
    }
    let present = try transaction.value(forKey: key, inCollection: to)
    if let present, try present.stored == value.stored { return nil }
    let isSealed = try transaction.isSealed(collection: to)
    let wasSealed = try mayBeSealed && transaction.isSealed(collection: from)
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
        collection: to, key: key, version: try transaction.storeVersion(forKey: key, inCollection: to),
        action: .value(value)),
      before: line(present, key, to, isSealed: isSealed, reader),
      after: line(value, key, to, isSealed: isSealed || wasSealed, reader), problem: problem)
  }
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

  /// Whether each member of a family has another value than the base; an administrator gives none for most settings.
  func differences(
    _ row: ShownColumnRow, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [Bool] {
    guard row.differences.contains(.unknown) else { return row.differences.map { $0 == .some } }
    let base = try valueInForce(row.key, row.family.base, transaction)
    var differs: [Bool] = []
    for (member, difference) in zip(row.family.members, row.differences) {
      switch difference {
      case .none: differs.append(false)
      case .some: differs.append(true)
      case .unknown where member.column.isAdministrators:
        let given = try reader.effectiveSettings(in: member.collection, transaction).given(row.key)
        differs.append(given.map { ComparedValue(value: $0.value, sealedIn: nil) != base } ?? false)
      case .unknown: differs.append(try valueInForce(row.key, member.collection, transaction) != base)
      }
    }
    return differs
  }

  /// A row with a cell for each column; null where there is nothing.
  func row(
    _ row: ShownColumnRow, _ columns: [Column], _ transaction: borrowing some Reading & ~Copyable
  ) throws -> String {
    let differs = try differences(row, transaction)
    var cells: [Column: String] = [:]
    for (member, differs) in zip(row.family.members, differs) {
      let setting =
        member.column.isAdministrators
        ? try given(row.key, member.collection, transaction) : try self.row(row.key, member.collection, transaction)
      cells[member.column] = setting.map {
        JSONText.object([("differs", differs ? "true" : "false"), ("setting", $0)])
      }
    }
    let declaration = reader.declared.setting(row.key, in: row.family.base)?.declaration
    return JSONText.object([
      ("collection", JSONText.quoted(row.family.base)), ("key", JSONText.quoted(row.key)),
      ("summary", JSONText.quoted(declaration?.summary ?? "")),
      ("cells", JSONText.array(columns.map { cells[$0] ?? "null" })),
    ])
  }
}

extension EffectiveSettings {
  /// What an administrator gives for a key: a locked value, or a default.
  func given(_ key: String) -> Managed? { locked(key) ?? managedDefault(key) }
}
