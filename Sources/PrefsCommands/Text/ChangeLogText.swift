import CofferMaintenance

/// What `log --verify` and `doctor` say about a change log without problems.
struct ChangeLogText {
  let report: ChangeLogReport

  /// One sentence for what it holds, and one for what vouches for that.
  var verdict: String {
    let voucher =
      switch report.recordedCommit {
      case nil:
        "Only its chain vouches for it: \(absence), and anyone with the store's key can rebuild a chain."
      case let recorded? where recorded == report.commits?.upperBound:
        "Its chain vouches for it, and the freshness record for the chain."
      case let recorded?:
        "Its chain vouches for it, and the freshness record for the chain up to commit \(recorded)."
      }
    return "The log is \(state): \(contents). \(voucher)\n"
  }

  /// The same in few words.
  var summary: String {
    let voucher = report.recordedCommit == nil ? "its chain alone" : "its chain and the freshness record"
    return "\(contents), by \(voucher)" + (report.emptiedCount == 0 ? "" : "; \(erasures)")
  }

  /// Why no record vouches for the log.
  private var absence: String {
    guard let passed = report.passedCommit else { return "no freshness record has its end" }
    return "the freshness record has commit \(passed), which is no longer in the log"
  }

  private var contents: String {
    DisplayText.count(report.count, "commit", "commits")
      + (report.commits.map { ", \($0.lowerBound) to \($0.upperBound)" } ?? "")
  }

  private var state: String {
    report.emptiedCount == 0 ? "intact" : "whole, without what was erased (\(erasures))"
  }

  private var erasures: String {
    let commits = report.erasures.map { "\($0)" }
    return "keys of \(DisplayText.count(report.emptiedCount, "commit", "commits")) by "
      + (commits.count == 1 ? "commit " : "commits ") + commits.joined(separator: ", ")
  }
}
