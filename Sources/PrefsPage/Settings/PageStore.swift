import Coffer
import CofferMaintenance
import PrefsCommands
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The operations of the page on its store; each answer is JSON.
final class PageStore: Sendable {
  let database: Database
  let isReadOnly: Bool
  /// Whether secrets are shown on request.
  let mayReveal: Bool
  let scope: CollectionScope
  /// Reads and writes for requests, one at a time.
  let connection: Connection
  private let index: Mutex<SettingsIndex>
  private let files = Mutex<(collections: [ByteString], task: Task<Void, Never>)?>(nil)
  let undoing = Mutex(UndoStack())
  /// How the user looks at the list.
  let view = Mutex((order: ListArrangement.Order.name, folded: Set<ListArrangement.Section>()))
  /// The changes that a page has been shown and may make.
  let plans = Mutex(ChangePlans())
  /// Called with what can be undone now, as JSON.
  let undoChanged: @Sendable (String) -> Void
  let session: CommandSession
  /// The setting that a new page opens.
  private let opens: (collection: String, key: String)?
  let vault: PageVault

  /// - Throws: If the store cannot be read.
  init(
    _ database: Database, session: CommandSession, scope: CollectionScope, isReadOnly: Bool, mayReveal: Bool = true,
    vault: PageVault, opening opens: (collection: String, key: String)? = nil,
    undoChanged: @escaping @Sendable (String) -> Void = { _ in }
  ) throws {
    self.database = database
    self.opens = opens
    self.undoChanged = undoChanged
    self.session = session
    self.vault = vault
    self.mayReveal = mayReveal
    self.scope = scope
    self.isReadOnly = isReadOnly || database.options.isReadOnly
    connection = try database.makeConnection()
    index = Mutex(try connection.read { try SettingsIndex(scope, $0) })
  }

  deinit { files.withLock { $0?.task.cancel() } }

  // MARK: - Following

  /// Calls `handler` with each commit, as JSON, once it is in the list.
  func follow(_ handler: @escaping @Sendable (String) -> Void) throws -> CommitRegistration {
    let follower = try database.makeConnection()
    followFiles(handler)
    return try database.onCommit(
      { [weak self] commit in
        guard let self else { return }
        // An error is reported to the next reader.
        try? index.withLock { index in try follower.read { try index.apply(commit, $0) } }
        handler(text(of: commit))
        followFiles(handler)
      },
      onTrouble: { [options = session.options] error in
        if let error { options.note("changes cannot be read at present: \(error)") }
        // The pages fetch again, and show the same.
        handler(CommitText.everything)
      })
  }

  /// Follows the administrators' files of the present collections.
  private func followFiles(_ handler: @escaping @Sendable (String) -> Void) {
    let collections = index.withLock { $0.reader.collections }
    files.withLock { files in
      guard files?.collections != collections,
        let followed = try? FollowedSettings(of: collections.map(\.string), in: database)
      else { return }
      files?.task.cancel()
      let task = Task { [weak self] in
        for await _ in followed.changes() { self?.readFiles(handler) }
      }
      files = (collections, task)
    }
  }

  /// Reads administrators' files, and the values in force, again.
  private func readFiles(_ handler: (String) -> Void) {
    session.files.forget()
    try? index.withLock { index in try connection.read { try index.rebuild($0) } }
    handler(CommitText.everything)
  }

  /// The maximum number of keys that are listed.
  private static let namedKeys = 500

  private func text(of commit: Commit) -> String {
    let reader = json.reader
    let keys = commit.changedCollections.flatMap { collection in
      let keys = commit.changedKeys(inCollection: collection)
      return reader.showing(collection).filter(scope.contains).flatMap { shown in
        keys.map { JSONText.array([shown, $0].map(JSONText.quoted)) }
      }
    }
    let isListed = !keys.isEmpty && keys.count <= Self.namedKeys && commit.scope == .keys && commit.actions.isEmpty
    return JSONText.object([
      ("snapshot", "\(commit.number)"), ("keys", isListed ? JSONText.array(keys) : "null"),
      ("author", commit.author.map(ChangeText.json) ?? "null"),
    ])
  }

  // MARK: - Reading

  /// The maximum number of rows in an answer.
  private static let rowLimit: Int64 = 500

  /// A part of the list, with the counts for the sidebar.
  func list(_ request: PageRequest) throws -> String {
    let arrangement = try request.arrangement()
    // A collection with nothing beside it is listed as usual.
    let hasColumns = withIndex { !$0.families(of: arrangement.filter.collection).isEmpty }
    if try request.flag("columns"), hasColumns { return try columns(request) }
    let part = try part(of: request)
    let (slice, total, count, state) = index.withLock { index in
      let matches = index.matches(arrangement.filter)
      let slice: [ListRow]
      let count: Int
      if arrangement.order == .name {
        slice = matches[part.clamped(to: matches.indices)].map { .setting(index.settings[$0].name) }
        count = matches.count
      } else {
        let list = index.arranged(arrangement)
        slice = list.rows[part.clamped(to: list.rows.indices)].map { row in
          switch row {
          case .setting(let place): .setting(index.settings[place].name)
          case .section(let place): .section(list.sections[place])
          }
        }
        count = list.rows.count
      }
      return (slice, matches.count, count, ListState(&index, arrangement.filter))
    }
    let json = SettingJSON(reader: state.reader, scope: scope)
    return try connection.read { transaction in
      let rows = try slice.map { row in
        switch row {
        case .setting(let name): try json.row(name.key, name.collection, transaction)
        case .section(let section): section.json
        }
      }
      return JSONText.object(
        [("total", "\(total)"), ("count", "\(count)"), ("rows", JSONText.array(rows))]
          + (try members(state, transaction)))
    }
  }

  private enum ListRow {
    case setting((collection: String, key: String))
    case section(ArrangedList.Section)
  }

  /// What a request wants of a list.
  func part(of request: PageRequest) throws -> Range<Int> {
    let limit = Int(min(Self.rowLimit, max(0, try request.integer("limit") ?? 100)))
    let offset = min(Int.max - limit, Int(clamping: max(0, try request.integer("offset") ?? 0)))
    return offset..<offset + limit
  }

  /// What every answer with a list has besides its rows.
  struct ListState {
    let revision: Int
    let reader: SettingReader
    fileprivate let counts: [(name: String, count: Int)]
    fileprivate let problem: String?
    fileprivate let isComparable: Bool

    init(_ index: inout SettingsIndex, _ filter: SettingFilter) {
      (revision, reader, problem) = (index.revision, index.reader, filter.problem)
      counts = index.counts(filter)
      isComparable = !index.families(of: filter.collection).isEmpty
    }
  }

  func withIndex<R>(_ body: (inout SettingsIndex) throws -> R) rethrows -> R { try index.withLock { try body(&$0) } }

  func members(
    _ state: ListState, _ transaction: borrowing ReadTransaction
  ) throws -> [(name: String, json: String)] {
    [
      ("revision", "\(state.revision)"),
      (
        "collections",
        JSONText.array(
          state.counts.map { name, count in
            JSONText.object([
              ("name", JSONText.quoted(name)), ("count", "\(count)"),
              ("sealed", state.reader.isSealed(name) ? "true" : "false"),
            ])
          })
      ),
      ("unlocked", vault.isUnlocked ? "true" : "false"), ("problem", state.problem.map(JSONText.quoted) ?? "null"),
      ("comparable", state.isComparable ? "true" : "false"),
      ("conflicts", try conflictCount(transaction).map { "\($0)" } ?? "null"),
    ]
  }

  /// One setting with all its details; of one that is to be made, the environment must be there.
  func setting(_ request: PageRequest) throws -> String {
    let (collection, key) = try name(in: request)
    return try connection.read { transaction in
      if try request.flag("isNew") { try requireEnvironment(collection, transaction) }
      return try json.whole(key, collection, transaction)
    }
  }

  var json: SettingJSON { SettingJSON(reader: index.withLock { $0.reader }, scope: scope) }

  /// The setting that a request names.
  func name(in request: PageRequest) throws -> (collection: String, key: String) {
    let name = (collection: try request.text("collection"), key: try request.text("key"))
    try scope.require(name.collection)
    return name
  }

  /// A secret or a sealed value in plaintext.
  func reveal(_ request: PageRequest) throws -> String {
    guard mayReveal else {
      throw Failure(.refused, "this page is read-only, and shows secrets only if it was started with --reveal.")
    }
    let (collection, key) = try name(in: request)
    let reader = json.reader
    let found = try unlocking {
      try connection.read { try reader.effectiveSettings(in: collection, $0).item(key, $0) }
    }
    guard let value = found.found?.value else { throw Failure(.notFound, "the setting no longer exists.") }
    let revealed = ValueText.revealed(value)
    return JSONText.object([
      ("kind", JSONText.quoted(value.kind.name)), ("text", JSONText.quoted(try EditedText.text(of: revealed))),
    ])
  }

  /// The report of `prefs doctor`, and the fleets that the store belongs to.
  func examination() throws -> String {
    let fleets = try connection.readFleets { try $0.fleets() }.map(FleetText.json)
    return JSONText.object([
      ("report", FindingsText(findings: try Findings(of: database)).json), ("fleets", JSONText.array(fleets)),
    ])
  }

  /// What the page shows in its header.
  func about() -> String {
    JSONText.object([
      ("store", JSONText.quoted(database.path)), ("readOnly", isReadOnly ? "true" : "false"),
      ("version", JSONText.quoted(PrefsTool.version)), ("mayReveal", mayReveal ? "true" : "false"),
      ("vaultKeyFile", vault.hasKeyFile ? "true" : "false"), ("undoing", undoing.withLock { $0.json }),
      ("view", viewJSON),
      (
        "opens",
        opens.map {
          JSONText.object([("collection", JSONText.quoted($0.collection)), ("key", JSONText.quoted($0.key))])
        } ?? "null"
      ),
    ])
  }

  /// The names of the stored settings that a filter accepts.
  func settings(_ filter: SettingFilter) -> [(collection: String, key: String)] {
    index.withLock { index in
      let matches = index.matches(filter)
      return matches.map { index.settings[$0] }.filter { $0.own != nil }.map(\.name)
    }
  }

  // MARK: - The vault

  /// Runs `body`, with the vault unlocked if `prefs unlock` keeps its key.
  func unlocking<R>(_ body: () throws -> R) throws -> R {
    try vault.unlockWithKeptKey()
    return try body()
  }
}

/// Commits as the pages get them.
enum CommitText {
  /// Anything may have changed.
  static let everything = JSONText.object([("snapshot", "null"), ("keys", "null"), ("author", "null")])
}
