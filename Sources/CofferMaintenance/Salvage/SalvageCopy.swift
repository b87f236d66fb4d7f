import Coffer
import CofferStorage

/// The new store of a salvage, filled in one transaction.
///
/// Rows are inserted with SQL, keeping versions and times: an ordinary transaction would assign new ones and could
/// not keep history.
final class SalvageCopy {
  private let connection: SQLiteConnection
  /// The highest number of a commit seen.
  private var lastCommit: CommitNumber = 0
  private var lost: [LostRow] = []
  private var commits: [CommitNumber: ChangeSet] = [:]
  /// The sealed collections in the vault's list.
  private var declared: [String] = []
  /// Whether there are tables for declared settings.
  private var hasDeclarations = false

  private struct LostRow {
    let collection: Int64
    let key: String
    let part: SalvageReport.LostItem.Part
    let reason: String
  }

  /// The numbers of commits after which there can be another one.
  private static let numbers = 0..<ChangeLog.maximumNumber

  private static let cutOff = "a page of its value is damaged"

  init(_ connection: SQLiteConnection) {
    self.connection = connection
  }

  /// Copies all rows found, and reports what was saved and what is lost.
  func fill(from tables: TableSalvage, into report: inout SalvageReport) throws {
    try connection.beginWrite(.full)
    do {
      try tables.run { try take($0) }
      report.damagedPages = tables.damagedPages.map(SalvageReport.DamagedPages.init)
      report.renamedCollections = try nameCollections()
      try declareSealed()
      try loseSealedWithoutVault()
      try addLostItems(to: &report)
      try count(into: &report)
      // Starts above all old versions, so that none is reused.
      try ChangeLog(connection: connection).begin(after: lastCommit)
      try connection.commit()
    } catch {
      try? connection.rollback()
      throw error
    }
  }

  // MARK: Rows

  private func take(_ row: SalvagedRow) throws -> String? {
    guard let table = SalvagedTable(row) else {
      // The schema's other tables and indexes have nothing to save; truncated rows are listed by page.
      let isForeign = row.table.flatMap(SalvagedTable.init(rawValue:)) == nil
      guard isForeign || !row.record.isWhole else { throw MalformedRow() }
      return row.table
    }
    let columns = row.record.columns
    switch table {
    case .items: try takeItem(columns, isWhole: row.record.isWhole)
    case .history: try takeHistoricItem(columns, isWhole: row.record.isWhole)
    case .collections: try takeCollection(columns, id: row.id)
    case .vault: try takeVault(columns, generation: row.id)
    case .changes: try takeCommit(columns, number: row.id)
    case .applications: try takeApplication(columns[0].text, version: columns[1].text)
    case .declarations:
      guard row.record.isWhole else { break }
      try takeDeclaration(columns.map(\.text))
    case .versions, .renames, .behind:
      guard row.record.isWhole else { break }
      try takeVersions(columns, table)
    }
    return table.rawValue
  }

  private func takeItem(_ columns: [RecordColumn], isWhole: Bool) throws {
    let place = try place(columns)
    guard let type = columns[4].integer else { throw MalformedRow() }
    guard isWhole, let data = columns[9].blob else { return lose(place, .item, Self.cutOff) }
    guard SalvagedBytes(type: type, bytes: data).isReadable else {
      return lose(place, .item, "its value does not decode")
    }
    if !SalvagedBytes(type: type, bytes: data).isKnown {
      lose(place, .item, "its value is of a kind that this version cannot read, and was copied as it is")
    }
    var metadata = columns[8].blob
    if let bytes = metadata, !SalvagedBytes(tagged: bytes).isReadable {
      lose(place, .metadata, "it does not decode")
      metadata = nil
    }
    let statement = try connection.statement(
      """
      INSERT INTO items(collection, key, version, modified, type, expires, due, author, metadata, data)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO UPDATE
      SET version = ?3, modified = ?4, type = ?5, expires = ?6, due = ?7, author = ?8, metadata = ?9, data = ?10
      WHERE version < ?3
      """)
    bind(columns.prefix(8), to: statement)
    statement.bind(metadata, at: 9)
    statement.bind(data, at: 10)
    try statement.run()
  }

  private func takeHistoricItem(_ columns: [RecordColumn], isWhole: Bool) throws {
    let place = try place(columns)
    guard let type = columns[6].integer, let ended = columns[4].integer,
      ended >= place.version, Self.numbers.contains(ended)
    else { throw MalformedRow() }
    lastCommit = max(lastCommit, ended)
    guard isWhole, let data = columns[11].blob else { return lose(place, .earlierValue, Self.cutOff) }
    let metadata = columns[10].blob
    guard SalvagedBytes(type: type, bytes: data).isReadable,
      metadata.map({ SalvagedBytes(tagged: $0).isReadable }) ?? true
    else { return lose(place, .earlierValue, "it does not decode") }
    let statement = try connection.statement(
      """
      INSERT INTO history(
        collection, key, version, modified, ended, time, type, expires, author, ended_by, metadata, data)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
      """)
    bind(columns.prefix(10), to: statement)
    statement.bind(metadata, at: 11)
    statement.bind(data, at: 12)
    try statement.run()
  }

  private func takeCollection(_ columns: [RecordColumn], id: Int64?) throws {
    guard let id, id > 0, let name = columns[1].text, var flags = columns[2].integer else {
      throw MalformedRow()
    }
    var (count, age) = (columns[3].integer, columns[4].integer)
    if flags & StoredCollection.Flags.keepsHistory == 0 || (count ?? 0) <= 0 || (age ?? 1) <= 0 {
      flags &= ~StoredCollection.Flags.keepsHistory
      (count, age) = (nil, nil)
    }
    try connection.statement(
      """
      INSERT INTO collections(id, name, flags, history_count, history_age) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO NOTHING
      """, id, name, flags, count, age
    ).run()
  }

  private func takeVault(_ columns: [RecordColumn], generation: Int64?) throws {
    guard let generation, let id = columns[1].blob, let mac = columns[2].blob, let sealed = columns[3].blob,
      let slots = columns[4].blob, let succession = columns[5].blob
    else { throw MalformedRow() }
    let record = try? VaultRecord(
      id: id, generation: generation, mac: mac, sealedCollections: sealed, slots: slots, succession: succession)
    guard let record else { throw MalformedRow() }
    declared += record.sealedCollections
    try connection.statement(
      "INSERT INTO vault VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", generation, id, mac, sealed, slots,
      succession
    ).run()
  }

  private func takeCommit(_ columns: [RecordColumn], number: CommitNumber?) throws {
    guard let number, Self.numbers.contains(number),
      let changes = columns[9].blob.flatMap(ChangeSet.init(packed:))
    else { throw MalformedRow() }
    lastCommit = max(lastCommit, number)
    commits[number] = changes
  }

  /// - Parameter version: nil if there was none, or it is lost.
  private func takeApplication(_ name: String?, version: String?) throws {
    guard let name else { throw MalformedRow() }
    try addDeclarations()
    // Without the fingerprint, so that the program declares its settings again and restores lost ones.
    try connection.statement(
      "INSERT INTO applications VALUES (?1, ?2, x'') ON CONFLICT DO UPDATE SET version = coalesce(?2, version)", name,
      version
    ).run()
  }

  private func addDeclarations() throws {
    if !hasDeclarations { try Schema.addDeclarations(to: connection) }
    hasDeclarations = true
  }

  /// A row of a table that says which versions of programs use which names of settings.
  private func takeVersions(_ columns: [RecordColumn], _ table: SalvagedTable) throws {
    let sql: StaticString
    switch table {
    case .versions:
      // As a list in the form of the table; a row that does not parse would be damage.
      guard columns[0].text != nil, columns[1].text != nil, let fingerprint = columns[2].blob,
        let declarations = columns[5].text, (try? Declaration.list(json: declarations)) != nil
      else { throw MalformedRow() }
      try addDeclarations()
      let statement = try connection.statement("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING")
      bind(columns[...], to: statement)
      statement.bind(fingerprint, at: 3)
      return try statement.run()
    case .renames: sql = "INSERT INTO renames VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    default: sql = "INSERT INTO behind VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    }
    guard columns.allSatisfy({ $0.integer != nil || $0.text != nil }) else { throw MalformedRow() }
    try addDeclarations()
    let statement = try connection.statement(sql)
    bind(columns[...], to: statement)
    try statement.run()
  }

  private func takeDeclaration(_ columns: [String?]) throws {
    guard let collection = columns[0], let key = columns[1], let json = columns[3],
      let declaration = try? Declaration(json: json), ByteString(declaration.name) == ByteString(key),
      ByteString(declaration.collection) == ByteString(collection)
    else { throw MalformedRow() }
    try takeApplication(columns[2], version: nil)
    let statement = try connection.statement("INSERT INTO declarations VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING")
    for (index, column) in zip(Int32(1)..., columns) { statement.bind(column ?? "", at: index) }
    try statement.run()
  }

  /// Binds integers and text, from the first parameter on; other columns stay NULL.
  private func bind(_ columns: ArraySlice<RecordColumn>, to statement: Statement) {
    for (index, column) in zip(Int32(1)..., columns) {
      if let integer = column.integer {
        statement.bind(integer, at: index)
      } else if let text = column.text {
        statement.bind(text, at: index)
      }
    }
  }

  // MARK: Losses

  private typealias Place = (collection: Int64, key: String, version: CommitNumber)

  /// The item that a row of `items` or `history` belongs to.
  private func place(_ columns: [RecordColumn]) throws -> Place {
    guard let collection = columns[0].integer, collection > 0, let key = columns[1].text,
      let version = columns[2].integer, version > 0, Self.numbers.contains(version)
    else { throw MalformedRow() }
    lastCommit = max(lastCommit, version)
    return (collection, key, version)
  }

  private func lose(_ place: Place, _ part: SalvageReport.LostItem.Part, _ reason: String) {
    lost.append(LostRow(collection: place.collection, key: place.key, part: part, reason: reason))
  }

  /// Lists the lost items that rows or the change log name.
  private func addLostItems(to report: inout SalvageReport) throws {
    let isChangeLogWhole = report.damagedPages.allSatisfy { $0.contents != .changeLog && $0.contents != .unknown }
    if isChangeLogWhole { try addItemsOfChangeLog() }
    var names: [Int64: String] = [:]
    try connection.statement("SELECT id, name FROM collections").query { names[$0.integer(0)] = $0.text(1) }
    report.lostItems = lost.map { row in
      SalvageReport.LostItem(
        collection: names[row.collection] ?? "lost-\(row.collection)", key: row.key, part: row.part, reason: row.reason)
    }.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }
  }

  /// Adds items that the change log names, but that were not found.
  private func addItemsOfChangeLog() throws {
    let known = Set(lost.map { LoggedItem(collection: $0.collection, key: ByteString($0.key)) })
    for item in LoggedItem.all(upTo: lastCommit, in: commits).sorted() where !known.contains(item) {
      guard try !has(item.key.string, in: item.collection) else { continue }
      lost.append(
        LostRow(collection: item.collection, key: item.key.string, part: .item, reason: "its page is damaged"))
    }
  }

  private func has(_ key: String, in collection: Int64) throws -> Bool {
    try connection.statement("SELECT 1 FROM items WHERE collection = ? AND key = ?", collection, key).hasRow()
  }

  // MARK: The end

  /// Names collections whose names are lost.
  private func nameCollections() throws -> [String] {
    var ids: [(id: Int64, hasHistory: Bool)] = []
    try connection.statement(
      """
      SELECT collection, max(is_history) FROM (
        SELECT DISTINCT collection, 0 AS is_history FROM items UNION SELECT DISTINCT collection, 1 FROM history)
      WHERE collection NOT IN (SELECT id FROM collections) GROUP BY collection ORDER BY collection
      """
    ).query { ids.append(($0.integer(0), $0.integer(1) > 0)) }
    return try ids.map { id, hasHistory in
      var name = "lost-\(id)"
      while try isTaken(name) { name += "-" }
      let limits = hasHistory ? HistoryLimits(maximumAge: nil) : nil
      try takeCollection(
        [
          .null, .text(Array(name.utf8)[...]), .integer(hasHistory ? StoredCollection.Flags.keepsHistory : 0),
          limits.map { .integer(Int64($0.maximumCount)) } ?? .null, .null,
        ], id: id)
      return name
    }
  }

  /// Restores the sealed flag from the vault's list for collections that lost their row.
  private func declareSealed() throws {
    let statement = try connection.statement(
      "INSERT INTO collections(name, flags) VALUES (?1, 1) ON CONFLICT DO UPDATE SET flags = flags | 1")
    for name in declared {
      statement.bind(name, at: 1)
      try statement.run()
    }
  }

  /// Nothing opens a sealed value without the vault's slots; its bytes are kept.
  private func loseSealedWithoutVault() throws {
    guard try !connection.statement("SELECT 1 FROM vault").hasRow() else { return }
    try connection.statement(
      "SELECT collection, key, version FROM items WHERE type = ?", Int64(Value.Kind.sealed.rawValue)
    ).query { row in
      lose((row.integer(0), row.text(1), row.integer(2)), .item, "it is sealed, and the vault is lost")
    }
  }

  private func isTaken(_ name: String) throws -> Bool {
    try connection.statement("SELECT 1 FROM collections WHERE name = ?", name).hasRow()
  }

  private func count(into report: inout SalvageReport) throws {
    func count(_ sql: StaticString) throws -> Int { try connection.statement(sql).first { Int($0.integer(0)) } ?? 0 }
    report.itemCount = try count("SELECT count(*) FROM items")
    report.historicItemCount = try count("SELECT count(*) FROM history")
    report.collectionCount = try count("SELECT count(*) FROM collections")
  }

}

extension SalvageReport.DamagedPages {
  fileprivate init(_ pages: TableSalvage.DamagedPages) {
    let reason =
      switch pages.damage {
      case .unreadable: "not authentic"
      case .missing: "missing"
      case .malformed: "malformed"
      }
    self.init(numbers: pages.numbers, contents: SalvageReport.Contents(table: pages.table), reason: reason)
  }
}

/// The encoded value of a row.
private struct SalvagedBytes {
  let type: Int64
  let bytes: [UInt8]

  /// Whether this version knows values of the kind.
  var isKnown: Bool { UInt8(exactly: type).flatMap(Value.Kind.init(rawValue:)) != nil }

  init(type: Int64, bytes: [UInt8]) {
    self.type = type
    self.bytes = bytes
  }

  /// Metadata, with its kind before its bytes.
  init(tagged: [UInt8]) {
    type = tagged.first.map(Int64.init) ?? -1
    bytes = Array(tagged.dropFirst())
  }

  /// Whether the bytes decode as a value, or are of a kind that this version does not know.
  var isReadable: Bool {
    guard let code = UInt8(exactly: type) else { return false }
    // A sealed value can be checked only once the vault is unlocked.
    guard let kind = Value.Kind(rawValue: code), kind != .sealed else { return true }
    return kind != .null && (try? Value(StoredValue(kind: kind, bytes: bytes))) != nil
  }
}
