extension Database {
  /// Removes expired items, in the background; `close()` waits for it.
  func removeExpired() {
    guard (try? checkUsable()) != nil else { return }
    resumption.enter()
    resumptionQueue.async { [self] in
      defer { resumption.leave() }
      do {
        let connection = try takeReader()
        defer { giveBack(connection) }
        // Every write transaction begins by removing them.
        try connection.perform { session in
          try session.write(.normal) {}
          try core.expiries.look(session.connection)
        }
      } catch {
        options.logger.debug("\(path): expired items are not removed yet. \(error)")
        core.expiries.tryAgainLater()
      }
    }
  }
}
