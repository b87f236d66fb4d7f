import Coffer

/// The value that programs see for a key, and its origin: an administrator's lock, the stored value, an administrator's default,
/// or the declared default, in this order.
enum ValueInForce {
  case stored(Item)
  case managed(Value, ManagedSettings.Place)
  case declared(Value)

  var value: Value {
    switch self {
    case .stored(let item): item.value
    case .managed(let value, _), .declared(let value): value
    }
  }
}

extension KeyReference {
  /// - Parameter managed: The administrator's settings for its collection.
  func valueInForce(
    _ transaction: borrowing some Reading & ~Copyable, _ managed: ManagedSettings
  ) throws -> ValueInForce? {
    if let locked = managed.locked(forKey: key) { return .managed(locked.value, locked.place) }
    if let item = try shownItem(transaction) { return .stored(item) }
    if let given = managed.defaultValue(forKey: key) { return .managed(given.value, given.place) }
    return try transaction.declaration(forKey: key, inCollection: collection)?.defaultValue.map { .declared($0) }
  }
}

extension CommandSession {
  /// The value in force for a key.
  ///
  /// - Parameter isNeeded: Whether its absence is an error.
  func valueInForce(of reference: KeyReference, isNeeded: Bool = true) throws -> ValueInForce? {
    let managed = try reference.managed()
    // A locked value needs no store, nor its key.
    if let locked = managed.locked(forKey: reference.key) { return .managed(locked.value, locked.place) }
    do {
      return try read { transaction in
        let found = try reference.valueInForce(transaction, managed)
        guard found != nil || !isNeeded else { throw reference.notFound(in: transaction) }
        return found
      }
    } catch CofferError.storeNotFound {
      // Before the first `set` there is no store, and every key has its default.
      if let given = managed.defaultValue(forKey: reference.key) { return .managed(given.value, given.place) }
      if isNeeded { throw CofferError.storeNotFound(path: path) }
      return nil
    }
  }
}
