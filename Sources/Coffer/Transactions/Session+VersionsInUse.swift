extension Session {
  /// The versions in use at the time of this transaction.
  ///
  /// - Parameters:
  ///   - others: Versions that may run, beside those that are recorded.
  ///   - elsewhere: Whether only those declarations of fleets count that no program of this host has made, too.
  func versionsInUse(also others: [ProgramVersion] = [], elsewhere: Bool = false) throws -> VersionsInUse {
    var versions: [VersionsInUse.Version] = []
    for version in try VersionTable(connection: connection).all() {
      let present = try declarations.application(version.application, version: nil)
      let isInForce = present != nil && present?.version == version.version
      guard isInForce || version.until > transaction.time else { continue }
      versions.append(VersionsInUse.Version(version, isInForce: isInForce, until: version.until))
    }
    for other in others {
      versions.append(VersionsInUse.Version(other, isInForce: false, until: other.until))
    }
    return VersionsInUse(try versions + declarations.versionsInFleets(elsewhere: elsewhere))
  }
}
