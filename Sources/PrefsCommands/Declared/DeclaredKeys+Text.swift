import Coffer

extension DeclaredKeys.Setting {
  /// The applications that declare it, on one line.
  package var ownerText: String {
    owners.map { owner in owner.version.map { "\(owner.application) \($0)" } ?? owner.application }
      .joined(separator: ", ")
  }

  /// The members of a JSON object that are the same in every command.
  var ownerJSON: String {
    JSONText.array(
      owners.map { owner in
        JSONText.object([
          ("application", JSONText.quoted(owner.application)),
          ("version", owner.version.map(JSONText.quoted) ?? "null"),
        ])
      })
  }
}
