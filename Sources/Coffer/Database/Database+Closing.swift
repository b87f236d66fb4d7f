import CofferStorage

extension Database {
  // MARK: Closing

  /// Registers the pending changes of a proxy, to be flushed when the database closes.
  ///
  /// - Returns: Whether the database is open.
  func register(_ proxy: any DatabaseProxy) -> Bool {
    state.withLock { state in
      state.proxies.removeAll { $0.proxy == nil }
      guard !state.isClosed else { return false }
      state.proxies.append(WeakProxy(proxy: proxy))
      return true
    }
  }

  /// Makes the proxies reread what they read from the store.
  func forgetItems() {
    for proxy in state.withLock({ $0.proxies.compactMap(\.proxy) }) { proxy.storeWasReplaced() }
  }

  /// Makes the proxies reread what they read while the vault was locked.
  func vaultWasUnlocked() {
    for proxy in state.withLock({ $0.proxies.compactMap(\.proxy) }) { proxy.vaultWasUnlocked() }
  }

  /// Waits for running transactions, flushes all proxies, closes all connections, locks the vault, and wipes the store's keys.
  ///
  /// When this returns, all changes made through proxies before are in the store. From then on, everything on this database
  /// throws `CofferError.closed`, including its proxies and `Preferences`.
  ///
  /// - Throws: `CofferError.nestedTransaction` inside a transaction; the errors of a flush. In both cases the database stays
  ///   open, and nothing is lost: call this again, or first discard what cannot be written, with
  ///   ``ConnectionProxy/discardPendingChanges()``. Also the first error that a connection had while closing; the database is
  ///   closed then.
  public func close() throws {
    resumption.wait()
    guard !state.withLock({ $0.connections.compactMap(\.connection) }).contains(where: \.isInTransaction) else {
      throw CofferError.nestedTransaction
    }
    try closing.withLock { _ in try closeProxies() }
    // Not under the lock: this waits for commit handlers, and one of them may close the database too.
    try closeConnections()
  }

  /// Flushes and closes all proxies, and admits no new ones; if a flush fails, all stay open.
  private func closeProxies() throws {
    var closed: [any DatabaseProxy] = []
    while true {
      let open = state.withLock { state in
        let open = state.proxies.compactMap(\.proxy)
        state.proxies = []
        if open.isEmpty { state.isClosed = true }
        return open
      }
      if open.isEmpty { break }
      // Changes pending in a forked child are the parent's to write.
      guard (try? checkUsable()) != nil else { continue }
      for (index, proxy) in open.enumerated() {
        do {
          if try proxy.close() { closed.append(proxy) }
        } catch {
          for proxy in closed { proxy.reopen() }
          state.withLock { $0.proxies += (closed + open[index...]).map(WeakProxy.init) }
          throw error
        }
      }
    }
    for proxy in closed { proxy.databaseDidClose() }
  }

  private func closeConnections() throws {
    let (connections, spare) = state.withLock { state in
      defer {
        state.connections = []
        state.idleReaders = []
      }
      return (state.connections.compactMap(\.connection), state.spare.take())
    }
    core.feed.close()
    key.withLock { $0 = nil }
    defer { core.vault.lock() }
    var firstError: (any Error)?
    do {
      try CofferError.translating { try spare?.connection.close() }
    } catch {
      firstError = error
    }
    for connection in connections {
      do { try connection.close() } catch { firstError = firstError ?? error }
    }
    closeWitness()
    // A store is open in this process while something refers to it, and a caller may refer to the database for longer.
    currentBacking.withLock { $0 = .closed }
    if let firstError { throw firstError }
  }

  /// The last connection of all processes checkpoints the log, synced, and removes it.
  private func closeWitness() {
    guard let witness = core.witness, case .file(let store) = backing else { return }
    witness.close(isSynced: !store.hasLog, store)
  }
}
