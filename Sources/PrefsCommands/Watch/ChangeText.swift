import Coffer

/// Changes as lines.
package struct ChangeText {
  enum Form {
    case text, json, plain
  }

  /// A value to show, and the name of its type.
  struct Shown {
    let kind: Value.Kind
    let value: Value
  }

  let form: Form

  func line(_ change: KeyChange, _ shown: Shown?) -> String {
    switch form {
    case .json: json(change, shown)
    case .plain: plain(change, shown)
    case .text: text(change, shown)
    }
  }

  private func text(_ change: KeyChange, _ shown: Shown?) -> String {
    var words = [change.place, DisplayText.escapingControls(change.what)]
    if change.action == nil, let collection = change.collection {
      words.append(DisplayText.escapingControls(KeyText.of(change.key ?? "", in: collection)))
    }
    if let shown { words.append(DisplayText.escapingControls(ValueText.text(shown.value))) }
    return words.joined(separator: "  ") + "\n"
  }

  private func plain(_ change: KeyChange, _ shown: Shown?) -> String {
    var fields = [change.place, change.what, change.collection ?? "", change.key ?? ""]
    if let shown { fields.append(ValueText.text(shown.value)) }
    return DisplayText.record(fields)
  }

  private func json(_ change: KeyChange, _ shown: Shown?) -> String { object(change, shown) + "\n" }

  /// One JSON object.
  func object(_ change: KeyChange, _ shown: Shown? = nil) -> String {
    let what = change.action == nil ? change.what : "action"
    var members = [(name: "sequence", json: "\(change.commit)")]
    if let position = change.position { members.append(("position", JSONText.quoted(position.description))) }
    members.append(("change", JSONText.quoted(what)))
    if let collection = change.collection { members.append(("collection", JSONText.quoted(collection))) }
    if let key = change.key { members.append(("key", JSONText.quoted(key))) }
    if let action = change.action { members.append(("action", JSONText.quoted(action))) }
    if let shown { members += [("type", JSONText.quoted(shown.kind.name))] + ItemJSON.value(shown.value) }
    if let time = change.time { members.append(("time", JSONText.quoted(Timestamp.text(time)))) }
    if let author = change.author { members.append(("author", Self.json(author))) }
    return JSONText.object(members)
  }

  package static func json(_ author: Author) -> String {
    JSONText.object([
      ("program", JSONText.quoted(author.program)), ("user", JSONText.quoted(author.user)),
      ("host", JSONText.quoted(author.host)), ("actor", author.actor.map(JSONText.quoted) ?? "null"),
    ])
  }
}

/// The values that go with changes.
struct ShownValues {
  let session: CommandSession
  let database: Database
  let connection: Connection
  let redaction: Redaction

  /// The key's current value; nil when it has none.
  func value(for change: KeyChange) throws -> ChangeText.Shown? {
    guard let collection = change.collection, let key = change.key else { return nil }
    return try session.unlocking(database) {
      try connection.read { try shown(key, collection, $0) }
    }
  }

  private func shown(
    _ key: String, _ collection: String, _ transaction: borrowing ReadTransaction
  ) throws -> ChangeText.Shown? {
    guard let info = try transaction.info(forKey: key, inCollection: collection) else { return nil }
    let isSealed = info.kind == .sealed
    // A hidden value need not be opened.
    if isSealed, !redaction.reveals {
      return ChangeText.Shown(kind: .sealed, value: Redaction.sealed(byteCount: info.byteCount))
    }
    let isSecret = try transaction.isDeclaredSecret(key, inCollection: collection)
    return try transaction.value(forKey: key, inCollection: collection).map { value in
      ChangeText.Shown(kind: value.kind, value: redaction.shown(value, isSealed: isSealed, isSecret: isSecret))
    }
  }
}
