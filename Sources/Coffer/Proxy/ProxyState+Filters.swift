extension ProxyState {
  func setFetchFilter(_ filter: CollectionFilter?) {
    settleAll()
    fetchFilter = filter
    fetchFilterCount += 1
    forEachCollection { $0.isHidden = filter == nil ? false : nil }
    forEachItem { $0.update() }
  }

  /// Asks the fetch filter about a collection, outside the lock: it is user code.
  ///
  /// - Returns: Whether the filter hides the collection.
  @discardableResult
  func askFetchFilter(_ name: String) -> Bool {
    while true {
      let (known, filter, count) = lock.withShared {
        (knownCollection(name)?.isHidden, fetchFilter, fetchFilterCount)
      }
      if let known { return known }
      let isHidden = !(filter?.allows(name) ?? true)
      let isSet = lock.withExclusive {
        guard fetchFilterCount == count else { return false }
        let collection = collection(name)
        collection.isHidden = isHidden
        forEachItem(of: collection) { $0.update() }
        return true
      }
      if isSet { return isHidden }
    }
  }
}
