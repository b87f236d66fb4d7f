import Foundation

/// Four plots over time in one SVG file: memory, open files, the log, and how long operations took.
struct LoadPlot {
  private struct Line {
    let name: String
    let points: [(x: Double, y: Double)]
  }

  private static let (width, height, margin) = (640.0, 150.0, 60.0)
  private static let colors = ["#1b6ca8", "#c8553d", "#2e8b57", "#8e6bbf"]
  private let samples: [LoadSample]

  init(_ samples: [LoadSample]) {
    self.samples = samples
  }

  func write(to path: String) throws {
    let plots = [
      ("Memory of each process, MiB", byProcess { Double($0.residentKilobytes) / 1024 }),
      ("Open files of each process", byProcess { Double($0.descriptorCount) }),
      ("Log, MiB", Array(byProcess { Double($0.logByteCount) / 1_048_576 }.prefix(1))),
      ("Slowest 1 % of the operations took at least, ms (process 0)", latencies()),
    ]
    let total = (Self.height + Self.margin) * Double(plots.count) + Self.margin / 2
    var text = """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(Int(Self.width + 2 * Self.margin + 60))" height="\(Int(total))" \
      font-family="sans-serif" font-size="11">
      <rect width="100%" height="100%" fill="white"/>

      """
    for (index, plot) in plots.enumerated() {
      text += Self.plot(plot.0, plot.1, top: Self.margin / 2 + Double(index) * (Self.height + Self.margin))
    }
    try Data((text + "</svg>\n").utf8).write(to: URL(fileURLWithPath: path))
  }

  private func byProcess(_ value: (LoadSample) -> Double) -> [Line] {
    Dictionary(grouping: samples, by: \.process).sorted { $0.key < $1.key }.map { process, samples in
      Line(name: "process \(process)", points: samples.map { ($0.time, value($0)) })
    }
  }

  private func latencies() -> [Line] {
    let own = samples.filter { $0.process == 0 }
    return Set(own.flatMap(\.latencies.keys)).sorted().map { kind in
      Line(name: kind, points: own.map { ($0.time, ($0.latencies[kind]?.percentile99 ?? 0) / 1000) })
    }
  }

  private static func plot(_ title: String, _ lines: [Line], top: Double) -> String {
    let right = max(1, lines.flatMap(\.points).map(\.x).max() ?? 1)
    let highest = max(1, lines.flatMap(\.points).map(\.y).max() ?? 1)
    var text = """
      <text x="\(margin)" y="\(top - 6)" font-weight="bold">\(title)</text>
      <rect x="\(margin)" y="\(top)" width="\(width)" height="\(height)" fill="none" stroke="#888"/>
      <text x="\(margin - 6)" y="\(top + 9)" text-anchor="end">\(String(format: "%.1f", highest))</text>
      <text x="\(margin - 6)" y="\(top + height)" text-anchor="end">0</text>
      <text x="\(margin + width)" y="\(top + height + 14)" text-anchor="end">\(Int(right)) s</text>

      """
    for (index, line) in lines.enumerated() {
      let color = colors[index % colors.count]
      let points = line.points.map { point in
        String(format: "%.1f,%.1f", margin + point.x / right * width, top + height - point.y / highest * height)
      }
      text += """
        <polyline fill="none" stroke="\(color)" points="\(points.joined(separator: " "))"/>
        <text x="\(margin + width + 6)" y="\(top + 12 + 14 * Double(index))" fill="\(color)">\(line.name)</text>

        """
    }
    return text
  }
}
