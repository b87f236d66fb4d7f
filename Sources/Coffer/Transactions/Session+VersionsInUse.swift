extension Session {
  /// The versions in use at the time of this transaction.
  ///
  /// - Parameter others: Versions that may run, beside those that are recorded.
  func versionsInUse(also others: [ProgramVersion] = []) throws -> VersionsInUse {
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
    return VersionsInUse(try versions + declarations.versionsInFleets())
  }
}
