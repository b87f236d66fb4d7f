import Coffer

/// What an import has come to, in words.
struct ImportText {
  let report: PlainImportReport
  let isDryRun: Bool

  /// The report for people.
  var summary: String {
    let items = DisplayText.count(report.itemCount, "item", "items")
    let collections = DisplayText.count(report.collections.count, "collection", "collections")
    var lines = [
      "\(items) in \(collections): \(report.insertedCount) new, \(report.updatedCount) changed, "
        + "\(report.unchangedCount) as they were"
        + (report.removedCount == 0 ? "" : "; \(DisplayText.count(report.removedCount, "other", "others")) removed")
    ]
    if report.opaqueCount > 0 {
      lines.append(
        "\(DisplayText.count(report.opaqueCount, "value is", "values are")) in a form of the application's own, kept as data"
      )
    }
    if isDryRun { lines.append("Nothing was changed.") }
    return lines.joined(separator: "\n") + "\n"
  }

  /// The report for programs.
  var json: String {
    JSONText.object([
      ("dryRun", isDryRun ? "true" : "false"), ("items", "\(report.itemCount)"), ("new", "\(report.insertedCount)"),
      ("changed", "\(report.updatedCount)"), ("unchanged", "\(report.unchangedCount)"),
      ("removed", "\(report.removedCount)"), ("data", "\(report.opaqueCount)"),
      ("collections", JSONText.array(report.collections.map(JSONText.quoted))),
    ])
  }
}
