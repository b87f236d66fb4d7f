import Coffer

extension Merge {
  /// Takes the record of a declaration.
  mutating func take(declaration record: Record, over row: StoredRecord?, as new: inout StoredRecord) throws {
    if let row, record.isSameChange(row), record.declaration == row.declaration?.content {
      (new.version, new.declaration) = (row.version, row.declaration)
    } else if let row, try isUnseen(record, row) {
      (new.version, new.declaration) = try reconcile(declaration: record, over: row)
      new.raise(above: row)
    } else {
      (new.version, new.declaration) = try merge(declaration: record, over: row)
    }
  }

  /// Resolves a declaration that differs after an accepted rollback or fork: neither side has seen the other.
  private mutating func reconcile(
    declaration record: Record, over row: StoredRecord
  ) throws -> (version: CommitNumber, declaration: StoredDeclaration) {
    let (key, collection) = (record.key, record.collection)
    // What a program of this host has declared since is compared as usual.
    guard let known = row.declaration, let ours = known.content, ours != record.declaration,
      try localDeclaration(key, collection)?.isLost ?? true
    else { return try merge(declaration: record, over: row) }
    let own = try transaction.ownDeclaration(key, in: collection)?.json
    if isLeft(to: row, false) {
      note(record.declaration ?? ours)
      return (StoredRecord.inStep, StoredDeclaration(content: record.declaration, own: own, isShared: true))
    }
    let lost = StoredRecord.lost(StoredRecord.inStep)
    guard let theirs = record.declaration else {
      // A declaration beats a removal, as long as a program here makes it.
      if own != nil || record.clock < row.hybridClock { return (lost, known) }
      note(ours)
      return (StoredRecord.inStep, StoredDeclaration(content: nil, own: nil, isShared: true))
    }
    let isOurs = isKept(ours, over: theirs, isEarlier: isEarlier(record, than: row.hybridClock), collection)
    // Most probably what the carrier was restored to.
    let isOlder = record.counter < UInt64(clamping: row.counter) && record.clock < row.hybridClock
    if !isOlder, isConflict(ours, theirs, key, collection) {
      let (us, them) = (name(MemberID(bytes: row.author)), name(record.author))
      try addConflict(
        key, collection, 0, winner: isOurs ? us : them, loser: isOurs ? them : us, losing: isOurs ? theirs : ours)
    }
    if isOurs { return (lost, known) }
    note(theirs)
    return (StoredRecord.inStep, StoredDeclaration(content: theirs, own: own, isShared: true))
  }

  private mutating func localDeclaration(_ key: String, _ collection: String) throws -> LocalDeclaration? {
    try transaction.localDeclaration(key, in: collection, of: fleet, besides: agreed, times())
  }

  /// Merges a declaration.
  ///
  /// What programs of this host declare stays as it is: they have it compiled in. It is decided which declaration holds here, and
  /// whether this host's has to be pushed.
  ///
  /// - Returns: The new state of its row.
  private mutating func merge(
    declaration record: Record, over row: StoredRecord?
  ) throws -> (version: CommitNumber, declaration: StoredDeclaration) {
    let (key, collection, theirs) = (record.key, record.collection, record.declaration)
    let own = try transaction.ownDeclaration(key, in: collection)
    let earlier = row?.declaration
    func state(_ content: SharedDeclaration?, own: String?, isInStep: Bool) -> (Int64, StoredDeclaration) {
      (
        isInStep ? StoredRecord.inStep : StoredRecord.notInStep,
        StoredDeclaration(content: content, own: own, isShared: true)
      )
    }
    guard let mine = try localDeclaration(key, collection) else {
      // What a program of this host declares is declared, even if another host has stopped.
      let isDeclaredHere = theirs == nil && own != nil
      if theirs != earlier?.content { note(theirs ?? earlier?.content) }
      // A program that runs here disagrees.
      if let own, let theirs, record.author != me.id, isConflict(own, theirs, key, collection) {
        try addConflict(key, collection, 0, winner: name(record.author), loser: me.name, losing: own)
      }
      return state(theirs, own: own?.json, isInStep: !isDeclaredHere)
    }
    guard mine.content != theirs else { return state(theirs, own: own?.json, isInStep: true) }
    // A declaration beats a removal.
    guard let theirs else { return state(mine.content, own: earlier?.own, isInStep: false) }
    let isOurs =
      mine.content.map { content in
        record.author == me.id && rule(collection) == .laterWins
          || isKept(content, over: theirs, isEarlier: oursWin(mine.modified, row, over: record), collection)
      } ?? false
    if let content = mine.content, record.author != me.id, isConflict(content, theirs, key, collection) {
      let them = name(record.author)
      try addConflict(
        key, collection, 0, winner: isOurs ? me.name : them, loser: isOurs ? them : me.name,
        losing: isOurs ? theirs : content)
    }
    if isOurs { return state(mine.content, own: earlier?.own, isInStep: false) }
    note(theirs)
    return state(theirs, own: own?.json, isInStep: true)
  }

  private mutating func times() throws -> FleetTransaction.DeclarationTimes {
    let times = try declarationTimes ?? transaction.declarationTimes()
    declarationTimes = times
    return times
  }

  private mutating func note(_ taken: SharedDeclaration?) {
    changeCount += 1
    if let taken { declaringApplications.insert(taken.application) }
  }

  /// Whether a declaration holds rather than one from elsewhere.
  private func isKept(
    _ ours: SharedDeclaration, over theirs: SharedDeclaration, isEarlier: Bool, _ collection: String
  ) -> Bool {
    switch rule(collection) {
    case .theirsWins: return false
    case .oursWins: return true
    case .laterWins:
      // As in one store: an older version of a program does not replace the declarations of a newer one.
      if ours.isOlder(than: theirs) { return false }
      if theirs.isOlder(than: ours) { return true }
      return isEarlier
    }
  }

  /// Whether it matters which of two declarations holds, and no version of the program decides that.
  private func isConflict(
    _ ours: SharedDeclaration, _ theirs: SharedDeclaration, _ key: String, _ collection: String
  ) -> Bool {
    if ours.isOlder(than: theirs) || theirs.isOlder(than: ours) { return false }
    guard let one = ours.declaration(of: key, in: collection), let other = theirs.declaration(of: key, in: collection)
    else { return true }
    return !one.agrees(with: other)
  }
}
