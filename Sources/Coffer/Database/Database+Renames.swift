extension Database {
  /// Converts between the names of renamed settings from now on, also when another process has set one.
  func convert(_ new: [RenameConverter]) throws {
    guard !new.isEmpty else { return }
    let converters = core.converters
    converters.add(new)
    guard !isReadOnly else { return }
    try converters.listen {
      try onCommit { [weak self, weak converters] commit in
        guard let self, converters?.concerns(commit) == true else { return }
        bringRenamesInStep()
      }
    }
  }

  /// Converts what waits for it.
  private func bringRenamesInStep() {
    do {
      let connection = try makeConnection()
      let isWaiting = try connection.read { transaction in
        let session = transaction.session
        return try session.reading { try session.isConversionWaiting() }
      }
      if isWaiting { try connection.readWrite { try $0.session.bringInStep() } }
    } catch {
      // The next commit, or the next opening, does it.
      options.logger.warning("Renamed settings could not follow their other names yet: \(error)")
    }
  }
}
