import Coffer
import CofferMaintenance

/// The report of an import.
struct ImportText {
  let report: PlainImportReport
  let isDryRun: Bool
  /// How changed values are redacted.
  let redaction: Redaction

  /// The report for display.
  var summary: String {
    let items = DisplayText.count(report.itemCount, "item", "items")
    let collections = DisplayText.count(report.collections.count, "collection", "collections")
    var lines = report.changes.map(line)
    lines.append(
      "\(items) in \(collections): \(report.insertedCount) new, \(report.updatedCount) changed, "
        + "\(report.unchangedCount) unchanged"
        + (report.removedCount == 0 ? "" : "; \(DisplayText.count(report.removedCount, "other", "others")) removed"))
    if report.declaredCount > 0 {
      lines.append("\(DisplayText.count(report.declaredCount, "setting", "settings")) declared")
    }
    if report.opaqueCount > 0 {
      lines.append(
        "\(DisplayText.count(report.opaqueCount, "value is", "values are")) in a format of the application, kept as data"
      )
    }
    if report.expiredCount > 0 {
      lines.append(
        "\(DisplayText.count(report.expiredCount, "item has expired, and is", "items have expired, and are")) left out")
    }
    let kept = report.redactedCount - report.missing.count
    if kept > 0 { lines.append("\(DisplayText.count(kept, "secret", "secrets")) hidden in the file, left unchanged") }
    if let missing { lines.append(missing) }
    lines += report.locks.map(DisplayText.escapingControls)
    if isDryRun { lines.append("Nothing was changed.") }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Prints the report: JSON and what a dry run finds, which were asked for, on standard output, and else a message.
  func write(asJSON: Bool, _ talking: some Talking) throws {
    if isDryRun { return try StandardOutput.write(asJSON ? json + "\n" : summary) }
    if asJSON { return try StandardOutput.report(json + "\n", of: "the settings are saved") }
    if !talking.quiet { Message.write(summary) } else if let missing { Message.error(missing) }
  }

  /// The secrets that neither the file nor the store has.
  private var missing: String? {
    guard !report.missing.isEmpty else { return nil }
    let names = report.missing.map { DisplayText.escapingControls(KeyText.of($0.key, in: $0.collection)) }
    return "\(DisplayText.count(names.count, "secret", "secrets")) hidden in the file and missing here: "
      + "\(names.joined(separator: ", ")). Set each with prefs set, or export with --reveal."
  }

  /// The report as JSON.
  var json: String {
    JSONText.object(
      [
        ("dryRun", isDryRun ? "true" : "false"), ("items", "\(report.itemCount)"), ("new", "\(report.insertedCount)"),
        ("changed", "\(report.updatedCount)"), ("unchanged", "\(report.unchangedCount)"),
        ("removed", "\(report.removedCount)"), ("data", "\(report.opaqueCount)"),
        ("redacted", "\(report.redactedCount)"), ("expired", "\(report.expiredCount)"),
        ("declared", "\(report.declaredCount)"),
        (
          "missing",
          JSONText.array(report.missing.map { JSONText.quoted(KeyText.of($0.key, in: $0.collection)) })
        ),
        ("collections", JSONText.array(report.collections.map(JSONText.quoted))),
      ] + (isDryRun ? [("changes", JSONText.array(report.changes.map(object)))] : []))
  }

  // MARK: - Changes

  private func line(_ change: PlainImportReport.Change) -> String {
    let name = change.collection.isEmpty ? change.key : "\(change.collection)/\(change.key)"
    let values = [change.before, change.after].compactMap { $0.map { shown($0, change) } }.joined(separator: " -> ")
    let mark = change.before == nil ? "+" : change.after == nil ? "-" : "~"
    return "\(mark) \(DisplayText.escapingControls(name)): \(values)"
  }

  private func object(_ change: PlainImportReport.Change) -> String {
    let word = change.before == nil ? "added" : change.after == nil ? "removed" : "changed"
    return JSONText.object([
      ("change", JSONText.quoted(word)), ("collection", JSONText.quoted(change.collection)),
      ("key", JSONText.quoted(change.key)), ("before", change.before.map { shown($0, change) } ?? "null"),
      ("after", change.after.map { shown($0, change) } ?? "null"),
    ])
  }

  private func shown(_ value: Value, _ change: PlainImportReport.Change) -> String {
    JSONText.text(redaction.shown(value, isSealed: change.isSealed, isSecret: change.isSecret), bigIntegers: .strings)
  }
}
