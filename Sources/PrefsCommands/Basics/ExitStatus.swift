/// The exit codes of the tool: stable, and printed by `prefs --exit-codes`.
package enum ExitStatus: Int32, CaseIterable {
  case success = 0
  case other = 1
  case usage = 2
  case notFound = 3
  case storeNotFound = 4
  case wrongKey = 5
  case keyUnavailable = 6
  case integrity = 7
  case format = 8
  case conflict = 9
  case busy = 10
  case refused = 11
  case newerFormat = 12
  case managed = 13
  case inputOutput = 14
  case otherUser = 15
  case due = 16
  case rolledBack = 17
  case unreachable = 18
  case execFailed = 125
  case notExecutable = 126
  case commandNotFound = 127

  /// The meaning of the code, as printed by `--exit-codes`.
  var meaning: String {
    switch self {
    case .success: "success"
    case .other: "any other failure; diff: there are differences"
    case .usage: "wrong usage, or a secret given as an argument; diff: any other failure"
    case .notFound: "key or collection not found; fleet: no such fleet, member or conflict"
    case .storeNotFound: "store not found"
    case .wrongKey: "wrong key or passphrase"
    case .keyUnavailable: "key unavailable: missing file, failed command, no terminal to ask on, vault locked"
    case .integrity:
      "integrity failure: the store is damaged, doctor found a problem, or a fleet's carrier was rolled back or damaged"
    case .format: "type or format: a value does not parse or match its declaration, or a file is not a store"
    case .conflict:
      "conflict: --if-version or --if-absent failed, the store exists already, or declarations disagree"
    case .busy: "the store stayed busy for longer than --timeout"
    case .refused: "refused by policy"
    case .newerFormat: "the store was written by a newer version"
    case .managed: "locked by an administrator of this host"
    case .inputOutput: "disk full, permission denied, or an I/O error"
    case .otherUser: "the store, or its folder, belongs to another user"
    case .due: "list --due: items are due for renewal"
    case .rolledBack: "the store is older than the one last used here, or another one"
    case .unreachable: "fleet: the carrier cannot be reached"
    case .execFailed: "exec: prefs failed; otherwise the exit code is the program's"
    case .notExecutable: "exec: the program cannot be executed"
    case .commandNotFound: "exec: the program was not found"
    }
  }

  /// The code of `prefs exec` where another command would end with `code`: distinct from the codes of the program it
  /// runs.
  static func ofExec(_ code: Int32) -> Int32 {
    [success.rawValue, notExecutable.rawValue, commandNotFound.rawValue].contains(code) ? code : execFailed.rawValue
  }

  /// The code of `prefs diff` for differences, as in diff(1).
  static let differing: Int32 = 1

  /// The code of `prefs diff` where another command would end with `code`: distinct from that of differences.
  static func ofDiff(_ code: Int32) -> Int32 { code == differing ? usage.rawValue : code }

  /// The whole table, one code a line.
  static var table: String {
    var lines = allCases.map { status in
      let code = String(status.rawValue)
      return String(repeating: " ", count: max(0, 3 - code.count)) + code + "  " + status.meaning + "\n"
    }
    lines.append("128+N  ended by signal N\n")
    return lines.joined()
  }
}
