import Coffer
import CofferFleet
import PrefsCommands

extension FleetStatus {
  /// The collections that are not exchanged because they are sealed here or in the fleet.
  var held: [FleetWait] { waits.filter { $0.reason != .consent } }

  /// Those that wait for `prefs fleet accept`.
  var unaccepted: [String] { waits.filter { $0.reason == .consent }.map(\.collection) }
}

extension FleetWait {
  /// Why it waits, and what to do, as a sentence without its end.
  var text: String {
    func command(_ words: String) -> String { "`\(CommandHint.text(words, operand: collection))`" }
    let name = DisplayText.escapingControls(collection)
    switch reason {
    case .consent: return "\(name) was shared after this host joined; take it with \(command("fleet accept"))"
    case .vaultLocked:
      return """
        \(name) is sealed, and the vault is locked; unlock it with `\(CommandHint.text("unlock"))`, or name its key with \
        --vault-key-file or PREFS_VAULT_KEY_FILE
        """
    case .notSealedHere:
      // With all its environments, also those that are not there yet.
      let parent = CollectionEnvironment(collection: collection)?.parent ?? collection
      let command = "`\(CommandHint.text("seal", operand: parent))`"
      return "\(name) is sealed in the fleet, and not here; seal it with \(command)"
    case .notSealedInFleet:
      return """
        \(name) is sealed here, and not in the fleet, so what is set here stays here; on an admin's host, seal it for all with \
        \(command("fleet seal"))
        """
    }
  }

  /// The exit code of a command that leaves it waiting.
  var exitStatus: ExitStatus { reason == .vaultLocked ? .keyUnavailable : .refused }

  var json: String {
    JSONText.object([
      ("collection", JSONText.quoted(collection)), ("reason", JSONText.quoted(reason.rawValue)),
    ])
  }
}

extension Fleet {
  /// Says what waits although this command has succeeded.
  func noteWaits(_ common: CommonOptions) throws {
    for wait in try status().held { common.note("\(wait.text).") }
  }
}
