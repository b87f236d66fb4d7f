// While an older version of a program may still run, a renamed setting has both of its names in the store. Every
// writer of one sets the other in the same transaction, through any door: older versions and tools know from the table of
// renames what belongs together, though they know nothing of the new setting.

extension Session {
  /// Whether an item has another name that has to follow its changes.
  func isRenamed(_ key: String, in collection: String) throws -> Bool {
    guard !transaction.isFollowing else { return false }
    return try !renames().links(of: key, in: collection).isEmpty
  }

  /// Runs `body`, which changes an item, and lets the other names of the setting follow.
  ///
  /// - Parameter body: Returns whether it changed anything.
  func following(_ key: String, in collection: String, _ body: () throws -> Bool) throws -> Bool {
    try changingTogether {
      guard try body() else { return false }
      try letFollow(SettingPlace(key, in: collection))
      return true
    }
  }

  /// Removes what belongs to the items of a collection that was cleared; nil for all collections.
  func followClearing(of collection: String?) throws {
    guard hasRenames else { return }
    try table.removeBehind(in: collection)
    guard let collection else { return }
    try withoutFollowing {
      for place in try renames().across(collection) {
        if try remove(place.key.string, in: place.collection.string) { transaction.followers.append(place) }
        try table.removeBehind(place)
      }
    }
  }

  /// Lets items follow their other names that could not when those were set, as far as this program can convert them.
  ///
  /// - Parameters:
  ///   - retriesRefused: Whether to try again what was refused, because the declarations have changed.
  ///   - new: Renames whose names were set independently until now: the one set last counts.
  func bringInStep(retryingRefused retriesRefused: Bool = false, new: [Rename] = []) throws {
    try changingTogether {
      for behind in try table.behind() where retriesRefused || !behind.isRefused {
        try letFollow(behind.source, isRetry: true)
      }
      let names = try collections.all().map(\.0)
      for rename in new {
        for pair in rename.places(among: names).sorted(by: { $0.current < $1.current }) {
          let (current, former) = (try version(of: pair.current), try version(of: pair.former))
          guard current != former else { continue }
          try letFollow(current > former ? pair.current : pair.former)
        }
      }
    }
  }

  private var table: RenameTable { RenameTable(connection: connection) }

  /// 0 for no item.
  private func version(of place: SettingPlace) throws -> Int64 {
    try version(place.key.string, in: place.collection.string)
  }

  private func withoutFollowing<Result>(_ body: () throws -> Result) rethrows -> Result {
    let earlier = transaction.isFollowing
    transaction.isFollowing = true
    defer { transaction.isFollowing = earlier }
    return try body()
  }

  // MARK: - Following

  /// Lets the other names of an item follow it, and the other names of those.
  ///
  /// - Parameter isRetry: Whether the item was set earlier, so that nothing is new if they still cannot.
  private func letFollow(_ place: SettingPlace, isRetry: Bool = false) throws {
    try withoutFollowing {
      var seen: Set = [place]
      if let behind = try table.behind(place) {
        try table.removeBehind(place)
        // Both were set in this transaction, as a restored backup or a fleet sets them: they are in step.
        if try behind.version == newVersion() { seen.insert(behind.source) }
      }
      var open = [place]
      while let source = open.popLast() {
        for link in try renames().links(of: source) where seen.insert(link.other).inserted {
          if try follow(link, from: source, isRetry: isRetry) { open.append(link.other) }
        }
      }
    }
  }

  /// - Returns: Whether the other name has followed.
  private func follow(_ link: Renames.Link, from source: SettingPlace, isRetry: Bool) throws -> Bool {
    let other = link.other
    let (key, collection) = (other.key.string, other.collection.string)
    do {
      if let item = try storedItem(source.key.string, in: source.collection.string) {
        let new = try converted(item, link, from: source)
        try Mutation.set(new).checkSize(key, in: collection)
        try set(new, key, in: collection)
      } else {
        try remove(key, in: collection)
      }
      if try table.behind(other) != nil {
        try table.removeBehind(other)
        transaction.changesDeclarations = true
      }
      transaction.followers.append(other)
      return true
    } catch let refusal as Refusal {
      let isRefused = refusal == .refused
      let earlier = try table.behind(other)
      if !isRetry || earlier?.source != source || earlier?.isRefused != isRefused {
        try table.save(
          RenameTable.Behind(place: other, source: source, version: newVersion(), isRefused: isRefused))
        transaction.changesDeclarations = true
      }
      if isRefused { report(other, behind: source) }
      return false
    }
  }

  /// Why a name cannot follow.
  private enum Refusal: Error {
    /// Only another program can convert the value.
    case waits
    /// The value cannot be converted, or is not allowed.
    case refused
  }

  private func converted(_ item: HeldItem, _ link: Renames.Link, from source: SettingPlace) throws -> HeldItem {
    let (key, collection) = (link.other.key.string, link.other.collection.string)
    let isSealed = try isSealedOrWillBe(collection)
    // A sealed value is never copied to where anyone could read it.
    if try !isSealed && isSealedOrWillBe(source.collection.string) { throw Refusal.refused }
    do {
      let new: HeldItem
      if link.rename.isConverted {
        guard let converter = core.converters.converter(of: link.rename) else { throw Refusal.waits }
        guard let item = try (link.isForward ? converter.forward : converter.back)(self, source, link.other) else {
          throw Refusal.refused
        }
        new = item
      } else {
        let (key, collection) = (source.key.string, source.collection.string)
        let isSealed = item.object.kind == .sealed
        new = HeldItem(
          object: isSealed ? HeldValue(try core.opened(item.object, key, in: collection)) : item.object,
          metadata: try item.metadata.map { try core.opened(.metadata, $0, key, in: collection) }, dates: item.dates)
      }
      // An older version never reads a value in a form that it did not declare.
      if let declaration = try declarations.declaration(key, in: collection),
        try declaration.problem(of: core.value(new.object, key, in: collection)) != nil
      {
        throw Refusal.refused
      }
      return new
    } catch let error as CofferError {
      switch error {
      case .vaultLocked: throw Refusal.waits
      case .notDecodable, .notEncodable, .invalidValue: throw Refusal.refused
      default: throw error
      }
    }
  }

  private func report(_ place: SettingPlace, behind source: SettingPlace) {
    owner?.report(
      SettingProblem(
        collection: place.collection.string, key: place.key.string, place: "the store",
        reason: "what \(source) is now, which it cannot be"), instead: "its last value")
  }

  /// An object with the metadata and the dates of another item, in the form for its own place.
  func held<Object: Encodable>(_ object: Object, from: SettingPlace, to: SettingPlace) throws -> HeldItem {
    let old = try storedItem(from.key.string, in: from.collection.string)
    let metadata = try old?.metadata.map {
      try core.value(.metadata, $0, from.key.string, in: from.collection.string)
    }
    let mutation = try callingOut {
      try core.setting(object, metadata: metadata, dates: old?.dates ?? .none, to.key.string, in: to.collection.string)
    }
    guard case .set(let item) = mutation else { preconditionFailure("An object that is set becomes an item.") }
    return item
  }

  // MARK: - Contracting

  /// Forgets the versions that may not run any more, except those whose declarations are in force.
  func dropEndedVersions() throws {
    let versions = VersionTable(connection: connection)
    for version in try versions.all() where version.until <= transaction.time {
      let present = try declarations.application(version.application, version: nil)
      if version.version != present?.version { try versions.remove(version) }
    }
  }

  /// Ends the former names that no older version can use any more: their values go into the history.
  ///
  /// - Parameter isChosen: Whether a rename is to be ended.
  /// - Returns: What became of each.
  func contract(_ isChosen: (Rename) -> Bool) throws -> [Contraction] {
    try changingTogether {
      let keepsAllHistory = transaction.keepsAllHistory
      transaction.keepsAllHistory = true
      defer { transaction.keepsAllHistory = keepsAllHistory }
      let all = try renames().all
      let names = try collections.all().map(\.0)
      let behind = try table.behind()
      var results: [Contraction] = []
      for rename in all where isChosen(rename) {
        let until = all.filter { $0.former == rename.former }.map(\.until).max() ?? rename.until
        guard until <= transaction.time else {
          results.append(Contraction(rename: rename, outcome: .inUse(until: until)))
          continue
        }
        let places = rename.places(among: names)
        if let waiting = behind.first(where: { item in
          places.contains { item.place == $0.current && item.source == $0.former }
        }) {
          results.append(Contraction(rename: rename, outcome: .behind(waiting)))
          continue
        }
        try withoutFollowing {
          for place in places.map(\.former).sorted() {
            if try remove(place.key.string, in: place.collection.string) { transaction.followers.append(place) }
          }
        }
        for item in behind where places.contains(where: { item.place == $0.former }) {
          try table.removeBehind(item.place)
        }
        try table.remove(rename)
        try declarations.removeKept(rename.former, of: rename.application)
        note(.contracted(rename.current.collection.string))
        results.append(Contraction(rename: rename, outcome: .contracted))
      }
      // A version that comes back declares its settings again, and finds its names again.
      try dropEndedVersions()
      try loadRenames()
      return results
    }
  }
}

/// What became of a rename that was to be ended.
package struct Contraction: Sendable {
  package enum Outcome: Sendable {
    case contracted
    /// An older version may run until then, in milliseconds since 1970.
    case inUse(until: Int64)
    /// The new name has not followed the former one yet.
    case behind(RenameTable.Behind)
  }

  package let rename: Rename
  package let outcome: Outcome
}

extension Session {
  /// Whether an item waits for a conversion that this program has.
  func isConversionWaiting() throws -> Bool {
    let behind = try RenameTable(connection: connection).behind()
    guard !behind.isEmpty else { return false }
    let renames = try renames()
    return behind.contains { item in
      !item.isRefused
        && renames.links(of: item.source).contains { link in
          link.other == item.place && (!link.rename.isConverted || core.converters.converter(of: link.rename) != nil)
        }
    }
  }
}
