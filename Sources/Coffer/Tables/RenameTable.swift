import CofferStorage

/// A renamed setting whose former name is kept: a version of the program that knows only that name may still run.
package struct Rename: Sendable {
  package let current: SettingPlace
  package let former: SettingPlace
  /// The application that declares it.
  package let application: String
  /// Whether suites have a part of the collection for themselves.
  let hasSuites: Bool
  /// Whether only a program that declares it can convert the values.
  package let isConverted: Bool
  /// When no version that declares the former name may run any more, in milliseconds since 1970.
  package let until: Int64
  /// Whether a fleet keeps the former name, for as long as it does, and no program of this host.
  package var isOfFleet = false

  /// The collection that has one name's items where `collection` has the other's; nil if it does not.
  func counterpart(of collection: String, _ own: SettingPlace, _ other: SettingPlace) -> String? {
    let environment = CollectionEnvironment(collection: collection)
    let base = environment?.parent ?? collection
    let suffix = environment.map { "@\($0.name)" } ?? ""
    if ByteString(base) == own.collection { return other.collection.string + suffix }
    let part = "/\(own.collection.string)".utf8
    guard hasSuites, base.utf8.count > part.count, base.utf8.suffix(part.count).elementsEqual(part) else { return nil }
    let prefix = String(decoding: base.utf8.dropLast(part.count - 1), as: UTF8.self)
    return prefix + other.collection.string + suffix
  }

  /// Each pair of places that the setting has in some collections: its own, suites' parts of it, environments.
  func places(among collections: [String]) -> Set<Pair> {
    var pairs: Set<Pair> = []
    for name in collections {
      if let other = counterpart(of: name, current, former) {
        pairs.insert(Pair(current: current.moved(to: name), former: former.moved(to: other)))
      }
      if let other = counterpart(of: name, former, current) {
        pairs.insert(Pair(current: current.moved(to: other), former: former.moved(to: name)))
      }
    }
    return pairs
  }

  /// The same, kept until another time.
  func until(_ until: Int64) -> Rename {
    Rename(
      current: current, former: former, application: application, hasSuites: hasSuites, isConverted: isConverted,
      until: until)
  }

  struct Pair: Hashable {
    let current: SettingPlace
    let former: SettingPlace
  }

  /// The declared names.
  var names: Pair { Pair(current: current, former: former) }
}

extension Rename {
  /// One that a declaration states, whether or not its former name is kept.
  init(
    _ former: Declaration.FormerName, of declaration: Declaration, by application: String, isConverted: Bool? = nil,
    until: Int64 = 0, isOfFleet: Bool = false
  ) {
    self.init(
      current: declaration.place, former: former.place, application: application,
      // No suite has a part of the application's own collection.
      hasSuites: declaration.hasSuites(of: application) && former.place.collection != ByteString(application),
      isConverted: isConverted ?? former.isConverted, until: until, isOfFleet: isOfFleet)
  }

  /// Whether a place has one of the names, also in an environment and in a suite's part of the collection.
  package func names(_ place: SettingPlace) -> Bool {
    let collection = place.collection.string
    return place.key == current.key && former(besides: collection) != nil
      || place.key == former.key && current(besides: collection) != nil
  }

  /// Whether a collection, which may be an environment or a suite's part, has one of the names.
  package func isIn(_ collection: String) -> Bool {
    former(besides: collection) != nil || current(besides: collection) != nil
  }

  /// The former name of the setting of a collection, which may be an environment or a suite's part.
  func former(besides collection: String) -> SettingPlace? {
    counterpart(of: collection, current, former).map { former.moved(to: $0) }
  }

  /// The name now of what has the former one in a collection.
  package func current(besides collection: String) -> SettingPlace? {
    counterpart(of: collection, former, current).map { current.moved(to: $0) }
  }
}

extension SettingPlace {
  fileprivate func moved(to collection: String) -> SettingPlace { SettingPlace(key.string, in: collection) }
}

/// All renames whose former names are kept.
struct Renames: Sendable {
  let all: [Rename]
  private let byKey: [ByteString: [Int]]

  init(_ all: [Rename] = []) {
    self.all = all
    var byKey: [ByteString: [Int]] = [:]
    for (index, rename) in all.enumerated() {
      byKey[rename.current.key, default: []].append(index)
      if rename.former.key != rename.current.key { byKey[rename.former.key, default: []].append(index) }
    }
    self.byKey = byKey
  }

  /// Another name of an item.
  struct Link {
    let rename: Rename
    /// Whether the other name is the current one.
    let isForward: Bool
    let other: SettingPlace
  }

  /// The other names of an item; usually none.
  func links(of key: String, in collection: String) -> [Link] {
    guard let indexes = byKey[ByteString(key)] else { return [] }
    return indexes.flatMap { index -> [Link] in
      let rename = all[index]
      func link(_ own: SettingPlace, _ other: SettingPlace, isForward: Bool) -> Link? {
        guard own.key == ByteString(key), let name = rename.counterpart(of: collection, own, other) else { return nil }
        return Link(rename: rename, isForward: isForward, other: other.moved(to: name))
      }
      return [
        link(rename.current, rename.former, isForward: false), link(rename.former, rename.current, isForward: true),
      ].compactMap { $0 }
    }
  }

  /// The positions of the renames from or to a declared name.
  func declared(_ name: SettingPlace) -> [Int] {
    byKey[name.key, default: []].filter { all[$0].current == name || all[$0].former == name }
  }

  func links(of place: SettingPlace) -> [Link] { links(of: place.key.string, in: place.collection.string) }

  /// All other names of the setting that an item is one of, also names of those.
  func otherNames(of place: SettingPlace) -> [SettingPlace] {
    var (seen, others, open): (Set<SettingPlace>, [SettingPlace], [SettingPlace]) = ([place], [], [place])
    while let next = open.popLast() {
      for link in links(of: next) where seen.insert(link.other).inserted {
        others.append(link.other)
        open.append(link.other)
      }
    }
    return others
  }

  /// The names in a collection that have another one.
  func names(in collection: String) -> [SettingPlace] {
    all.flatMap { rename in
      [(rename.current, rename.former), (rename.former, rename.current)].compactMap { own, other in
        rename.counterpart(of: collection, own, other) == nil ? nil : own.moved(to: collection)
      }
    }
  }
}

/// The tables `renames` and `behind`: the former names that are kept, and items that could not follow their other name.
package struct RenameTable {
  let connection: SQLiteConnection

  package init(connection: SQLiteConnection) { self.connection = connection }

  private var isThere: Bool { get throws { try Schema.version(connection).hasVersions } }

  // MARK: Renames

  package func all() throws -> [Rename] {
    guard try isThere else { return [] }
    return try connection.statement(
      """
      SELECT key, collection, former_key, former_collection, application, suites, converted, until FROM renames
      ORDER BY collection, key, former_collection, former_key
      """
    ).map { row in
      Rename(
        current: SettingPlace(row.text(0), in: row.text(1)), former: SettingPlace(row.text(2), in: row.text(3)),
        application: row.text(4), hasSuites: row.integer(5) != 0, isConverted: row.integer(6) != 0,
        until: row.integer(7))
    }
  }

  /// Adds a rename, or replaces what is known about it.
  func save(_ rename: Rename) throws {
    let (current, former) = (rename.current, rename.former)
    try connection.statement(
      "INSERT OR REPLACE INTO renames VALUES (?, ?, ?, ?, ?, ?, ?, ?)", current.collection.string, current.key.string,
      former.collection.string, former.key.string, rename.application, rename.hasSuites, rename.isConverted,
      rename.until
    ).run()
  }

  func remove(_ rename: Rename) throws {
    try connection.statement(
      "DELETE FROM renames WHERE collection = ? AND key = ? AND former_collection = ? AND former_key = ?",
      rename.current.collection.string, rename.current.key.string, rename.former.collection.string,
      rename.former.key.string
    ).run()
  }

  // MARK: Items that are behind

  /// An item that has not followed its other name.
  package struct Behind: Sendable {
    /// The item with an older value.
    package let place: SettingPlace
    /// The name that was set last.
    package let source: SettingPlace
    /// The commit that set it.
    let version: CommitNumber
    /// Whether its value cannot be converted, or is not allowed; false if it waits for a program that can convert it.
    package let isRefused: Bool
  }

  package func behind() throws -> [Behind] {
    guard try isThere else { return [] }
    return try connection.statement(
      "SELECT key, collection, source_key, source_collection, version, refused FROM behind ORDER BY collection, key"
    ).map(Self.behind)
  }

  func behind(_ place: SettingPlace) throws -> Behind? {
    try connection.statement(
      """
      SELECT key, collection, source_key, source_collection, version, refused FROM behind
      WHERE collection = ? AND key = ?
      """, place.collection.string, place.key.string
    ).first(Self.behind)
  }

  private static func behind(_ row: borrowing Statement.Row) -> Behind {
    Behind(
      place: SettingPlace(row.text(0), in: row.text(1)), source: SettingPlace(row.text(2), in: row.text(3)),
      version: row.integer(4), isRefused: row.integer(5) != 0)
  }

  func save(_ behind: Behind) throws {
    try connection.statement(
      "INSERT OR REPLACE INTO behind VALUES (?, ?, ?, ?, ?, ?)", behind.place.collection.string,
      behind.place.key.string, behind.source.collection.string, behind.source.key.string, behind.version,
      behind.isRefused
    ).run()
  }

  func removeBehind(_ place: SettingPlace) throws {
    try connection.statement(
      "DELETE FROM behind WHERE collection = ? AND key = ?", place.collection.string, place.key.string
    ).run()
  }
}
