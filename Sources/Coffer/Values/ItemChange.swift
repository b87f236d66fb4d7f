/// One of an item's two values.
package enum ItemPart: Sendable, Hashable {
  /// The object.
  case object
  /// The metadata.
  case metadata
}

/// The kind of change to a key.
public enum ChangeKind: Sendable, Hashable, CaseIterable {
  /// It was added.
  case inserted
  /// Its object, its metadata, or both changed.
  case updated
  /// It was removed.
  case removed
  /// It was reported as changed, without a change.
  case touched

  /// This change of a key and a later one, as one; nil if the second takes the first back.
  func followed(by later: ChangeKind) -> ChangeKind? {
    switch (self, later) {
    case (.inserted, .removed): nil
    case (.inserted, _): .inserted
    case (.removed, .inserted): .updated
    case (let kind, .touched): kind
    default: later
    }
  }
}

/// How far changes reach beyond the keys that are listed.
public enum ChangeScope: Sendable, Hashable {
  /// Only the listed keys changed.
  case keys
  /// Any key of these collections may have changed: they were cleared, or too many keys changed to list them.
  case collections([String])
  /// Any key of any collection may have changed.
  case everything

  init(wholeCollections: some Collection<ByteString>) {
    self = wholeCollections.isEmpty ? .keys : .collections(Set(wholeCollections).sorted().map(\.string))
  }

  /// The collections of which any key may have changed, if not all.
  var wholeCollections: [String] {
    if case .collections(let names) = self { names } else { [] }
  }

  /// This scope and a later one.
  func union(_ later: ChangeScope) -> ChangeScope {
    if self == .everything || later == .everything { return .everything }
    return ChangeScope(wholeCollections: (wholeCollections + later.wholeCollections).map { ByteString($0) })
  }
}
