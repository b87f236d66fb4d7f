import CofferStorage

extension Session {
  // MARK: One item

  /// Sets both values of an item.
  func set(_ item: HeldItem, _ key: String, in collection: String) throws {
    // Not through `changing`: its closure, with everything it captures, would be created on both paths.
    if try needsOwnTransaction() { return try inTransaction { try set(item, key, in: collection) } }
    if known.hasRenames { try willChange(key, in: collection) }
    _ = try setAlone(item, key, in: collection)
  }

  /// Sets an item, and leaves other names of the setting as they are.
  ///
  /// - Returns: Whether it changed anything.
  @inline(__always)
  func setAlone(_ item: HeldItem, _ key: String, in collection: String) throws -> Bool {
    try changingInTransaction {
      if let expires = item.dates.expires { expect(expires) }
      let stored = try makeCollection(collection)
      let isObserved = observes(.inserted, in: collection) || observes(.updated, in: collection)
      // Usually no one needs the old item.
      if isObserved || keepsHistory(of: stored) || stored.isSealed || item.isSealed {
        return try set(item, over: try storedItem(key, in: collection), key, in: collection, stored)
      }
      let kind = try items.set(
        item, key, in: stored.id, version: newVersion(), time: transaction.time, isUpdate: known.lastSet == .updated)
      known.lastSet = kind
      if let kind { recordUnobserved(kind, key, in: collection, id: stored.id) }
      return kind != nil
    }
  }

  private func set(
    _ item: HeldItem, over old: HeldItem?, _ key: String, in collection: String, _ stored: StoredCollection
  ) throws -> Bool {
    let new = try fitted(item, key, in: collection, stored, present: old)
    if keepsHistory(of: stored), old == new { return false }
    let kind = try keepingHistory(of: key, in: stored) {
      try items.set(
        new, key, in: stored.id, version: newVersion(), time: transaction.time, author: author(in: stored))
    }
    if let kind { record(kind, key, in: collection, id: stored.id, old: old, new: new) }
    return kind != nil
  }

  /// Changes one value of an existing item.
  ///
  /// - Parameter value: nil to remove metadata.
  /// - Returns: Whether there was anything to change.
  func replace(_ part: ItemPart, _ value: StoredValue?, _ key: String, in collection: String) throws -> Bool {
    if try needsOwnTransaction() { return try inTransaction { try replace(part, value, key, in: collection) } }
    if known.hasRenames { try willChange(key, in: collection) }
    return try replaceAlone(part, value, key, in: collection)
  }

  private func replaceAlone(
    _ part: ItemPart, _ value: StoredValue?, _ key: String, in collection: String
  ) throws -> Bool {
    try changingInTransaction {
      guard let stored = try storedCollection(collection) else { return false }
      let isObserved = observes(.updated, in: collection, part)
      let needsOld = isObserved || keepsHistory(of: stored) || stored.isSealed
      let old = needsOld ? try storedItem(key, in: collection) : nil
      // There is nothing to replace, and so nothing to seal.
      if stored.isSealed, old == nil { return false }
      let present = part == .object ? old?.object.stored : old?.metadata
      let value = try value.map { try fitted($0, part, key, in: collection, stored, present: present) }
      let new = old.map { old in
        part == .object
          ? old.with(object: value.map(HeldValue.init) ?? old.object)
          : old.with(metadata: value)
      }
      if keepsHistory(of: stored), old == new { return false }
      let isChanged = try keepingHistory(of: key, in: stored) {
        try items.replace(
          part, value, key, in: stored.id, version: newVersion(), time: transaction.time, author: author(in: stored))
      }
      guard isChanged else { return false }
      record(.updated, key, in: collection, id: stored.id, part, old: old, new: new)
      return true
    }
  }

  /// The author to store with a collection's items: nil if it keeps no history.
  private func author(in collection: StoredCollection) -> String? {
    keepsHistory(of: collection) ? authorText : nil
  }

  /// Reports a key as changed, without changing it.
  package func touch(_ part: ItemPart?, _ key: String, in collection: String) throws {
    try changing {
      guard let id = try collectionID(collection), let item = try storedItem(key, in: collection) else { return }
      record(.touched, key, in: collection, id: id, part, old: item, new: item)
    }
  }

  @discardableResult
  func remove(_ key: String, in collection: String) throws -> Bool {
    if try needsOwnTransaction() { return try inTransaction { try remove(key, in: collection) } }
    if known.hasRenames { try willChange(key, in: collection) }
    return try removeAlone(key, in: collection)
  }

  /// Removes an item, and leaves other names of the setting as they are.
  ///
  /// - Returns: Whether there was one.
  func removeAlone(_ key: String, in collection: String) throws -> Bool {
    try changingInTransaction {
      guard let stored = try storedCollection(collection) else { return false }
      let old = observes(.removed, in: collection) ? try storedItem(key, in: collection) : nil
      let isRemoved = try keepingHistory(of: key, in: stored) { try items.remove(key, in: stored.id) }
      guard isRemoved else { return false }
      record(.removed, key, in: collection, id: stored.id, old: old)
      return true
    }
  }

  private func expect(_ expiry: Int64) {
    known.expiry = known.expiry.map { min($0, expiry) }
  }

  /// Removes an expired item, and records that in the change log.
  func expire(_ expired: Items.ExpiredItem) throws {
    let (key, collection) = (expired.key, expired.collection)
    try changing {
      guard let stored = try storedCollection(collection) else { return }
      let old = observes(.removed, in: collection) ? try items.item(key, in: stored, at: .min) : nil
      let isRemoved = try keepingHistory(of: key, in: stored, expired: expired.expires) {
        try items.remove(key, in: stored.id)
      }
      if isRemoved { record(.removed, key, in: collection, id: stored.id, old: old, expired: expired.expires) }
    }
  }

  // MARK: Many items

  func remove(_ keys: some Sequence<String>, in collection: String) throws {
    try changingTogether { for key in keys { try apply(.removed, key, in: collection) } }
  }

  /// Removes all items of a collection, like removing them one by one: history keeps them, and the rest stays.
  func removeAll(in collection: String) throws {
    try changingTogether {
      // Even if the vault's list disagrees about it: no value is shown, and none stays.
      guard let stored = try collections.collection(named: collection), try items.areAny(in: stored.id) else { return }
      try removeAll(in: collection, stored)
    }
  }

  private func removeAll(in collection: String, _ stored: StoredCollection) throws {
    try willClear(collection)
    try recordClearing(of: collection, stored)
    try keepHistoryOfAll(in: stored)
    try items.removeAll(in: stored.id)
  }

  /// The same for all collections.
  package func removeAllInAllCollections() throws {
    try changingTogether {
      let all = try collections.all().map(\.name).compactMap { name in
        try collections.collection(named: name).map { (name, $0) }
      }.filter { try items.areAny(in: $1.id) }
      guard !all.isEmpty else { return }
      for (name, stored) in all { try removeAll(in: name, stored) }
      recordClearingOfAll()
    }
  }

  /// Erases a collection, with every trace of its keys; an environment and a sealed one stay, empty.
  func erase(_ collection: String) throws {
    try changingTogether {
      guard let stored = try collections.collection(named: collection) else { return }
      try willClear(collection)
      try recordClearing(of: collection, stored, isErased: true)
      try collections.erase(stored.id, isEnvironment: CollectionEnvironment(collection: collection) != nil)
      try changeLog.forget(stored.id)
      note(.erased(collection))
    }
  }

  /// The same for all collections.
  package func eraseEverything() throws {
    try changingTogether {
      let all = try collections.all()
      guard !all.isEmpty else { return }
      for (name, stored) in all {
        try willClear(name)
        try recordClearing(of: name, stored, isErased: true)
      }
      try collections.eraseAll()
      recordClearingOfAll(isErased: true)
      try changeLog.forget(nil)
      note(.erasedEverything)
    }
  }

  /// Reports the removal of a collection to observers, key by key.
  private func recordClearing(of collection: String, _ stored: StoredCollection, isErased: Bool = false) throws {
    let isObserved = observes(.removed, in: collection)
    var keys: [String] = []
    if isObserved || transaction.isFeedObserved {
      let cursor = Cursor(
        connection: connection, collection: stored.id, isSealed: stored.isSealed, range: .all,
        columns: isObserved ? .rows : .keys, at: transaction.time)
      while try cursor.advance() {
        let key = cursor.key
        keys.append(key)
        if isObserved { record(.removed, key, in: collection, id: stored.id, old: try cursor.item()) }
      }
    }
    recordClearing(of: collection, id: stored.id, keys: keys, isErased: isErased)
  }

  // MARK: Without a transaction

  /// Runs `body` with each operation committed separately.
  package func autocommitting<Result>(cancellation: Cancellation? = nil, _ body: () throws -> Result) throws -> Result {
    try requireWritable()
    try cancellation?.check()
    let earlier = (call.mode, call.autocommitCancellation)
    (call.mode, call.autocommitCancellation) = (.autocommit, cancellation)
    defer { (call.mode, call.autocommitCancellation) = earlier }
    return try body()
  }

  /// Whether each operation is committed separately.
  var isAutocommitting: Bool { call.mode == .autocommit }

  /// Runs `body` in the current transaction, or in one of its own in autocommit call.mode.
  package func inTransaction<Result>(_ body: () throws -> Result) throws -> Result {
    guard call.mode == .autocommit else { return try body() }
    return try write(.full, cancellation: call.autocommitCancellation, body)
  }

  // MARK: The whole database

  /// Rebuilds the database; see https://www.sqlite.org/lang_vacuum.html.
  ///
  /// - Parameter onPage: Called for each page that is read or written.
  func vacuum(onPage: @escaping () -> Void = {}) throws {
    try requireWritable()
    try core.gate.pass(timeout: core.options.busyTimeout, lending: owner?.lending) {
      try requireWritable()
      try CofferError.translating { try connection.vacuum(onPage: onPage) }
    }
  }
}
