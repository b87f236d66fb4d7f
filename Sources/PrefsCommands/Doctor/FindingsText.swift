import Coffer
import CofferMaintenance

/// The output of `doctor`.
package struct FindingsText {
  let findings: Findings

  package init(findings: Findings) { self.findings = findings }

  // MARK: - Text

  /// The findings for display.
  func summary(_ style: Style) -> String {
    var table = Table()
    table.add(["store", DisplayText.escapingControls(findings.path)])
    if let status = findings.status { addStatus(status, to: &table, style) }
    if let report = findings.report { addReport(report, to: &table, style) }
    var lines = table.lines()
    if findings.problems.isEmpty {
      lines.append(style.good("No problems found."))
      if findings.report == nil { lines.append(" Pages and values were not checked; use --deep for that.") }
      lines.append("\n")
    } else {
      lines += list(
        style.bad(DisplayText.count(findings.problems.count, "problem", "problems") + ":"), findings.problems)
    }
    if !findings.notes.isEmpty {
      lines += list(DisplayText.count(findings.notes.count, "note", "notes") + ":", findings.notes)
    }
    if findings.isDamaged {
      lines.append("To recover what is readable to a new store, run: \(CommandHint.text("salvage -o NEW"))\n")
    }
    return lines.joined()
  }

  private func list(_ title: String, _ sentences: [String]) -> [String] {
    [title + "\n"] + sentences.map { "  " + DisplayText.escapingControls($0) + "\n" }
  }

  private func addStatus(_ status: DatabaseStatus, to table: inout Table, _ style: Style) {
    let fine = style.good("ok")
    table.add(["format", "version \(status.formatVersion), store \(status.storeID)"])
    let byteCount = status.pageCount * status.pageSize
    table.add(["size", "\(DisplayText.count(status.pageCount, "page", "pages")), \(DisplayText.byteCount(byteCount))"])
    for (index, slot) in status.slots.enumerated() {
      table.add([index == 0 ? "opens with" : "", Self.describe(slot)])
    }
    if let keyFile = findings.keyFile { table.add(["key file", DisplayText.escapingControls(keyFile)]) }
    table.add(["permissions", findings.permissionProblems.isEmpty ? fine : style.bad("see below")])
    let isEnvelopeWhole = (status.damagedEnvelopeCopies + status.outdatedEnvelopeCopies).isEmpty
    table.add(["envelope", isEnvelopeWhole ? fine + ", both copies" : style.bad("see below")])
    let isLogWhole = status.log.isWhole && status.logProblem == nil
    table.add(["log", isLogWhole ? "\(fine), \(Self.describe(status.log))" : style.bad("see below")])
  }

  private func addReport(_ report: VerificationReport, to table: inout Table, _ style: Style) {
    if report.problems.isEmpty {
      let fine = style.good("ok")
      table.add(["pages", "\(fine), \(DisplayText.count(report.pageCount, "page", "pages")) authenticated"])
      let history = report.historicItemCount
      table.add([
        "values",
        "\(fine), \(DisplayText.count(report.itemCount, "value", "values")) decoded"
          + (history == 0 ? "" : ", and \(DisplayText.count(history, "earlier one", "earlier ones"))"),
      ])
      if let log = report.changeLog { table.add(["change log", "\(fine), \(ChangeLogText(report: log).summary)"]) }
    } else {
      table.add(["contents", style.bad("see below")])
    }
    let isRandom = report.entropyBitsPerByte >= Findings.leastEntropy
    let verdict = isRandom ? style.good("yes") : style.bad("no")
    let entropy = Self.rounded(report.entropyBitsPerByte)
    let least = Self.rounded(report.leastPageEntropyBitsPerByte)
    table.add([
      "encrypted", "\(verdict), \(entropy) of 8 bits of entropy per byte of the file, no page below \(least)",
    ])
  }

  private static func describe(_ slot: SlotInfo) -> String {
    let label = slot.label.isEmpty ? "" : " \"\(DisplayText.escapingControls(slot.label))\""
    return "\(slot.kind.rawValue)\(label); stretching: \(slot.costDescription); created \(Timestamp.text(slot.created))"
  }

  private static func describe(_ log: LogStatus) -> String {
    guard log.byteCount > 0 else { return "absent or empty" }
    let frames = DisplayText.count(log.frameCount, "frame", "frames")
    return "\(DisplayText.byteCount(log.byteCount)), \(frames) of complete commits"
  }

  /// Three decimals, without the start-up cost of a formatter.
  private static func rounded(_ number: Double) -> String {
    let thousandths = Int((number * 1000).rounded())
    let digits = String(thousandths % 1000)
    return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - digits.count) + digits
  }

  // MARK: - JSON

  /// The findings as JSON.
  package var json: String {
    var members: [(name: String, json: String)] = [
      ("path", JSONText.quoted(findings.path)), ("ok", findings.problems.isEmpty ? "true" : "false"),
      ("opens", findings.status == nil ? "false" : "true"),
    ]
    if let status = findings.status {
      members += [
        ("format", "\(status.formatVersion)"), ("store", JSONText.quoted(status.storeID)),
        ("pageSize", "\(status.pageSize)"), ("pages", "\(status.pageCount)"), ("logBytes", "\(status.logByteCount)"),
        ("log", Self.json(status.log)), ("snapshot", "\(status.lastCommit)"), ("epochs", "\(status.epochCount)"),
        ("slots", JSONText.array(status.slots.map(SlotText.json))),
        ("damagedEnvelopeCopies", JSONText.array(status.damagedEnvelopeCopies.map { "\($0)" })),
        ("outdatedEnvelopeCopies", JSONText.array(status.outdatedEnvelopeCopies.map { "\($0)" })),
      ]
    }
    if let keyFile = findings.keyFile { members.append(("keyFile", JSONText.quoted(keyFile))) }
    if let report = findings.report {
      members += [
        ("checkedPages", "\(report.pageCount)"), ("checkedValues", "\(report.itemCount)"),
        ("checkedEarlierValues", "\(report.historicItemCount)"),
        ("entropyBitsPerByte", Self.rounded(report.entropyBitsPerByte)),
        ("leastPageEntropyBitsPerByte", Self.rounded(report.leastPageEntropyBitsPerByte)),
      ]
    }
    members += [
      ("problems", JSONText.array(findings.problems.map(JSONText.quoted))),
      ("notes", JSONText.array(findings.notes.map(JSONText.quoted))),
      ("salvage", findings.isDamaged ? "true" : "false"),
    ]
    return JSONText.object(members)
  }

  private static func json(_ log: LogStatus) -> String {
    JSONText.object([
      ("bytes", "\(log.byteCount)"), ("frames", "\(log.frameCount)"), ("lostFrames", "\(log.lostFrameCount)"),
      ("headerDamaged", log.isHeaderDamaged ? "true" : "false"), ("whole", log.isWhole ? "true" : "false"),
    ])
  }
}
