/// The filters of a proxy.
struct ProxyFilters {
  /// The collections whose committed values are visible; nil for all.
  var fetch: CollectionFilter?
  /// How often it was set.
  var fetchCount = 0
  /// The collections that may be written; nil for all.
  var write: CollectionFilter?
}

extension ProxyState {
  /// - Returns: The former filter, to be released without the lock: what it has captured is user code.
  func setFetchFilter(_ filter: CollectionFilter?) -> CollectionFilter? {
    settleAll()
    let former = filters.fetch
    filters.fetch = filter
    filters.fetchCount += 1
    items.setHidden(filter == nil ? false : nil)
    return former
  }

  /// - Returns: As `setFetchFilter`.
  func setWriteFilter(_ filter: CollectionFilter?) -> CollectionFilter? {
    let former = filters.write
    filters.write = filter
    hasWriteFilter.store(filter != nil, ordering: .releasing)
    return former
  }

  /// Asks the fetch filter about a collection, outside the lock: it is user code.
  ///
  /// - Returns: Whether the filter hides the collection.
  @discardableResult
  func askFetchFilter(_ name: String) -> Bool {
    while true {
      let (known, filter, count) = lock.withShared {
        (items.knownCollection(name)?.isHidden, filters.fetch, filters.fetchCount)
      }
      if let known { return known }
      let isHidden = !(filter?.allows(name) ?? true)
      let isSet = lock.withExclusive {
        guard filters.fetchCount == count else { return false }
        let collection = items.collection(name)
        collection.isHidden = isHidden
        items.forEach(of: collection) { $0.update() }
        return true
      }
      if isSet { return isHidden }
    }
  }
}
