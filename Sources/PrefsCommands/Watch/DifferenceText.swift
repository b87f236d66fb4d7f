import Coffer
import CofferMaintenance

/// Differences between two collections as text.
struct DifferenceText {
  let collection: String
  let otherCollection: String
  let differences: [ItemDifference]
  /// What is in force instead of stored values that differ, as sentences.
  let locks: [String]

  /// One line per key.
  var lines: [String] {
    differences.map { difference in
      let name =
        collection.utf8.elementsEqual(otherCollection.utf8)
        ? KeyText.of(difference.key, in: collection) : difference.key
      return DisplayText.escapingControls("\(Self.mark(difference)) \(name): \(Self.text(difference))")
    }
  }

  /// One object per key.
  var objects: [String] {
    differences.map { difference in
      JSONText.object([
        ("change", JSONText.quoted(Self.word(difference))), ("collection", JSONText.quoted(collection)),
        ("otherCollection", JSONText.quoted(otherCollection)), ("key", JSONText.quoted(difference.key)),
        ("beforeType", Self.type(difference.before)), ("before", Self.json(difference.before, difference)),
        ("afterType", Self.type(difference.after)), ("after", Self.json(difference.after, difference)),
        ("secret", difference.isSecret ? "true" : "false"), ("value", difference.isOfValue ? "true" : "false"),
        ("metadata", difference.isOfMetadata ? "true" : "false"),
      ])
    }
  }

  // MARK: - Parts

  private static func mark(_ difference: ItemDifference) -> String {
    difference.before == nil ? "+" : difference.after == nil ? "-" : "~"
  }

  private static func word(_ difference: ItemDifference) -> String {
    difference.before == nil ? "added" : difference.after == nil ? "removed" : "changed"
  }

  private static func text(_ difference: ItemDifference) -> String {
    guard let before = difference.before, let after = difference.after else {
      return [difference.before, difference.after].compactMap { $0.map { json($0, difference) } }.joined()
    }
    guard !difference.isSecret else {
      let parts = (difference.isOfValue ? ["secret"] : []) + (difference.isOfMetadata ? ["metadata"] : [])
      return "\(parts.joined(separator: " and ")) \(parts == ["secret"] ? "differs" : "differ")"
    }
    var parts: [String] = []
    if difference.isOfValue { parts.append(step(before.value, after.value)) }
    if difference.isOfMetadata {
      parts.append("metadata " + step(before.metadata, after.metadata))
    }
    return parts.joined(separator: ", ")
  }

  /// Both values; with their types if only those differ.
  private static func step(_ before: Value?, _ after: Value?) -> String {
    let texts = [before, after].map { $0.map { JSONText.text($0, bigIntegers: .strings) } ?? "none" }
    guard texts[0] == texts[1] else { return texts.joined(separator: " -> ") }
    return zip([before, after], texts).map { "\($0?.kind.name ?? "no") \($1)" }.joined(separator: " -> ")
  }

  private static func type(_ item: ComparedValue?) -> String {
    item.map { JSONText.quoted($0.value.kind.name) } ?? "null"
  }

  /// The value, if it may be shown.
  private static func json(_ item: ComparedValue?, _ difference: ItemDifference) -> String {
    guard let item else { return "null" }
    let shown = Redaction(reveals: false)
      .shown(item.value, isSealed: difference.isSealed, isSecret: difference.isDeclaredSecret)
    return JSONText.text(shown, bigIntegers: .strings)
  }
}
