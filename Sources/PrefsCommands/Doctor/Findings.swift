import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What `doctor` found out about a store.
struct Findings {
  private let path: String
  private var status: DatabaseStatus?
  private var report: VerificationReport?

  /// What is wrong, a sentence each.
  private(set) var problems: [String] = []

  /// Below this the bytes of a file of some size are not random, and so are not encrypted.
  private static let leastEntropy = 7.5

  /// Up to this size a store is always read whole: it takes a fraction of a second.
  private static let quickByteCount = 64 << 20

  /// Examines a store that opens.
  init(of database: Database, deep: Bool, progress: ProgressBar) throws {
    let status = try database.status()
    self.status = status
    path = status.path
    problems += status.fileProblems
    problems += status.damagedEnvelopeCopies.map { copy in
      "Copy \(copy) of the envelope is damaged. The other is sound; the next change of a key slot writes it anew."
    }
    guard deep || status.pageCount * status.pageSize <= Self.quickByteCount else { return }
    defer { progress.finish() }
    let report = try database.verify { progress.show($0, of: "checking") }
    self.report = report
    problems += report.problems
    if report.entropyBitsPerByte < Self.leastEntropy {
      problems.append("The bytes of the file are not random, as encrypted ones are.")
    }
  }

  /// A store that is too damaged to be opened.
  init(path: String, problem: String) {
    self.path = path
    problems = [problem]
  }

  // MARK: - Text

  /// The findings for people.
  func text(_ style: Style) -> String {
    var table = Table()
    table.add(["store", DisplayText.escapingControls(path)])
    if let status { addStatus(status, to: &table, style) }
    if let report { addReport(report, to: &table, style) }
    var lines = table.lines()
    if problems.isEmpty {
      lines.append(style.good("No problems found."))
      if report == nil { lines.append(" Pages and values were not checked; --deep does that.") }
      lines.append("\n")
    } else {
      lines.append(style.bad(DisplayText.count(problems.count, "problem", "problems") + ":") + "\n")
      lines += problems.map { "  " + DisplayText.escapingControls($0) + "\n" }
    }
    return lines.joined()
  }

  private func addStatus(_ status: DatabaseStatus, to table: inout Table, _ style: Style) {
    let fine = style.good("ok")
    table.add(["format", "version \(status.formatVersion), store \(status.storeID)"])
    let byteCount = status.pageCount * status.pageSize
    table.add([
      "size",
      "\(DisplayText.count(status.pageCount, "page", "pages")), \(DisplayText.byteCount(byteCount)); "
        + "log \(DisplayText.byteCount(status.logByteCount))",
    ])
    for (index, slot) in status.slots.enumerated() {
      table.add([index == 0 ? "opens with" : "", Self.describe(slot)])
    }
    table.add(["permissions", status.fileProblems.isEmpty ? fine : style.bad("see below")])
    table.add(["envelope", status.damagedEnvelopeCopies.isEmpty ? fine + ", both copies" : style.bad("see below")])
  }

  private func addReport(_ report: VerificationReport, to table: inout Table, _ style: Style) {
    if report.problems.isEmpty {
      let fine = style.good("ok")
      table.add(["pages", "\(fine), \(DisplayText.count(report.pageCount, "page", "pages")) authenticated"])
      table.add(["values", "\(fine), \(DisplayText.count(report.itemCount, "value", "values")) decoded"])
    } else {
      table.add(["contents", style.bad("see below")])
    }
    let isRandom = report.entropyBitsPerByte >= Self.leastEntropy
    let verdict = isRandom ? style.good("yes") : style.bad("no")
    let entropy = Self.rounded(report.entropyBitsPerByte)
    table.add(["encrypted", "\(verdict), \(entropy) of 8 bits of entropy in a byte of the file"])
  }

  private static func describe(_ slot: SlotInfo) -> String {
    let kind = slot.kind == .passphrase ? "passphrase" : "key file"
    let label = slot.label.isEmpty ? "" : " \"\(DisplayText.escapingControls(slot.label))\""
    return "\(kind)\(label); stretching: \(slot.costDescription); since \(Timestamp.text(slot.created))"
  }

  /// Three digits after the point, without what formatting would cost at start-up.
  private static func rounded(_ number: Double) -> String {
    let thousandths = Int((number * 1000).rounded())
    let digits = String(thousandths % 1000)
    return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - digits.count) + digits
  }

  // MARK: - JSON

  /// The findings for programs.
  var json: String {
    var members: [(name: String, json: String)] = [
      ("path", JSONText.quoted(path)), ("ok", problems.isEmpty ? "true" : "false"),
    ]
    if let status {
      members += [
        ("format", "\(status.formatVersion)"), ("store", JSONText.quoted(status.storeID)),
        ("pageSize", "\(status.pageSize)"), ("pages", "\(status.pageCount)"), ("logBytes", "\(status.logByteCount)"),
        ("snapshot", "\(status.snapshot)"), ("slots", JSONText.array(status.slots.map(Self.json))),
      ]
    }
    if let report {
      members += [
        ("checkedPages", "\(report.pageCount)"), ("checkedValues", "\(report.itemCount)"),
        ("entropyBitsPerByte", Self.rounded(report.entropyBitsPerByte)),
      ]
    }
    members.append(("problems", JSONText.array(problems.map(JSONText.quoted))))
    return JSONText.object(members)
  }

  private static func json(_ slot: SlotInfo) -> String {
    JSONText.object([
      ("id", "\(slot.id)"), ("kind", JSONText.quoted(slot.kind == .passphrase ? "passphrase" : "keyFile")),
      ("cost", JSONText.quoted(slot.costDescription)), ("label", JSONText.quoted(slot.label)),
      ("created", JSONText.quoted(Timestamp.text(slot.created))),
    ])
  }
}
