#if COFFER_BUS
  import Coffer
  import PrefsCommands

  #if canImport(FoundationEssentials)
    import FoundationEssentials
  #else
    import Foundation
  #endif

  /// The store behind the service: its collections, followed commit by commit.
  ///
  /// The keyring's own collection is always there. Others are named in the collection `NAME.collections`, by `collection/ID`, and have the
  /// name `NAME.ID`; aliases are there as `alias/NAME`.
  final class ServiceStore {
    let database: Database
    let session: CommandSession
    let kept: KeptVault
    /// The name of the main collection.
    let name: String
    private(set) var collections: [StoredCollection] = []
    private(set) var aliases: [String: String] = [:]
    private let connection: Connection
    private var position: CommitPosition?

    static let mainID = "keyring"

    init(_ database: Database, _ session: CommandSession, _ kept: KeptVault, named name: String) throws {
      (self.database, self.session, self.kept, self.name) = (database, session, kept, name)
      connection = try database.makeConnection()
    }

    private var register: String { name + ".collections" }

    var hasVault: Bool { database.vault.wasFound }

    var isUnlocked: Bool { database.vault.isUnlocked }

    /// Before a secret is read or set: the vault may have to be locked, or be new.
    func checkVault() throws {
      if !hasVault { try read { try $0.session.lookForVault() } }
      if hasVault { kept.check() }
    }

    /// Once a secret was read or set.
    func noteUse() { if hasVault { kept.noteUse() } }

    // MARK: - Transactions

    func read<R>(_ body: (borrowing ReadTransaction) throws -> R) throws -> R {
      try CommandSession.whileImageChanges { try connection.read(body) }
    }

    func write<R>(_ body: (borrowing ReadWriteTransaction) throws -> R) throws -> R { try connection.readWrite(body) }

    // MARK: - Following

    /// Reads what has changed since the last call, by whatever program.
    func follow() throws -> [ServiceEvent] {
      try read { transaction in
        let now = try transaction.position()
        guard now != position else { return [] }
        // Another program may have made it.
        try transaction.session.lookForVault()
        let commits = try position.flatMap { try transaction.changes(since: $0) }
        position = now
        guard let commits else {
          var events = try reloadRegister(transaction)
          for collection in collections { events += try collection.reload(transaction) }
          return events
        }
        var events: [ServiceEvent] = []
        if commits.contains(where: { $0.concerns(collection: register) }) { events += try reloadRegister(transaction) }
        for collection in collections {
          let concerned = commits.filter { $0.concerns(collection: collection.name) }
          if concerned.contains(where: { $0.isCleared(collection.name) || $0.isUnlisted(collection.name) }) {
            events += try collection.reload(transaction)
          } else {
            let keys = concerned.flatMap { $0.changedKeys(inCollection: collection.name) }
            events += try collection.reload(Set(keys.map { ByteString($0) }), transaction)
          }
        }
        return events
      }
    }

    /// Whether what is in memory is what the transaction sees.
    func isUpToDate(_ transaction: borrowing ReadWriteTransaction) throws -> Bool {
      try transaction.position() == position
    }

    /// Reads which collections and aliases there are.
    private func reloadRegister(_ transaction: borrowing ReadTransaction) throws -> [ServiceEvent] {
      var labels: [String: (label: String, created: Date)] = [:]
      aliases = [:]
      for key in try transaction.allKeys(inCollection: register) {
        let value = try transaction.value(forKey: key, inCollection: register)
        if key.hasPrefix("alias/"), case .string(let id)? = value {
          aliases[String(key.dropFirst(6))] = id
        } else if key.hasPrefix("collection/"), case .dictionary(let members)? = value,
          case .string(let label)? = members["label"], case .date(let created)? = members["created"]
        {
          labels[String(key.dropFirst(11))] = (label, created)
        }
      }
      if labels[Self.mainID] == nil { labels[Self.mainID] = ("Keyring", Date(timeIntervalSince1970: 0)) }
      var events: [ServiceEvent] = []
      for collection in collections {
        guard let (label, created) = labels[collection.id] else {
          events.append(.collectionDeleted(collection.id))
          continue
        }
        if collection.label != label { events.append(.collectionChanged(collection.id)) }
        (collection.label, collection.created) = (label, created)
      }
      collections.removeAll { labels[$0.id] == nil }
      let known = Set(collections.map(\.id))
      for (id, (label, created)) in labels.sorted(by: { $0.key < $1.key }) where !known.contains(id) && Self.isID(id) {
        let collection = StoredCollection(
          id, name: id == Self.mainID ? name : "\(name).\(id)", label: label, created: created, self)
        _ = try collection.reload(transaction)
        collections.append(collection)
        events.append(.collectionCreated(id))
      }
      return events
    }

    /// Whether it can be a part of a path.
    private static func isID(_ id: String) -> Bool {
      !id.isEmpty
        && id.utf8.allSatisfy {
          (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95
        }
    }

    // MARK: - Collections

    func collection(_ id: String) -> StoredCollection? { collections.first { $0.id == id } }

    /// The collection of an alias; nil if there is none.
    func collection(alias: String) -> StoredCollection? {
      collection(aliases[alias] ?? (alias == "default" ? Self.mainID : ""))
    }

    /// Makes a collection, sealed if there is a vault.
    ///
    /// - Throws: `CofferError`, with nothing changed.
    func makeCollection(_ label: String, alias: String) throws -> String {
      if hasVault, !isUnlocked { throw CofferError.vaultLocked(collection: nil) }
      var stem = label.lowercased().utf8.map { (48...57).contains($0) || (97...122).contains($0) ? $0 : 95 }
      if stem.isEmpty { stem = Array("collection".utf8) }
      let first = String(decoding: stem.prefix(40), as: UTF8.self)
      let names = [first] + (2...10_000).map { "\(first)_\($0)" }
      let taken = Set(collections.map(\.id) + [MemoryCollection.session, "collections"])
      guard let id = names.first(where: { !taken.contains($0) }) else {
        throw BusFailure.limits("there are too many collections of this name")
      }
      if hasVault { try database.seal(collection: "\(name).\(id)") }
      try write { transaction in
        try transaction.setObject(Self.value(label, Date()), forKey: "collection/\(id)", inCollection: register)
        if !alias.isEmpty { try transaction.setObject(id, forKey: "alias/\(alias)", inCollection: register) }
      }
      return id
    }

    private static func value(_ label: String, _ created: Date) -> Value {
      .dictionary(["label": .string(label), "created": .date(created)])
    }

    func setLabel(_ label: String, of collection: StoredCollection) throws {
      try write {
        try $0.setObject(
          Self.value(label, collection.created), forKey: "collection/\(collection.id)", inCollection: register)
      }
    }

    /// Removes a collection with its items; of the main one only the items.
    func remove(_ collection: StoredCollection) throws {
      if collection.isLocked { throw CofferError.vaultLocked(collection: collection.name) }
      let names = aliases.filter { $0.value == collection.id }.keys.map { "alias/\($0)" }
      try write { transaction in
        try transaction.removeAllObjects(inCollection: collection.name)
        try transaction.removeObjects(forKeys: names + ["collection/\(collection.id)"], inCollection: register)
      }
    }

    /// - Parameter id: The collection that has the alias from now on; nil for none.
    func setAlias(_ alias: String, to id: String?) throws {
      try write { try $0.setObject(id, forKey: "alias/\(alias)", inCollection: register) }
    }
  }
#endif
