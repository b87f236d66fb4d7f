import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Entries as JSON objects, with their members always in the same order.
package enum ItemJSON {
  /// A stored entry, as printed by `get --json`: secrets are plaintext.
  ///
  /// - Parameter problem: What is wrong with bad values that take precedence over this one.
  static func text(_ item: Item, origin: String, problem: String?) -> String {
    JSONText.object(
      [
        ("collection", JSONText.quoted(item.collection)),
        ("key", JSONText.quoted(item.key)),
        ("type", JSONText.quoted(item.value.kind.name)),
      ] + value(ValueText.revealed(item.value)) + [
        ("version", "\(item.version)"),
        ("modified", JSONText.quoted(Timestamp.text(item.modified))),
      ] + dates(item.expires, item.due) + ending(origin, problem))
  }

  /// The members for an expiry and a due date, if set.
  private static func dates(_ expires: Date?, _ due: Date?) -> [(name: String, json: String)] {
    [("expires", expires), ("due", due)].compactMap { name, date in
      date.map { (name, JSONText.quoted(Timestamp.text($0))) }
    }
  }

  /// A value that is not stored, in the same form.
  static func text(_ reference: KeyReference, _ value: Value, origin: String, problem: String?) -> String {
    JSONText.object(
      [
        ("collection", JSONText.quoted(reference.collection)),
        ("key", JSONText.quoted(reference.key)),
        ("type", JSONText.quoted(value.kind.name)),
      ] + Self.value(value) + [
        ("version", "null"),
        ("modified", "null"),
      ] + ending(origin, problem))
  }

  private static func ending(_ origin: String?, _ problem: String?) -> [(name: String, json: String)] {
    [("origin", origin), ("problem", problem)].compactMap { name, text in text.map { (name, JSONText.quoted($0)) } }
  }

  /// An entry of a list, with or without its value.
  ///
  /// - Parameter info: nil for a setting that is declared but not set.
  static func text(
    _ key: String, _ collection: String, _ info: ItemInfo?, kind: String, value: Value?, origin: String?,
    problem: String? = nil
  ) -> String {
    let members = members(key, collection, info, kind: kind, value: value, origin: origin)
    return JSONText.object(members + ending(nil, problem))
  }

  /// The members of an entry of a list, to which callers add.
  package static func members(
    _ key: String, _ collection: String, _ info: ItemInfo?, kind: String, value: Value?, origin: String?
  ) -> [(name: String, json: String)] {
    var members: [(name: String, json: String)] = [
      ("collection", JSONText.quoted(collection)),
      ("key", JSONText.quoted(key)),
      ("type", JSONText.quoted(kind)),
      ("size", info.map { "\($0.byteCount)" } ?? "null"),
    ]
    if let value { members += Self.value(value) }
    members += [
      ("version", info.map { "\($0.version)" } ?? "null"),
      ("modified", info.map { JSONText.quoted(Timestamp.text($0.modified)) } ?? "null"),
    ]
    members += dates(info?.expires, info?.due)
    if let origin { members.append(("origin", JSONText.quoted(origin))) }
    return members
  }

  /// The members that hold a value.
  static func value(_ value: Value) -> [(name: String, json: String)] {
    var members = [(name: "value", json: JSONText.text(value, bigIntegers: .strings))]
    if case .data = value { members.append(("encoding", JSONText.quoted("base64"))) }
    return members
  }
}
