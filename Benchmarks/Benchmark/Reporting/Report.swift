import Foundation

/// The results in Markdown, and in charts.
struct Report {
  let results: Results
  let rounds: Int

  /// The targets: the median of the rounds' ratios, the lowest and the highest.
  func targets() -> String {
    var lines = ["| row | claim | ratio | target | |", "| --- | --- | --- | --- | --- |"]
    for goal in results.goals {
      guard let ratio = results.ratio(goal.series, beside: goal.reference) else { continue }
      let (target, verdict) =
        switch goal.limit {
        case .atMost(let limit): ("≤ \(limit)", ratio.median <= limit ? "reached" : "missed")
        case .atLeast(let limit): ("≥ \(limit)", ratio.median >= limit ? "reached" : "missed")
        case .described(let words): (words, "")
        }
      lines.append("| \(goal.series.work.row) | \(goal.claim) | \(ratio.text) | \(target) | \(verdict) |")
    }
    for bound in results.bounds {
      guard let summary = results.summary(bound.series) else { continue }
      let (work, unit) = (bound.series.work, bound.series.work.unit.rawValue)
      let verdict = summary.median <= bound.maximum ? "reached" : "missed"
      lines.append(
        "| \(work.row) | \(work.name) | \(summary.text) \(unit) | ≤ \(Summary.text(bound.maximum)) \(unit) | \(verdict) |"
      )
    }
    return lines.joined(separator: "\n")
  }

  /// Works without a chart: each contender, beside the baseline.
  func figures() -> String {
    var lines = ["| row | work | contender | median (lowest–highest) | | beside | ratio |"]
    lines.append("| --- | --- | --- | ---: | --- | --- | ---: |")
    for series in results.series where series.work.point == nil {
      guard let summary = results.summary(series) else { continue }
      let work = series.work
      let ratio = work.baseline.flatMap { baseline in
        baseline == series.contender
          ? nil : results.ratio(series, beside: Series(work: work, contender: baseline)).map { (baseline, $0.text) }
      }
      lines.append(
        "| \(work.row) | \(work.name) | \(series.contender) | \(summary.text) | \(work.unit.rawValue) "
          + "| \(ratio?.0 ?? "") | \(ratio?.1 ?? "") |")
    }
    return lines.joined(separator: "\n")
  }

  /// The medians of each chart, a line for each contender.
  func curves(picturesIn folder: String?) -> String {
    charts.map { chart in
      let columns = Set(chart.lines.flatMap { $0.points.map(\.x) }).sorted()
      var lines = ["### \(chart.work.title), \(chart.work.unit.rawValue)\n"]
      if let folder { lines.append("![\(chart.work.title) by \(chart.work.axis)](\(folder)/\(chart.work.name).svg)\n") }
      lines.append("| \(chart.work.axis) | " + columns.map { Int($0).grouped }.joined(separator: " | ") + " |")
      lines.append("| --- |" + columns.map { _ in " ---: |" }.joined())
      for line in chart.lines {
        let cells = columns.map { column in
          line.points.first { $0.x == column }.map { Summary.text($0.y) } ?? ""
        }
        lines.append("| \(line.name) | " + cells.joined(separator: " | ") + " |")
      }
      return lines.joined(separator: "\n")
    }.joined(separator: "\n\n")
  }

  var charts: [LineChart] {
    var charts: [LineChart] = []
    for series in results.series {
      guard let point = series.work.point, let summary = results.summary(series) else { continue }
      let index = charts.firstIndex { $0.work == point.chart } ?? charts.endIndex
      if index == charts.endIndex { charts.append(LineChart(work: point.chart)) }
      charts[index].add(Double(point.x), summary.median, to: series.contender)
    }
    return charts
  }

  /// Writes `RESULTS.md` and the pictures below `folder`.
  func write(into folder: String, environment: [(String, String)]) throws {
    let pictures = "Results"
    try FileManager.default.createDirectory(atPath: "\(folder)/\(pictures)", withIntermediateDirectories: true)
    for chart in charts {
      try Data(chart.svg().utf8).write(to: URL(fileURLWithPath: "\(folder)/\(pictures)/\(chart.work.name).svg"))
    }
    let facts = environment.map { "| \($0.0) | \($0.1) |" }.joined(separator: "\n")
    let text = """
      # Results

      Written by `make bench`. In each round every contender does each work once, and another one begins. Figures are medians
      of \(rounds) rounds with the lowest and the highest; curves, and contenders that take long, are medians of 3. A ratio is
      taken in each round, and its median shown. Whatever is read or written is checked: a contender that fails ends the run.

      | | |
      | --- | --- |
      \(facts)

      ## Targets

      \(targets())

      ## Figures

      \(Self.notes)

      \(figures())

      ## Growth

      The same \(UsedStore.keyCount) keys of so many, or of 100 with values of so many bytes: reads, and sets and commits that
      change each value. Both axes are logarithmic.

      \(curves(picturesIn: pictures))

      """
    try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/RESULTS.md"))
  }

  private static let notes = """
    Values are texts of 100 bytes, unless they are integers. Files have pages of 4,096 bytes. Plain SQLite executes
    Coffer's own statements, change log included; GRDB, SQLCipher and SQLite3 Multiple Ciphers have one table and no change log, but for
    the contender named so. They are used by raw key, with their defaults, and update first where the last key was there. LMDB has no
    write-ahead log: NORMAL is `MDB_NOMETASYNC` there, which waits for the disk once a commit, and not never. `UserDefaults` is
    Foundation's for this system. In processes of their own the symbols of all contenders are bound before the clock starts,
    as those of a static tool are. In P5 plain SQLite and the storage layer go through one thin handle
    and make no `String` of what they read; the others do.
    """
}
