import Coffer

extension Reading where Self: ~Copyable {
  /// The values in force in a collection that a command names.
  borrowing func effectiveSettings(in place: NamedCollection) throws -> EffectiveSettings {
    try effectiveSettings(of: place.name, parent: place.parent)
  }

  /// The item in force for a key.
  borrowing func itemInForce(_ reference: KeyReference) throws -> EffectiveSettings.Search<Item> {
    try effectiveSettings(in: reference.place).item(reference.key, self)
  }

  /// The value of a setting that was found without reading it; nil if it no longer exists.
  package borrowing func value(of found: EffectiveSettings.Found<ItemInfo>, forKey key: String) throws -> Value? {
    switch found {
    case .stored(let info): try value(forKey: key, inCollection: info.collection)
    case .locked(let value, _), .managed(let value, _), .declared(let value): value
    }
  }

  /// Sentences about removed keys of a collection whose values stay in force.
  ///
  /// - Parameter isExport: Whether they were not removed, but written elsewhere.
  borrowing func notesOfLocks(_ removed: [String], in collection: String, isExport: Bool = false) throws -> [String] {
    // Bad files must not prevent removing.
    try effectiveSettingsIfReadable(of: collection)?.notesOfLocks(removed, self, isExport: isExport) ?? []
  }
}

extension EffectiveSettings.Search {
  /// A sentence about each bad value.
  package var notes: [String] { notes(isAll: true) }

  /// - Parameter isAll: Whether all values were looked at, and not those of an environment alone.
  func notes(isAll: Bool) -> [String] {
    problems.map { "\($0); programs skip this value\(isBad && isAll ? ", and there is no other." : ".")" }
  }

  /// The same for a JSON object; nil if there are none.
  package var problem: String? { problems.isEmpty ? nil : problems.map(\.description).joined(separator: "; ") }
}

extension EffectiveSettings.Found<Item> {
  package var value: Value {
    switch self {
    case .stored(let item): item.value
    case .locked(let value, _), .managed(let value, _), .declared(let value): value
    }
  }
}

extension EffectiveSettings.Found {
  var isLocked: Bool { if case .locked = self { true } else { false } }

  /// The origin of the value, as `get` shows it.
  ///
  /// - Parameter collection: Returns the collection of what is stored.
  package func origin(in parent: String?, _ collection: (Stored) -> String) -> String {
    switch self {
    case .locked(_, let place), .managed(_, let place): return place.description
    case .stored(let stored):
      let name = collection(stored)
      return parent.map { $0.utf8.elementsEqual(name.utf8) } ?? false ? "parent:\(name)" : "store"
    case .declared: return "default"
    }
  }
}

extension CommandSession {
  /// Refuses to set what an administrator has locked, before creating a store or prompting for a value.
  ///
  /// - Throws: `CofferError.lockedByAdministrator`.
  func requireUnlocked(_ reference: KeyReference) throws {
    // Which setting it is, the store says.
    if try !reference.isCertain && exists() { return }
    let known = try EffectiveSettings(of: reference.collection, files)
    // Which other files bind it depends on who declares it, which the store says.
    if try known.surelyLocked(reference.key) != nil || !exists() { try known.requireUnlocked(reference.key) }
  }

  /// The value in force for a key; reports bad ones with higher precedence.
  ///
  /// - Parameters:
  ///   - reference: The key; resolved afterwards.
  ///   - isNeeded: Whether its absence is an error.
  func valueInForce(
    of reference: inout KeyReference, isNeeded: Bool = true
  ) throws -> EffectiveSettings.Search<Item> {
    let search = try search(for: &reference, isNeeded: isNeeded)
    for note in search.notes { options.note(note) }
    return search
  }

  private func search(for reference: inout KeyReference, isNeeded: Bool) throws -> EffectiveSettings.Search<Item> {
    let known = try EffectiveSettings(of: reference.collection, parent: reference.place.parent, files)
    let (key, place) = (reference.key, reference.place)
    if reference.isCertain, let locked = known.surelyLocked(key) {
      // A locked value needs neither the store nor its key. Only the store knows whether it is good, and whether there is such an
      // environment; it is opened for that if no prompt is needed.
      do {
        if let session = unasking {
          return try session.read { transaction in
            try transaction.itemInForce(KeyReference(key, in: try place.inForce(transaction)))
          }
        }
      } catch let failure as Failure where failure.status == .notFound {
        throw failure
      } catch {}
      return EffectiveSettings.Search(found: .locked(locked.value, locked.place))
    }
    do {
      return try read { transaction in
        reference = try reference.resolved(transaction)
        let search = try transaction.itemInForce(reference)
        if search.found == nil {
          if isNeeded { throw reference.notFound(in: transaction) }
          if let note = try reference.absenceNote(transaction) { options.note(note) }
        }
        return search
      }
    } catch CofferError.storeNotFound {
      // Before the first `set` there is no store, and every key has its default.
      if let locked = known.locked(key) { return EffectiveSettings.Search(found: .locked(locked.value, locked.place)) }
      if let given = known.managedDefault(key) {
        return EffectiveSettings.Search(found: .managed(given.value, given.place))
      }
      if isNeeded { throw CofferError.storeNotFound(path: path) }
      return EffectiveSettings.Search(found: nil)
    }
  }

  /// The same session without prompts and messages.
  private var unasking: CommandSession? {
    var options = options
    (options.noInput, options.quiet, options.verbose) = (true, true, false)
    return try? CommandSession(options)
  }
}
