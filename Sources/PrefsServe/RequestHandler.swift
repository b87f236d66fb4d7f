import Coffer
import PrefsCommands

/// Carries out the requests of one client.
struct RequestHandler {
  /// An answer, and what is to be done once it is sent.
  struct Answer {
    let json: String
    var then: () -> Void = {}
  }

  let store: ServedStore
  let watches: ClientWatches
  /// Used by the thread that reads the client's requests.
  private let connection: Connection

  init(_ store: ServedStore, _ watches: ClientWatches) throws {
    (self.store, self.watches) = (store, watches)
    connection = try store.database.makeConnection()
  }

  /// - Throws: ``Failure`` or `CofferError`, with nothing changed.
  func answer(_ request: JSONMembers) throws -> Answer {
    // Administrators' files may have changed.
    store.session.files.forget()
    switch try request.text("do") {
    case "get": return Answer(json: try get(request))
    case "list": return Answer(json: try list(request))
    case "snapshot": return Answer(json: try snapshot(request))
    case "describe": return Answer(json: try describe(request))
    case "set": return Answer(json: try set(request, answersConflict: false))
    case "update":
      guard request["ifVersion"] != nil else { throw Failure(.usage, "\"ifVersion\" is missing.") }
      return Answer(json: try set(request, answersConflict: true))
    case "unset": return Answer(json: try unset(request))
    case "transaction": return Answer(json: try transaction(request))
    case "watch": return try watch(request)
    case "unwatch":
      try watches.remove(request.integer("watch"))
      return Answer(json: "{}")
    case let name: throw Failure(.usage, "there is no request \"\(name)\".")
    }
  }

  // MARK: - Reading

  private func reader(_ request: JSONMembers, values: Bool = true) throws -> ItemReader {
    ItemReader(values: values, reveals: try request.flag("reveal"), isUnlocked: store.database.vault.isUnlocked)
  }

  private func place(_ request: JSONMembers) throws -> NamedCollection {
    try request.place(in: store.collection)
  }

  private func get(_ request: JSONMembers) throws -> String {
    let (place, key, reader) = (try place(request), try request.text("key"), try reader(request))
    return try store.unlocking {
      try connection.read { transaction in
        try reader.json(key, transaction.settings(in: place), transaction)
      }
    }
  }

  private func list(_ request: JSONMembers) throws -> String {
    let (place, prefix) = (try place(request), try request.optionalText("prefix") ?? "")
    let reader = try reader(request, values: request.flag("values"))
    let items = try store.unlocking {
      try connection.read { transaction in
        try reader.items(of: transaction.settings(in: place), prefix: prefix, DeclaredKeys(transaction), transaction)
      }
    }
    return JSONText.object([("items", JSONText.array(items))])
  }

  private func snapshot(_ request: JSONMembers) throws -> String {
    guard let names = try request.optionalTexts("collections") else {
      throw Failure(.usage, "\"collections\" is missing.")
    }
    let environment = try request.optionalText("env")
    let places = try names.map { try NamedCollection($0, environment: environment, isVariable: false) }
    let reader = try reader(request)
    let snapshot = try store.unlocking { try connection.read { try StoreSnapshot(of: places, reader, $0) } }
    watches.expect(snapshot.nextExpiry)
    return JSONText.object(snapshot.members)
  }

  private func describe(_ request: JSONMembers) throws -> String {
    let (place, key) = (try place(request), try request.text("key"))
    return try store.unlocking {
      try connection.read { transaction in
        try DescribedSetting(KeyReference(key, in: place.inForce(transaction)), transaction).json
      }
    }
  }

  // MARK: - Writing

  /// Makes changes in one transaction that is on disk when this returns, and has been reported to the client.
  private func write<R>(
    _ request: JSONMembers, _ body: (borrowing ReadWriteTransaction) throws -> R
  ) throws -> R {
    let allowsUndeclared = try request.flag("undeclared")
    let result = try store.unlocking {
      try connection.readWrite { transaction in
        if allowsUndeclared { transaction.session.settingRules?.allowsUndeclared = true }
        return try body(transaction)
      }
    }
    watches.deliver()
    return result
  }

  /// - Parameter answersConflict: Whether the answer to a wrong version is the present item.
  private func set(_ request: JSONMembers, answersConflict: Bool) throws -> String {
    let change = try ChangeRequest(set: request, in: store.collection)
    let (silent, full) = (try reader(request, values: false), try reader(request))
    return try write(request) { transaction in
      if try change.isConflict(transaction) {
        guard answersConflict else { throw try conflict(change, transaction) }
        let present = try full.json(change.key, transaction.settings(in: change.place), transaction)
        return JSONText.object([("conflict", present), ("store", JSONText.quoted(transaction.session.storeID))])
      }
      try change.make(transaction)
      return try silent.json(change.key, transaction.settings(in: change.place), transaction)
    }
  }

  private func unset(_ request: JSONMembers) throws -> String {
    let change = try ChangeRequest(unset: request, in: store.collection)
    let reader = try reader(request, values: false)
    return try write(request) { transaction in
      if try change.isConflict(transaction) { throw try conflict(change, transaction) }
      try change.make(transaction)
      return try reader.json(change.key, transaction.settings(in: change.place), transaction)
    }
  }

  private func transaction(_ request: JSONMembers) throws -> String {
    let checks = try request["checks"] == nil ? [] : request.objects("checks").map(check)
    let changes = try request.objects("changes").map(change)
    guard !changes.isEmpty else { throw Failure(.usage, "\"changes\" is empty.") }
    let reader = try reader(request, values: false)
    let items = try write(request) { transaction in
      for check in checks where try check.isConflict(transaction) {
        throw try conflict(check, transaction)
      }
      for change in changes {
        if try change.isConflict(transaction) { throw try conflict(change, transaction) }
        try change.make(transaction)
      }
      let places = changes.map { SettingPlace($0.key, in: $0.place.name) }
      try transaction.letNamesFollow(Set(places), in: "the changes")
      var items: [String] = []
      for change in changes {
        items.append(try reader.json(change.key, transaction.settings(in: change.place), transaction))
      }
      return items
    }
    return JSONText.object([("items", JSONText.array(items))])
  }

  private func check(_ members: JSONMembers) throws -> ChangeRequest {
    try ChangeRequest(check: members, in: store.collection)
  }

  private func change(_ members: JSONMembers) throws -> ChangeRequest {
    if members["set"] != nil, members["unset"] != nil {
      throw Failure(.usage, "an element of \"changes\" has both \"set\" and \"unset\".")
    }
    guard members["ifVersion"] == nil else {
      throw Failure(.usage, "\"ifVersion\" belongs into the \"set\" or \"unset\" of an element of \"changes\".")
    }
    if let members = try members.object("set") { return try ChangeRequest(set: members, in: store.collection) }
    guard let members = try members.object("unset") else {
      throw Failure(.usage, "an element of \"changes\" has neither \"set\" nor \"unset\".")
    }
    return try ChangeRequest(unset: members, in: store.collection)
  }

  private func conflict(
    _ change: ChangeRequest, _ transaction: borrowing ReadWriteTransaction
  ) throws -> any Error {
    let actual = try transaction.version(forKey: change.key, inCollection: change.place.name)
    guard let expected = change.ifVersion, expected != actual else {
      return Failure(.conflict, "another store has taken the place of the one that was read. Nothing was changed.")
    }
    return CofferError.versionMismatch(
      collection: change.place.name, key: change.key, expected: expected, actual: actual)
  }

  // MARK: - Watching

  private func watch(_ request: JSONMembers) throws -> Answer {
    let filter = try WatchFilter(request)
    let given = try request.optionalText("since").map { text in
      guard let position = CommitPosition(text) else { throw Failure(.usage, "\"since\" is not a position.") }
      return position
    }
    let snapshots = try request.flag("snapshots")
    guard !snapshots || filter.wholeCollections != nil && given == nil else {
      throw Failure(.usage, "\"snapshots\" needs \"collections\", without \"keys\" and \"since\".")
    }
    let reader = try reader(request, values: request.flag("values") || snapshots)
    let position = try connection.read { transaction in
      try filter.check(transaction)
      return try transaction.position()
    }
    let number = try watches.add(filter, values: reader.values, reveals: reader.reveals, snapshots: snapshots)
    let json = JSONText.object([
      ("watch", "\(number)"), ("position", JSONText.quoted(position.description)),
    ])
    return Answer(json: json) { watches.start(number, since: given ?? position) }
  }
}
