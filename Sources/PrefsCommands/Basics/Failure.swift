import Coffer

/// An error that stops a command: the message for the user, and the exit code.
package struct Failure: Error, CustomStringConvertible {
  package let status: ExitStatus
  package let message: String
  /// Further lines of the message, one for each of several mistakes.
  package let details: [String]

  package init(_ status: ExitStatus, _ message: String, details: [String] = []) {
    self.status = status
    self.message = message
    self.details = details
  }

  package var description: String { ([message] + details).joined(separator: "\n") }

  /// The object that commands print with `--json`.
  ///
  /// - Parameter code: The exit code, if the command has another one.
  package func json(code: Int32? = nil, store: String?) -> String {
    JSONText.object([
      ("error", JSONText.quoted("\(status)")), ("code", "\(code ?? status.rawValue)"),
      ("message", JSONText.quoted(description)), ("store", store.map(JSONText.quoted) ?? "null"),
    ])
  }
}

extension Failure {
  /// The failure that an error of the library is, with the options that a command has against it.
  ///
  /// - Parameters:
  ///   - force: What sets a value that does not match its declaration; nil if nothing does.
  ///   - undeclared: What sets a name that is not declared.
  package init(_ error: CofferError, force: String? = "--force", undeclared: String = "--undeclared") {
    func failure(_ lines: [String]) -> Failure {
      Failure(error.exitStatus, lines.first ?? "", details: Array(lines.dropFirst()))
    }
    switch error {
    case .invalidValue:
      self = failure(["\(error.description) Nothing was changed\(force.map { "; \($0) sets it anyway" } ?? "")."])
    case .undeclaredSetting:
      self = failure(["\(error.description) Nothing was changed; \(undeclared) sets it anyway."])
    case .invalidSettings(let problems):
      let ways = [
        problems.contains { $0.kind == .value } ? force.map { "\($0) sets them anyway" } : nil,
        problems.contains { $0.kind == .undeclared } ? "\(undeclared) sets what is not declared" : nil,
        problems.contains { $0.kind == .locked } ? "nothing sets what is locked" : nil,
      ].compactMap(\.self)
      self = failure(
        problems.map { $0.kind == .undeclared ? $0.sentence : $0.sentence + "." }
          + ["Nothing was changed\(ways.isEmpty ? "" : "; ")\(ways.joined(separator: ", "))."])
    default: self = failure([error.description])
    }
  }
}

extension CofferError {
  /// The exit code for this error.
  package var exitStatus: ExitStatus {
    switch self {
    case .storeNotFound: .storeNotFound
    case .storeReplaced, .storeExists, .fileExists, .versionMismatch, .vaultExists, .conflictingDeclarations,
      .retypedInPlace:
      .conflict
    case .usedUnderAnotherName: .conflict
    case .versionNotFound, .slotNotFound, .vaultNotFound, .environmentNotFound: .notFound
    case .lastSlot, .slotsFull, .slotsNotOpened, .secretInUse: .refused
    case .invalidSettings(let problems) where problems.contains(where: { $0.kind == .locked }): .managed
    case .notAStore, .notEncodable, .notDecodable, .invalidValue, .undeclaredSetting, .notMutable, .invalidSettings,
      .notExportable, .malformedSettings:
      .format
    case .newerFormat: .newerFormat
    case .rolledBack, .anotherStore, .vaultKeyUnverified: .rolledBack
    case .wrongKey, .wrongKeyForSource: .wrongKey
    case .keyUnavailable, .vaultLocked: .keyUnavailable
    case .damaged, .rootKeyUnverified: .integrity
    case .busy, .oldKeyInUse: .busy
    case .unfinished(_, _, let cause): cause.exitStatus
    case .collectionNotAllowed: .refused
    case .lockedByAdministrator: .managed
    case .belongsToAnotherUser: .otherUser
    case .diskFull, .permissionDenied, .readOnly, .inputOutput, .imageChanged: .inputOutput
    default: .other
    }
  }
}

extension CofferError {
  /// The error for a command that was running when it occurred.
  package var whileFollowing: any Error {
    guard case .wrongKey = self else { return self }
    return Failure(
      .wrongKey,
      "the key in use opens the store no longer: its slot was removed, or has another key now. Start this command again with a "
        + "key that opens the store, or put one in the place of the key file.")
  }
}
