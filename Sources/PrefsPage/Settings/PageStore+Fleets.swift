import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PageStore {
  /// The fleets of the store, their members, and the conflicts of the settings that the page shows.
  func fleets(_ request: PageRequest) throws -> String {
    let reader = json.reader
    let (fleets, conflicts) = try connection.read { transaction in
      let tables = FleetTransaction(session: transaction.session)
      let fleets = try tables.fleets()
      let conflicts = try fleets.flatMap { fleet in
        try self.conflicts(of: fleet, tables).map { try json($0, of: fleet, reader, transaction) }
      }
      return (fleets.map(FleetText.json), conflicts)
    }
    // Only the program that syncs can read who the members are.
    let members = fleets.isEmpty ? nil : FleetProgram.members(of: session)
    return JSONText.object([
      ("fleets", JSONText.array(fleets)), ("conflicts", JSONText.array(conflicts)), ("members", members ?? "null"),
    ])
  }

  /// How many conflicts there are of the settings that the page shows; nil if the store belongs to no fleet.
  func conflictCount(_ transaction: borrowing ReadTransaction) throws -> Int? {
    let tables = FleetTransaction(session: transaction.session)
    let fleets = try tables.fleets()
    guard !fleets.isEmpty else { return nil }
    return try fleets.reduce(0) { try $0 + conflicts(of: $1, tables).count }
  }

  private func conflicts(of fleet: StoredFleet, _ tables: FleetTransaction) throws -> [StoredConflict] {
    guard let id = fleet.id else { return [] }
    return try tables.conflicts(of: id).filter { scope.contains($0.collection) }
  }

  private func json(
    _ conflict: StoredConflict, of fleet: StoredFleet, _ reader: SettingReader, _ transaction: borrowing ReadTransaction
  ) throws -> String {
    let (key, collection) = (conflict.key, conflict.collection)
    // A collection that was sealed since shows nothing.
    let isSealed = try transaction.isSealed(collection: collection)
    var (present, lost): (Value?, Value?)
    if !isSealed {
      present = try transaction.value(forKey: key, inCollection: collection)
      lost = try transaction.history(forKey: key, inCollection: collection)
        .first { $0.version == conflict.version }?.value
    }
    return JSONText.object([
      ("store", "\(transaction.store)"), ("fleet", "\(fleet.id ?? 0)"), ("conflict", "\(conflict.id)"),
      ("collection", JSONText.quoted(collection)), ("key", JSONText.quoted(key)),
      ("isDeclaration", conflict.declaration == nil ? "false" : "true"),
      ("time", JSONText.quoted(Timestamp.text(Date(milliseconds: conflict.time)))),
      ("winner", conflict.winner.isEmpty ? "null" : JSONText.quoted(conflict.winner)),
      ("loser", JSONText.quoted(conflict.loser)),
      ("present", line(present, key, collection, isSealed: isSealed, reader).map(JSONText.quoted) ?? "null"),
      ("lost", line(lost, key, collection, isSealed: isSealed, reader).map(JSONText.quoted) ?? "null"),
    ])
  }

  /// Removes a conflict from the list, and sets the losing value again if the request says so.
  func resolve(_ request: PageRequest) throws -> String {
    guard let store = try request.integer("store"), let fleet = try request.integer("fleet"),
      let id = try request.integer("conflict")
    else { throw Failure(.usage, "\"store\", \"fleet\" or \"conflict\" is missing.") }
    let restores = try request.flag("restore")
    try requireWritable()
    session.files.forget()
    let entries = try unlocking {
      try connection.readWrite { transaction in
        let tables = FleetTransaction(session: transaction.session)
        guard transaction.store == Int(store),
          let conflict = try tables.conflicts(of: fleet).first(where: { $0.id == id })
        else { throw Failure(.notFound, "this conflict was resolved in the meantime.") }
        let (key, collection) = (conflict.key, conflict.collection)
        try scope.require(collection)
        var entries: [UndoRecord.Entry]?
        if restores {
          try transaction.requireUnlocked(forKey: key, inCollection: collection)
          let before = try snapshot([(collection, key)], transaction)
          try transaction.restoreObject(forKey: key, inCollection: collection, version: conflict.version)
          entries = try left(before, transaction)
        }
        try tables.removeConflict(id, of: fleet)
        return entries
      }
    }
    return try entries.map { try answer($0) } ?? "{}"
  }
}

/// Fleets as the page shows them.
enum FleetText {
  static func json(_ fleet: StoredFleet) -> String { JSONText.object(members(of: fleet)) }

  /// Where a setting goes; empty if no fleet shares it.
  static func json(
    ofSetting key: String, in collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> String {
    let tables = FleetTransaction(session: transaction.session)
    let version = try transaction.version(forKey: key, inCollection: collection)
    let fleets = try tables.fleets().compactMap { fleet -> String? in
      guard let id = fleet.id, try tables.shares(collection, in: id) else { return nil }
      let record = try tables.record(key, in: collection, of: id)
      let waits = (record?.version ?? 0) != version
      return JSONText.object(members(of: fleet) + [("waits", waits ? "true" : "false")])
    }
    return JSONText.array(fleets)
  }

  private static func members(of fleet: StoredFleet) -> [(name: String, json: String)] {
    [
      ("carrier", JSONText.quoted(fleet.carrier)),
      ("synced", fleet.synced > 0 ? JSONText.quoted(Timestamp.text(Date(milliseconds: fleet.synced))) : "null"),
    ]
  }
}
