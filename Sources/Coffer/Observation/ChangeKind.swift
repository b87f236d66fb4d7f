/// What became of a key.
public enum ChangeKind: Sendable, Hashable {
  /// It was not there before.
  case inserted
  /// Its object, its metadata, or both changed.
  case updated
  /// It is gone.
  case removed
  /// Nothing changed; it was announced as changed.
  case touched
}

/// Who made a change.
public enum ChangeOrigin: Sendable, Hashable {
  /// The proxy whose changes these are; a commit has another origin.
  case proxy
  /// A connection of this database, be it another proxy's or one that the program writes on; compare with
  /// ``Connection/id``.
  case connection(Connection.ID)
  /// A connection of this database; which one, nobody asked to remember when the change was made.
  case thisDatabase
  /// Another process, or another `Database` of this one.
  case elsewhere
  /// More than one; a slow consumer gets several changes as one.
  case several
}
