extension Preferences {
  /// Changes to settings as they happen, for `for await`; see ``Preferences/changes()``.
  ///
  /// If a consumer falls behind, changes are merged, but no changed key is missed. The sequence ends when the settings are
  /// closed or released, or the task is cancelled.
  public typealias Changes = EventSequence<Change>

  /// The settings that a listener wants to observe.
  enum Interest: Sendable {
    case all
    case key(String)
    case keys([Keys])

    /// What has to be asked of the proxy: a key by its name alone, because suites may be added to the search list.
    fileprivate var ofProxy: ChangeInterest {
      switch self {
      case .all: ChangeInterest()
      case .key(let key): ChangeInterest(keys: [ByteString(key)])
      case .keys(let keys): ChangeInterest(keys: Set(keys.map { ByteString($0.name) }))
      }
    }
  }

  /// The changes to these settings from now on, including those by other processes.
  ///
  /// ```swift
  /// for await change in try preferences.changes() where change.concerns("theme") {
  ///   redraw(preferences.string(forKey: "theme"))
  /// }
  /// ```
  ///
  /// Reports changes to effective values only: not a key that is set to the value it has, nor one that another place in the
  /// search list hides. A batch makes one event. Changes to ``ManagedSettings`` have the origin of changes by other
  /// processes. Registering defaults and adding suites are not reported.
  ///
  /// Keys with a collection are covered as well, in whichever collection of the store they are; for a suite, those in the
  /// suite's own part. ``Change/concerns(_:)-(Keys)`` tells such a key from one of the same name in the search list.
  ///
  /// - Throws: `CofferError.closed`, `.inputOutput` and similar errors.
  public func changes() throws -> Changes {
    try changes(.all)
  }

  /// The changes to one key from now on, including those by other processes.
  ///
  /// - Throws: As ``changes()``.
  public func changes(forKey key: String) throws -> Changes {
    try changes(.key(key))
  }

  /// The changes to some typed keys from now on, including those by other processes.
  ///
  /// ```swift
  /// for await change in try preferences.changes(of: .theme, .fontSize) { redraw() }
  /// ```
  ///
  /// - Throws: As ``changes()``.
  public func changes(of keys: Keys...) throws -> Changes {
    try changes(.keys(keys))
  }

  /// The changes to a sequence of typed keys from now on, including those by other processes.
  ///
  /// ```swift
  /// let network: [Keys] = [Keys.host, Keys.port]
  /// for await _ in try preferences.changes(of: network) { reconnect() }
  /// ```
  ///
  /// - Throws: As ``changes()``.
  public func changes(of keys: some Sequence<Keys>) throws -> Changes {
    try changes(.keys(Array(keys)))
  }

  /// The changes to declared settings from now on, including those by other processes.
  ///
  /// ```swift
  /// for await _ in try preferences.changes(of: Network.settings) { reconnect() }
  /// ```
  ///
  /// - Throws: As ``changes()``.
  public func changes(of settings: Settings) throws -> Changes {
    try changes(.keys(settings.keys))
  }

  private func changes(_ interest: Interest) throws -> Changes {
    let buffer = MergingBuffer<Change> { $0.merged(with: $1) }
    buffer.attach(
      try listen(interest) { [weak buffer] in
        buffer?.add($0)
      } finish: { [weak buffer] in
        buffer?.finish()
      })
    return EventSequence(buffer)
  }

  /// Passes changes of interest to `receive`, until the returned object is released.
  private func listen(
    _ interest: Interest, _ receive: @escaping @Sendable (Change) -> Void, finish: @escaping @Sendable () -> Void = {}
  ) throws -> any Sendable {
    let preferences = WeakPreferences(self)
    let stored = try proxy.listen(interest.ofProxy) { event in
      if let change = preferences.preferences?.change(event, interest) { receive(change) }
    } finish: {
      finish()
    }
    let managed = overrides.source?.listen { before, now in
      if let change = preferences.preferences?.change(from: before, to: now, interest) { receive(change) }
    }
    return [stored, managed, try reportedRemoval()].compactMap(\.self)
  }

  /// Reports that the environment is gone: a program that listens would take what its parent has for its own.
  ///
  /// - Returns: What keeps this registered; nil without an environment.
  private func reportedRemoval() throws -> (any Sendable)? {
    guard let name = environment, !isSuite else { return nil }
    let (database, parent) = (proxy.database, parent)
    let environment = WatchedEnvironment(try CollectionEnvironment(name, of: parent)) { [weak database] isThere in
      guard !isThere else { return }
      database?.report(
        CofferError.environmentNotFound(environment: name, collection: parent), forKey: nil, inCollection: parent,
        instead: "what is set in the collection itself")
    }
    return try database.onCommit { [weak database] commit in
      if let database { environment.look(after: commit, of: database) }
    }
  }

  /// Calls `body` when the value of a typed key has changed, until the returned object is released.
  ///
  /// - Returns: nil if changes cannot be observed, which is reported.
  package func onChange(of key: Keys, _ body: @escaping @Sendable () -> Void) -> (any Sendable)? {
    do {
      return try listen(.keys([key])) { _ in body() }
    } catch {
      proxy.database.report(error, forKey: key.name, inCollection: place(of: key))
      return nil
    }
  }

  // MARK: Effective changes

  /// The part of an event that is effective in the search list and of interest; nil if there is none.
  fileprivate func change(_ event: ConnectionProxy.ChangeEvent, _ interest: Interest) -> Change? {
    let searched = searchedCollections.map { ByteString($0.name) }
    var places: Set<Change.Place> = []
    for change in event.changes {
      let place = Change.Place(
        collection: ByteString(change.collection), key: ByteString(change.key),
        isInList: searched.contains(ByteString(change.collection)))
      if shows(place, searched, interest) { places.insert(place) }
    }
    let isAny =
      event.scope == .everything
      || event.scope.wholeCollections.contains { concerns(ByteString($0), searched, interest) }
    guard isAny || !places.isEmpty else { return nil }
    return Change(origin: event.origin, places: places, scope: isAny ? .everything : .keys, placement: placement)
  }

  /// Whether keys of interest may be in a collection.
  private func concerns(_ collection: ByteString, _ searched: [ByteString], _ interest: Interest) -> Bool {
    switch interest {
    case .all: searched.contains(collection) || keyCollection(at: collection) != nil
    case .key: searched.contains(collection)
    case .keys(let keys):
      keys.contains { key in
        key.collection == nil
          ? searched.contains(collection) : places(of: key).contains { ByteString($0) == collection }
      }
    }
  }

  /// The collection that a typed key with values in this one names, and where such keys are searched; nil if the collection is
  /// of another suite or environment.
  private func keyCollection(at collection: ByteString) -> (name: String, searched: [String])? {
    let place = CollectionEnvironment(collection: collection.string)
    guard place == nil || place?.name == environment else { return nil }
    let whole = place?.parent ?? collection.string
    guard isSuite else { return (whole, Self.names(whole, in: environment)) }
    let prefix = "\(parent)/"
    guard whole.utf8.starts(with: prefix.utf8) else { return nil }
    return (
      String(decoding: whole.utf8.dropFirst(prefix.utf8.count), as: UTF8.self), Self.names(whole, in: environment)
    )
  }

  private func shows(_ place: Change.Place, _ searched: [ByteString], _ interest: Interest) -> Bool {
    var isInList = false
    switch interest {
    case .all:
      isInList = place.isInList
      if !isInList, let (name, own) = keyCollection(at: place.collection) {
        let layerName = "\(name)/\(place.key.string)"
        return shows(place, own.map { ByteString($0) }, layerName, managedName(ofKey: layerName))
      }
    case .key(let key): isInList = ByteString(key) == place.key
    case .keys(let keys):
      for key in keys where ByteString(key.name) == place.key {
        guard key.collection != nil else {
          isInList = true
          continue
        }
        // A key with a collection is found only there and in the layers.
        let own = places(of: key).map { ByteString($0) }
        if own.contains(place.collection) { return shows(place, own, key.overrideName, managedName(of: key)) }
      }
    }
    return isInList && shows(place, searched, place.key.string, managedName(ofKey: place.key.string))
  }

  private func shows(
    _ place: Change.Place, _ searched: [ByteString], _ overrideName: String, _ managedName: String
  ) -> Bool {
    guard let index = searched.firstIndex(of: place.collection), overrides.find(overrideName, managedName) == nil
    else { return false }
    // When the value that hides it goes, that is reported. An unreadable value hides nothing.
    return !searched[..<index].contains { name in
      (try? proxy.hasObject(forKey: place.key.string, inCollection: name.string)) ?? false
    }
  }
}

// MARK: - Managed settings

extension Preferences {
  /// The effective changes after a change to managed settings; nil if none is of interest.
  fileprivate func change(from before: ManagedSettings, to now: ManagedSettings, _ interest: Interest) -> Change? {
    var places: Set<Change.Place> = []
    for name in before.differingKeys(from: now).map(\.string) {
      for (key, layerName, searched) in settings(named: name, now, interest) {
        let shown = [before, now].map { self.shown(name, key, layerName, in: searched, $0) }
        if shown[0] != shown[1] {
          let isInList = searchedCollections.contains { ByteString($0.name) == ByteString(searched[0]) }
          places.insert(
            Change.Place(collection: ByteString(searched[0]), key: ByteString(key), isInList: isInList))
        }
      }
    }
    return places.isEmpty
      ? nil : Change(origin: .elsewhere, places: places, scope: .keys, placement: placement)
  }

  /// The settings with this name in an administrator's files, with their names in the layers and the collections where each may
  /// be stored.
  private func settings(
    named name: String, _ managed: ManagedSettings, _ interest: Interest
  ) -> [(key: String, layerName: String, searched: [String])] {
    let searched = searchedCollections.map(\.name)
    switch interest {
    case .all:
      // A key of the own collection, or a typed key with a collection.
      let start = suite.map { $0 + "/" } ?? ""
      let own =
        name.utf8.starts(with: start.utf8)
        ? String(decoding: name.utf8.dropFirst(start.utf8.count), as: UTF8.self) : nil
      let slashes = name.utf8.indices.filter { name.utf8[$0] == UInt8(ascii: "/") }
      return (own.map { [($0, $0, searched)] } ?? [])
        + slashes.map { slash in
          let (named, key) = (String(name[..<slash]), String(name[name.utf8.index(after: slash)...]))
          return (key, own ?? name, Self.names(named, in: environment))
        }
    case .key(let key): return ByteString(managedName(ofKey: key)) == ByteString(name) ? [(key, key, searched)] : []
    case .keys(let keys):
      return keys.filter { ByteString(managed.ownName(managedName(of: $0))) == ByteString(name) }
        .map { key in (key.name, key.overrideName, key.collection == nil ? searched : places(of: key)) }
    }
  }

  /// The effective value of a name under these managed settings.
  private func shown(
    _ name: String, _ key: String, _ layerName: String, in collections: [String], _ managed: ManagedSettings
  ) -> Value? {
    if let locked = managed.locked[ByteString(name)] { return locked.value }
    if let layer = overrides.findInLayers(layerName) { return layer.entry.value }
    for collection in collections {
      if let stored = try? proxy.object(forKey: key, inCollection: collection, as: Value.self) { return stored }
    }
    return managed.defaults[ByteString(name)]?.value ?? registered.value(forKey: layerName)
  }
}
