// While an older version of a program may still run, a renamed setting has both of its names in the store. Each writer
// of one sets the other in the same transaction, through any door: older versions and tools know from the table of renames what
// belongs together, though they know nothing of the new setting.
//
// Which name follows is decided at the end of a transaction, from what it has changed: its own operations see the names as
// they have left them.

/// What a transaction did to a name of a renamed setting.
struct ChangedName {
  /// The item before the transaction; nil for none.
  let before: HeldItem?
  /// Counts the changes to such names.
  var order: Int
}

extension Session {
  /// Notes that an item is about to be changed, if it has another name that may have to follow.
  func willChange(_ key: String, in collection: String) throws {
    guard known.hasRenames, try !renames().links(of: key, in: collection).isEmpty else { return }
    try willChange(SettingPlace(key, in: collection))
  }

  private func willChange(_ place: SettingPlace) throws {
    transaction.nameChangeCount += 1
    if transaction.changedNamesOfSettings[place] == nil {
      let before = try CofferError.translating { try storedItem(place.key.string, in: place.collection.string) }
      transaction.changedNamesOfSettings[place] = ChangedName(before: before, order: 0)
    }
    transaction.changedNamesOfSettings[place]?.order = transaction.nameChangeCount
  }

  /// The same for all items of a collection, which is about to be cleared.
  func willClear(_ collection: String) throws {
    guard known.hasRenames else { return }
    for place in try renames().names(in: collection) { try willChange(place) }
  }

  /// The other names of a setting that are kept; usually none.
  package func otherNames(of key: String, in collection: String) throws -> [SettingPlace] {
    try renames().otherNames(of: SettingPlace(key, in: collection))
  }

  /// Lets the names follow that this transaction has not set, as it does at its end.
  ///
  /// Of each setting, the name that was changed last counts; an equal value set again is not a change. Setting one name counts
  /// more than removing another: an import that replaces everything sets the one and removes the other.
  ///
  /// - Parameters:
  ///   - isMerge: Whether the changes come from another host, which may have let one name follow what was set here.
  ///   - yields: Whether a name was removed because it has ended elsewhere: it comes back where it is kept.
  package func letNamesFollow(
    isMerge: Bool = false, where yields: (SettingPlace) throws -> Bool = { _ in false }
  ) throws {
    let changed = transaction.changedNamesOfSettings
    guard !changed.isEmpty else { return }
    try changingInTransaction {
      var seen: Set<SettingPlace> = []
      for place in changed.keys.sorted() where !seen.contains(place) {
        let names = try [place] + renames().otherNames(of: place)
        seen.formUnion(names)
        guard let source = try source(of: names, changed, yields) else { continue }
        try letFollow(source, answering: isMerge ? table.behind(source)?.source : nil)
      }
    }
    transaction.changedNamesOfSettings = [:]
  }

  /// The name of a setting that the others follow; nil if this transaction has changed nothing.
  private func source(
    of names: [SettingPlace], _ changed: [SettingPlace: ChangedName], _ yields: (SettingPlace) throws -> Bool
  ) throws -> SettingPlace? {
    var (set, kept, removed): ([SettingPlace], [SettingPlace], [SettingPlace]) = ([], [], [])
    for place in names {
      let present = try storedItem(place)
      guard let change = changed[place] else {
        // No transaction has set it here, and nothing is lost if it counts.
        if present != nil, try names.contains(where: { try changed[$0] != nil && yields($0) }) { kept.append(place) }
        continue
      }
      if try isSame(present, change.before, at: place) {
        if present != nil { kept.append(place) }
      } else if present != nil {
        set.append(place)
      } else {
        removed.append(place)
      }
    }
    func last(_ places: [SettingPlace]) -> SettingPlace? {
      places.max { changed[$0]?.order ?? 0 < changed[$1]?.order ?? 0 }
    }
    if let last = last(set) { return last }
    return removed.isEmpty ? nil : last(kept) ?? last(removed)
  }

  private func storedItem(_ place: SettingPlace) throws -> HeldItem? {
    try storedItem(place.key.string, in: place.collection.string)
  }

  /// Whether two items of a place are equal: an equal value may be sealed in two ways.
  private func isSame(_ one: HeldItem?, _ other: HeldItem?, at place: SettingPlace) throws -> Bool {
    guard let one, let other, one.isSealed || other.isSealed else { return one == other }
    guard core.vault.isUnlocked, one != other else { return one == other }
    let (key, collection) = (place.key.string, place.collection.string)
    func opened(_ item: HeldItem) throws -> (Value, Value?, ItemDates) {
      (
        try core.value(item.object, key, in: collection),
        try item.metadata.map { try core.value(.metadata, $0, key, in: collection) }, item.dates
      )
    }
    return try opened(one) == opened(other)
  }

  /// Decides which of several names of a setting counts that were set independently until now; nil if they are in step, as far
  /// as can be known here.
  ///
  /// `isConverted` says whether their values may have different forms.
  package typealias NameChoice = (_ names: [SettingPlace], _ isConverted: Bool) throws -> SettingPlace?

  /// A rename whose former name is kept from now on, and the name that counts where both have a value.
  struct BegunRename {
    enum Precedence {
      /// The one that the store had before the version that has just declared its settings.
      case current, former
      /// Other hosts have declared the settings, and the names may have come from them, too.
      case chosen
    }

    let rename: Rename
    let precedence: Precedence
  }

  /// Lets items follow their other names that could not when those were set, as far as this program can convert them.
  ///
  /// - Parameters:
  ///   - retriesRefused: Whether to try again what was refused, because the declarations have changed.
  ///   - new: Renames whose names were set independently until now. What they replace goes into the history.
  ///   - choosing: Decides which name counts where the renames leave it open.
  func bringInStep(
    retryingRefused retriesRefused: Bool = false, new: [BegunRename] = [],
    choosing: NameChoice = { names, _ in names.first }
  ) throws {
    try changingTogether {
      for behind in try table.behind() where retriesRefused || !behind.isRefused {
        try letFollow(behind.source, isRetry: true)
      }
      guard !new.isEmpty else { return }
      let names = try collections.all().map(\.0)
      var seen: Set<SettingPlace> = []
      try keepingAllHistory {
        for begun in new {
          for pair in begun.rename.places(among: names).sorted(by: { $0.current < $1.current }) {
            let source: SettingPlace?
            switch begun.precedence {
            case .current: source = try firstPresent([pair.current, pair.former])
            case .former: source = try firstPresent([pair.former, pair.current])
            case .chosen: source = try seen.contains(pair.current) ? nil : chosenName(of: pair.current, choosing, &seen)
            }
            if let source { try letFollow(source) }
          }
        }
      }
    }
  }

  private func firstPresent(_ places: [SettingPlace]) throws -> SettingPlace? {
    try places.first { try storedItem($0) != nil }
  }

  /// The name that all others of a setting follow, whichever of its renames have begun; nil if none has to.
  private func chosenName(
    of place: SettingPlace, _ choosing: NameChoice, _ seen: inout Set<SettingPlace>
  ) throws -> SettingPlace? {
    let renames = try renames()
    let names = ([place] + renames.otherNames(of: place)).sorted()
    seen.formUnion(names)
    let present = try names.filter { try storedItem($0) != nil }
    guard present.count > 1 else { return present.first }
    return try choosing(present, names.contains { renames.links(of: $0).contains(where: \.rename.isConverted) })
  }

  /// Whether an item waits for a program that can convert the value of another name of its setting.
  func isWaiting(_ key: String, in collection: String) throws -> Bool {
    guard try !renames().links(of: key, in: collection).isEmpty else { return false }
    return try table.behind(SettingPlace(key, in: collection))?.isRefused == false
  }

  /// Runs `body`, which puts all that it replaces and removes into the history.
  func keepingAllHistory<Result>(_ body: () throws -> Result) rethrows -> Result {
    let keepsAllHistory = transaction.keepsAllHistory
    transaction.keepsAllHistory = true
    defer { transaction.keepsAllHistory = keepsAllHistory }
    return try body()
  }

  private var table: RenameTable { RenameTable(connection: connection) }

  // MARK: - Following

  /// Lets the other names of an item follow it, and the other names of those.
  ///
  /// - Parameters:
  ///   - isRetry: Whether the item was set earlier, so that nothing is new if they still cannot.
  ///   - answered: The name that the item has followed on another host.
  private func letFollow(_ place: SettingPlace, isRetry: Bool = false, answering answered: SettingPlace? = nil) throws {
    try catchUp(place)
    var seen: Set = [place]
    var open = [place]
    while let source = open.popLast() {
      for link in try renames().links(of: source) where !seen.contains(link.other) {
        guard try follow(link, from: source, isRetry: isRetry, answering: answered) else { continue }
        seen.insert(link.other)
        open.append(link.other)
      }
    }
  }

  /// Forgets which items were behind, by names that are no longer kept.
  func forgetBehind(_ ended: [Rename]) throws {
    guard try !ended.isEmpty && !table.behind().isEmpty else { return }
    let names = try collections.all().map(\.0)
    for pair in ended.flatMap({ $0.places(among: names) }) {
      for place in [pair.current, pair.former] { try catchUp(place) }
    }
  }

  /// Forgets that an item was behind.
  private func catchUp(_ place: SettingPlace) throws {
    guard try table.behind(place) != nil else { return }
    try table.removeBehind(place)
    transaction.changesDeclarations = true
  }

  /// - Returns: Whether the other name has followed.
  private func follow(
    _ link: Renames.Link, from source: SettingPlace, isRetry: Bool, answering answered: SettingPlace?
  ) throws -> Bool {
    let other = link.other
    let (key, collection) = (other.key.string, other.collection.string)
    let present = try storedItem(other)
    let change = transaction.changedNamesOfSettings[other]
    do {
      if let item = try storedItem(source) {
        if try !isRounded(present, link, from: source, item) {
          let new = try converted(item, link, from: source)
          try Mutation.set(new).checkSize(key, in: collection)
          if try setAlone(new, key, in: collection) { transaction.followers.append(other) }
        }
      } else if try removeAlone(key, in: collection) {
        transaction.followers.append(other)
      }
      try catchUp(other)
      return true
    } catch let refusal as Refusal {
      if refusal == .waits, other == answered { return false }
      if let change, present != nil, try !isSame(present, change.before, at: other), refusal == .waits {
        // Both were set, as a restored backup or a fleet sets them: they are in step.
        try catchUp(other)
        return false
      }
      if present == nil, let before = change?.before {
        // It was removed because the other name was set: it keeps its last value.
        if try setAlone(before, key, in: collection) { transaction.followers.append(other) }
      }
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

  /// Whether a name has the value already that its source was converted from.
  private func isRounded(
    _ present: HeldItem?, _ link: Renames.Link, from source: SettingPlace, _ item: HeldItem
  ) throws -> Bool {
    guard present != nil, link.rename.isConverted, let converter = core.converters.converter(of: link.rename) else {
      return false
    }
    do {
      let back = try (link.isForward ? converter.back : converter.forward)(self, link.other, source)
      return try back != nil && isSame(back, item, at: source)
    } catch let error as CofferError {
      switch error {
      case .vaultLocked, .notDecodable, .notEncodable, .invalidValue: return false
      default: throw error
      }
    }
  }

  /// Moves a value from a former name that no version uses, if the setting can have it and has none.
  func takeOver(_ pair: Rename.Pair, _ rename: Rename) throws {
    let link = Renames.Link(rename: rename, isForward: true, other: pair.current)
    guard let item = try storedItem(pair.former), try storedItem(pair.current) == nil else { return }
    do {
      let new = try converted(item, link, from: pair.former)
      try keepingAllHistory {
        _ = try setAlone(new, pair.current.key.string, in: pair.current.collection.string)
        _ = try removeAlone(pair.former.key.string, in: pair.former.collection.string)
      }
      transaction.followers += [pair.current, pair.former]
    } catch is Refusal {
      // It stays where it is, which `prefs validate` shows.
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
    let old = try storedItem(from)
    let metadata = try old?.metadata.map {
      try core.value(.metadata, $0, from.key.string, in: from.collection.string)
    }
    let mutation = try callingOut {
      try core.setting(object, metadata: metadata, dates: old?.dates ?? .none, to.key.string, in: to.collection.string)
    }
    guard case .set(let item) = mutation else { preconditionFailure("An object that is set becomes an item.") }
    return item
  }
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
