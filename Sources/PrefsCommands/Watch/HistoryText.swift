import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A list of earlier values.
package struct HistoryText {
  let items: ArraySlice<HistoricItem>
  let isSealed: Bool
  /// Whether the setting is declared as a secret.
  let isSecret: Bool
  let redaction: Redaction

  package init(items: ArraySlice<HistoricItem>, isSealed: Bool, isSecret: Bool, redaction: Redaction) {
    (self.items, self.isSealed, self.isSecret, self.redaction) = (items, isSealed, isSecret, redaction)
  }

  /// Version, when it was set, when it ended, value.
  var fields: [[String]] {
    items.map { item in
      [
        "\(item.version)", Timestamp.text(item.modified), Timestamp.text(item.ended),
        ValueText.text(redaction.shown(item.value, isSealed: isSealed, isSecret: isSecret)),
      ]
    }
  }

  /// The same as a table.
  func lines(_ style: Style) -> [String] {
    var table = Table()
    if !items.isEmpty { table.add(["VERSION", "SET", "ENDED", "AUTHOR", "VALUE"]) }
    for (item, fields) in zip(items, fields) {
      let end = fields[2] + (item.hasExpired ? " expired" : "")
      let row = [fields[0], fields[1], end, item.author?.description ?? "", fields[3]]
      table.add(row.map { DisplayText.escapingControls($0) })
    }
    return table.lines(rightAligned: [0]) { column, cell in column == 4 ? cell : style.faint(cell) }
  }

  /// One array.
  package var json: String {
    JSONText.array(
      items.map { item in
        JSONText.object(
          [
            ("collection", JSONText.quoted(item.collection)),
            ("key", JSONText.quoted(item.key)),
            ("type", JSONText.quoted(redaction.kind(item.value, isSealed: isSealed).name)),
          ] + ItemJSON.value(redaction.shown(item.value, isSealed: isSealed, isSecret: isSecret)) + [
            ("version", "\(item.version)"),
            ("modified", JSONText.quoted(Timestamp.text(item.modified))),
            ("endVersion", "\(item.endVersion)"),
            ("ended", JSONText.quoted(Timestamp.text(item.ended))),
            ("expired", item.hasExpired ? "true" : "false"),
            ("author", item.author.map(ChangeText.json) ?? "null"),
            ("endedBy", item.endedBy.map(ChangeText.json) ?? "null"),
          ])
      })
  }
}
