import Coffer
import CofferMaintenance

/// The report of a salvage.
struct SalvageText {
  let report: SalvageReport
  let source: String
  let output: String

  /// The maximum length of listed pages and items; `--json` has all of them.
  private static let listLimit = 50

  // MARK: - Text

  /// The report for display.
  func summary(_ style: Style) -> String {
    var table = Table()
    table.add(["read", DisplayText.escapingControls(source)])
    table.add(["written", DisplayText.escapingControls(output)])
    let items = DisplayText.count(report.itemCount, "item", "items")
    let history = report.historicItemCount
    table.add([
      "saved",
      "\(items) in \(DisplayText.count(report.collectionCount, "collection", "collections"))"
        + (history == 0 ? "" : ", \(DisplayText.count(history, "earlier value", "earlier values"))"),
    ])
    let damaged = report.damagedPageCount
    table.add([
      "pages",
      "\(report.pageCount), "
        + (damaged == 0 ? style.good("all intact") : style.bad("\(damaged) of them damaged")),
    ])
    if let log { table.add(["log", log]) }
    if let envelope { table.add(["envelope", envelope]) }
    return (table.lines() + damagedPages + renamedCollections + lostItems + [verdict(style)]).joined()
  }

  private var log: String? {
    guard report.logFrameCount + report.lostLogFrameCount > 0 else { return nil }
    let used = DisplayText.count(report.logFrameCount, "frame", "frames") + " used"
    return report.lostLogFrameCount == 0 ? used : used + ", \(report.lostLogFrameCount) lost"
  }

  private var envelope: String? {
    report.damagedEnvelopeCopies.first.map { "copy \($0) is damaged or outdated, the other one was used" }
  }

  private var damagedPages: [String] {
    list("Damaged pages:", report.damagedPages) { pages in
      let range = pages.numbers
      let numbers = range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
      return "\(numbers): \(Self.words(pages.contents)); \(pages.reason)"
    }
  }

  private static func words(_ contents: SalvageReport.Contents) -> String {
    switch contents {
    case .items: "held items"
    case .history: "held earlier values"
    case .collections: "held names of collections"
    case .vault: "held the vault of sealed collections"
    case .changeLog: "held the change log, which starts again"
    case .declarations: "held declarations, which programs make again"
    case .structure: "held what was rebuilt"
    case .nothing: "was free"
    case .unknown: "may have held anything"
    }
  }

  private var renamedCollections: [String] {
    list("New names of collections whose names are lost:", report.renamedCollections) { $0 }
  }

  private var lostItems: [String] {
    list("Known to be lost:", report.lostItems) { item in
      let name = item.collection.isEmpty ? item.key : "\(item.collection)/\(item.key)"
      let part =
        switch item.part {
        case .item: ""
        case .metadata: " (its metadata)"
        case .earlierValue: " (an earlier value)"
        }
      return "\(name)\(part): \(item.reason)"
    }
  }

  private func list<Element>(_ title: String, _ elements: [Element], _ text: (Element) -> String) -> [String] {
    guard !elements.isEmpty else { return [] }
    var lines = elements.prefix(Self.listLimit).map { "  " + DisplayText.escapingControls(text($0)) + "\n" }
    let rest = elements.count - lines.count
    if rest > 0 { lines.append("  and \(rest) more, which --json lists\n") }
    return [title + "\n"] + lines
  }

  private func verdict(_ style: Style) -> String {
    guard !report.isComplete else {
      return style.good("Everything on its pages was saved") + "; the change log begins again.\n"
    }
    var reasons: [String] = []
    if !report.lostItems.isEmpty { reasons.append("what is listed above") }
    if report.damagedPages.contains(where: { [.items, .unknown].contains($0.contents) }) {
      reasons.append("anything else on the damaged pages")
    }
    if !report.isPageCountKnown {
      reasons.append("what was on further pages, if it had any: it no longer says how many")
    }
    if report.lostLogFrameCount > 0 { reasons.append("the commits in the lost frames of the log") }
    if reasons.isEmpty { reasons.append("the names, the earlier values, or the declarations on the damaged pages") }
    return style.bad("Something is lost:") + " " + reasons.joined(separator: ", and ") + ".\n"
  }

  // MARK: - JSON

  /// The report as JSON.
  var json: String {
    JSONText.object([
      ("source", JSONText.quoted(source)), ("output", JSONText.quoted(output)),
      ("complete", report.isComplete ? "true" : "false"),
      ("pages", "\(report.pageCount)"), ("pageCountKnown", report.isPageCountKnown ? "true" : "false"),
      ("damagedPageCount", "\(report.damagedPageCount)"),
      ("damagedPages", JSONText.array(report.damagedPages.map(Self.json))),
      ("damagedEnvelopeCopies", JSONText.array(report.damagedEnvelopeCopies.map { "\($0)" })),
      ("logFrames", "\(report.logFrameCount)"), ("lostLogFrames", "\(report.lostLogFrameCount)"),
      ("collections", "\(report.collectionCount)"), ("items", "\(report.itemCount)"),
      ("earlierValues", "\(report.historicItemCount)"),
      ("lostItems", JSONText.array(report.lostItems.map(Self.json))),
      ("renamedCollections", JSONText.array(report.renamedCollections.map(JSONText.quoted))),
    ])
  }

  private static func json(_ pages: SalvageReport.DamagedPages) -> String {
    JSONText.object([
      ("first", "\(pages.numbers.lowerBound)"), ("last", "\(pages.numbers.upperBound)"),
      ("contents", JSONText.quoted(pages.contents.rawValue)), ("reason", JSONText.quoted(pages.reason)),
    ])
  }

  private static func json(_ item: SalvageReport.LostItem) -> String {
    JSONText.object([
      ("collection", JSONText.quoted(item.collection)), ("key", JSONText.quoted(item.key)),
      ("part", JSONText.quoted(item.part.rawValue)), ("reason", JSONText.quoted(item.reason)),
    ])
  }
}
