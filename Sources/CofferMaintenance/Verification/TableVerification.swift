import Coffer
import CofferStorage

/// Checks that the tables contain what Coffer writes: anyone with the store's key could have written anything.
struct TableVerification {
  private(set) var problems: [VerificationProblem] = []
  private(set) var itemCount = 0
  private(set) var historicItemCount = 0
  private(set) var changeLog: ChangeLogReport?

  /// The collections in the store.
  private var collections: [Int64: Collection] = [:]
  private var lastCommit: CommitNumber = 0
  /// The change log.
  private var commits: [CommitNumber: ChangeSet] = [:]
  /// The number of the vault's key.
  private var vaultGeneration: UInt32?

  private struct Collection {
    let name: String
    let isSealed: Bool
    /// Whether it is an environment that was removed.
    let isRemoved: Bool
    /// Whether all of its flags are known; the contents of a collection with newer flags cannot be checked.
    let isReadable: Bool
  }

  /// - Parameters:
  ///   - record: What is remembered of the store outside of it, read before the current transaction began.
  ///   - progress: Called with the fraction done, from 0 to 1.
  mutating func run(_ session: Session, against record: [UInt8]?, progress: (Double) -> Void) throws {
    try CofferError.translating {
      try session.connection.statement("PRAGMA integrity_check").query { row in
        if row.text(0) != "ok" { note("SQLite: \(row.text(0)).") }
      }
      if let problem = try Schema.problem(session.connection) { note(damaged: "schema", problem) }
      progress(0.2)
      try checkChangeLog(session)
      try reading(.changeLog) { tables in
        let report = ChangeLogReport(try session.checkLog(against: record))
        tables.problems += report.problems
        tables.changeLog = report
      }
      try checkCollections(session)
      try checkVault(session)
      try checkDeclarations(session)
      try reading { _ in try FleetTransaction(session: session).verify() }
      let total = try session.count(in: nil)
      try checkItems(session) { progress(0.2 + 0.8 * Double($0) / Double(max(total, 1))) }
      try checkHistory(session)
      try checkLoggedItems(session)
    }
  }

  private mutating func note(_ sentence: String, _ kind: VerificationProblem.Kind = .tables) {
    problems.append(VerificationProblem(kind, sentence))
  }

  private mutating func note(damaged part: String, _ reason: String) {
    note("The \(part) is damaged: \(reason).")
  }

  /// Runs `body`, which reads a part of the store like the commands that use it, or prepares a change like those that make
  /// one, and notes what it throws.
  private mutating func reading(
    _ kind: VerificationProblem.Kind = .tables, _ body: (inout Self) throws -> Void
  ) throws {
    do {
      try CofferError.translating { try body(&self) }
    } catch let error as CofferError {
      guard let sentence = error.contentsProblem else { throw error }
      note(sentence, kind)
    }
  }

  // MARK: Tables

  private mutating func checkChangeLog(_ session: Session) throws {
    lastCommit = ChangeLog.maximumNumber
    try reading { tables in
      tables.lastCommit = try session.changeLog.lastNumber()
      try session.changeLog.checkRoom()
    }
    try session.connection.statement("SELECT sequence, keys, total FROM changes ORDER BY sequence").query { row in
      let numbers = 0...ChangeLog.maximumNumber
      let changes = ChangeSet(packed: row.bytes(1))
      if !numbers.contains(row.integer(0)) || !numbers.contains(row.integer(2)) || changes == nil {
        note("Commit \(row.integer(0)) in the change log does not parse.", .changeLog)
      }
      commits[row.integer(0)] = changes
    }
  }

  private mutating func checkCollections(_ session: Session) throws {
    let statement = try session.connection.statement(
      "SELECT id, name, flags, history_count, history_age FROM collections ORDER BY name")
    try statement.query { row in
      let (id, flags) = (row.integer(0), row.integer(2))
      let name = name(row, 1, of: "collection")
      var isReadable = true
      do {
        try StoredCollection.check(flags: flags, of: name)
      } catch let error as StorageError {
        note("\(CofferError(error))")
        isReadable = false
      }
      collections[id] = Collection(
        name: name, isSealed: flags & StoredCollection.Flags.isSealed != 0,
        isRemoved: flags & StoredCollection.Flags.isRemoved != 0, isReadable: isReadable)
      if collections[id]?.isRemoved ?? false, CollectionEnvironment(collection: name) == nil {
        note("The collection \"\(name)\" is marked as a removed environment, which it is not.")
      }
      if id <= 0 { note("The collection \"\(name)\" has the ID \(id).") }
      let keepsHistory = flags & StoredCollection.Flags.keepsHistory != 0
      let hasLimits = row.integer(3) > 0 && (row.isNull(4) || row.integer(4) > 0)
      if keepsHistory ? !hasLimits : !row.isNull(3) || !row.isNull(4) {
        note("The limits of the history of \"\(name)\" are invalid.")
      }
    }
    try reading { _ in try Collections(connection: session.connection).checkNextID() }
  }

  private mutating func checkVault(_ session: Session) throws {
    let count = try session.connection.statement("SELECT count(*) FROM vault").first { $0.integer(0) } ?? 0
    if count > 1 { note("The store has \(count) vaults.") }
    var record: VaultRecord?
    var isReadable = false
    try reading { tables in
      record = try session.vaultRecord()
      isReadable = true
      guard let record else { return }
      for slot in record.slots where !slot.stretching.isWithinBounds {
        tables.note(
          "Slot \(slot.id) of the vault is never tried: its costs are out of bounds (\(slot.stretching.name)).")
      }
      _ = try record.nextGeneration()
      guard session.core.vault.isUnlocked else { return }
      try session.followVault()
      do { _ = try session.core.vault.key(authenticating: record) } catch CofferError.vaultLocked {}
    }
    guard isReadable else { return }
    vaultGeneration = record?.generation
    for declaration in try session.wrongDeclarations(by: record) { note(damaged: declaration.part, declaration.reason) }
  }

  /// What a command that needs a declaration would stop at.
  private mutating func checkDeclarations(_ session: Session) throws {
    for case .damaged(let part, let reason) in try DeclarationTable(connection: session.connection).problems() {
      note(damaged: part, reason)
    }
  }

  private mutating func checkItems(_ session: Session, progress: (Int) -> Void) throws {
    let statement = try session.connection.statement(
      "SELECT type, data, metadata, expires, due, collection, key, version FROM items ORDER BY collection, key")
    try statement.query { row in
      guard isReadable(row) else { return }
      check(row, "The value", session)
      if let environment = collections[row.integer(5)], environment.isRemoved {
        note("The environment \"\(environment.name)\" was removed, but has a value for \"\(row.text(6))\".")
      }
      itemCount += 1
      if itemCount % 1000 == 0 { progress(itemCount) }
    }
  }

  private mutating func checkHistory(_ session: Session) throws {
    let statement = try session.connection.statement(
      """
      SELECT type, data, metadata, expires, NULL, collection, key, version, ended FROM history
      ORDER BY collection, key, version
      """)
    try statement.query { row in
      guard isReadable(row) else { return }
      check(row, "An earlier value", session)
      historicItemCount += 1
      if row.integer(8) <= row.integer(7) || row.integer(8) > lastCommit {
        note(
          "An earlier value for \"\(row.text(6))\" ended with commit \(row.integer(8)), which is impossible.")
      }
    }
  }

  /// Items that went without a line in the change log.
  private mutating func checkLoggedItems(_ session: Session) throws {
    for item in LoggedItem.all(upTo: lastCommit, in: commits).sorted() {
      let statement = try session.connection.statement(
        "SELECT 1 FROM items WHERE collection = ? AND key = ?", item.collection, item.key.string)
      if try !statement.hasRow() {
        let collection = collections[item.collection]?.name ?? "\(item.collection)"
        note(
          "\"\(item.key.string)\" in \"\(collection)\" has no value, and the change log no line that it was removed.")
      }
    }
  }

  // MARK: Rows

  /// Whether this version can read the collection of a row.
  private func isReadable(_ row: borrowing Statement.Row) -> Bool { collections[row.integer(5)]?.isReadable ?? true }

  /// A row of `items` or `history`.
  private mutating func check(_ row: borrowing Statement.Row, _ what: String, _ session: Session) {
    let key = name(row, 6, of: "key")
    guard let collection = collections[row.integer(5)] else {
      return note("\(what) for \"\(key)\" refers to collection \(row.integer(5)), which does not exist.")
    }
    let place = "\(what) for \"\(key)\" in \"\(collection.name)\""
    if row.integer(7) <= 0 || row.integer(7) > lastCommit {
      note("\(place) refers to commit \(row.integer(7)), which does not exist.")
    }
    if let problem = problem(row, key, collection, session) { note("\(place) \(problem).") }
  }

  /// The problem with an item, as the end of a sentence; nil when it decodes.
  ///
  /// Sealed values are opened if the vault is unlocked; their pages were authenticated in any case.
  private func problem(
    _ row: borrowing Statement.Row, _ key: String, _ collection: Collection, _ session: Session
  ) -> String? {
    do {
      let item = try Items.item(row, isSealed: collection.isSealed)
      for (part, value) in [(ItemPart.object, item.object.stored), (.metadata, item.metadata)] {
        guard let value else { continue }
        if value.kind == .sealed, let generation = value.bytes.withUnsafeBytes(SealedBytes.generation),
          let vaultGeneration, generation != vaultGeneration
        {
          return "is damaged: it is sealed under key \(generation) of the vault, which has key \(vaultGeneration)"
        }
        // If one part is sealed and the vault locked, the other part may still turn out to be invalid.
        do { _ = try session.core.value(part, value, key, in: collection.name) } catch CofferError.vaultLocked {}
      }
      return nil
    } catch CofferError.damaged(_, let reason) {
      return "is damaged: \(reason)"
    } catch StorageError.damaged(_, let reason) {
      return "is damaged: \(reason)"
    } catch {
      return "does not decode"
    }
  }

  /// The text of a column, which must be UTF-8: a key of other bytes could never be requested.
  private mutating func name(_ row: borrowing Statement.Row, _ column: Int32, of what: String) -> String {
    let name = row.text(column)
    if row.withBytes(column, { String(validating: $0) }) == nil {
      note("The name of the \(what) \"\(name)\" is not UTF-8.")
    }
    return name
  }
}
