import Coffer

/// An item that the change log says is set.
struct LoggedItem: Hashable, Comparable {
  /// The ID of its collection.
  let collection: Int64
  let key: ByteString

  /// The items that the newest commits set and did not remove.
  ///
  /// A missing commit may have removed anything, so the search ends at the first gap.
  static func all(upTo number: CommitNumber, in commits: [CommitNumber: ChangeSet]) -> Set<LoggedItem> {
    var set: Set<LoggedItem> = []
    var seen: Set<LoggedItem> = []
    var closed: Set<Int64> = []
    var number = number
    while let commit = commits[number] {
      for (id, change) in commit.collections where !closed.contains(id) {
        for (key, keyChange) in change.keys {
          let item = LoggedItem(collection: id, key: key)
          if seen.insert(item).inserted, keyChange.kind != .removed { set.insert(item) }
        }
        // Earlier items may have been removed by clearing the collection, or by an unlisted change.
        if change.isCleared || change.isUnlisted { closed.insert(id) }
      }
      if commit.isAllCleared { break }
      number -= 1
    }
    return set
  }

  static func < (a: LoggedItem, b: LoggedItem) -> Bool { (a.collection, a.key) < (b.collection, b.key) }
}
