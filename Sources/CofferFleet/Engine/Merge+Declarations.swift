import Coffer

extension Merge {
  /// Merges a declaration.
  ///
  /// What programs of this host declare stays as it is: they have it compiled in. It is decided which declaration holds here, and
  /// whether this host's has to be pushed.
  ///
  /// - Returns: The new state of its row.
  mutating func merge(
    declaration record: Record, over row: StoredRecord?, isShared: Bool
  ) throws -> (version: Int64, declaration: StoredDeclaration) {
    let (key, collection, theirs) = (record.key, record.collection, record.declaration)
    let own = try transaction.ownDeclaration(key, in: collection)
    let earlier = row?.declaration
    func state(_ content: SharedDeclaration?, own: String?, isInStep: Bool) -> (Int64, StoredDeclaration) {
      (
        isInStep ? StoredRecord.inStep : StoredRecord.notInStep,
        StoredDeclaration(content: content, own: own, isShared: isShared)
      )
    }
    guard isShared else { return state(theirs, own: earlier?.own, isInStep: true) }
    guard
      let mine = try transaction.localDeclaration(
        key, in: collection, of: fleet, besides: members.collections, times())
    else {
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
    let isOurs = try mine.content.map { try oursWin($0, theirs, mine.modified, row, record) } ?? false
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

  private func oursWin(
    _ ours: SharedDeclaration, _ theirs: SharedDeclaration, _ modified: Int64, _ row: StoredRecord?, _ record: Record
  ) throws -> Bool {
    switch rule(record.collection) {
    case .theirsWins: return false
    case .oursWins: return true
    case .laterWins:
      if record.author == me.id { return true }
      // As in one store: an older version of a program does not replace the declarations of a newer one.
      if ours.isOlder(than: theirs) { return false }
      if theirs.isOlder(than: ours) { return true }
      return oursWin(modified, row, over: record)
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
