import Foundation

/// A line for each contender, both axes logarithmic, as SVG that suits light and dark pages.
struct LineChart {
  struct Line {
    let name: String
    var points: [(x: Double, y: Double)] = []
  }

  let work: Work.Chart
  private(set) var lines: [Line] = []

  init(work: Work.Chart) {
    self.work = work
  }

  mutating func add(_ x: Double, _ y: Double, to name: String) {
    let index = lines.firstIndex { $0.name == name } ?? lines.endIndex
    if index == lines.endIndex { lines.append(Line(name: name)) }
    lines[index].points.append((x, y))
  }

  // MARK: Drawing

  private static let plot = (left: 70.0, top: 48.0, width: 480.0, height: 280.0)
  private static let size = (width: 720, height: 384)

  private static let style = """
    <style>
      svg { font: 12px sans-serif; }
      .page { fill: #ffffff; } text { fill: #1f2328; } .quiet { fill: #59636e; } .grid { stroke: #d1d9e0; }
      path, .mark { fill: none; stroke-width: 2; } .mark { fill: #ffffff; }
      .c0 { stroke: #0969da; } .c1 { stroke: #bc4c00; } .c2 { stroke: #1a7f37; } .c3 { stroke: #8250df; }
      .c4 { stroke: #bf3989; } .c5 { stroke: #6e7781; }
      @media (prefers-color-scheme: dark) {
        .page, .mark { fill: #0d1117; } text { fill: #e6edf3; } .quiet { fill: #9198a1; } .grid { stroke: #30363d; }
        .c0 { stroke: #58a6ff; } .c1 { stroke: #f0883e; } .c2 { stroke: #3fb950; } .c3 { stroke: #bc8cff; }
        .c4 { stroke: #ff7bc0; } .c5 { stroke: #9ea7b3; }
      }
    </style>
    """

  func svg() -> String {
    let columns = Set(lines.flatMap { $0.points.map(\.x) }).sorted()
    let values = lines.flatMap { $0.points.map(\.y) }.filter { $0 > 0 }
    guard let first = columns.first, let last = columns.last, let lowest = values.min(), let highest = values.max()
    else {
      return ""
    }
    let x = Axis(from: first, to: last, pixelsFrom: Self.plot.left, to: Self.plot.left + Self.plot.width)
    let y = Axis(
      from: Axis.stepBelow(lowest), to: Axis.stepAbove(highest), pixelsFrom: Self.plot.top + Self.plot.height,
      to: Self.plot.top)
    let (width, height) = Self.size
    return """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 \(width) \(height)" role="img">
      <title>\(work.title) by \(work.axis)</title>
      \(Self.style)
      <rect class="page" width="100%" height="100%"/>
      <text x="\(Self.plot.left)" y="24" font-size="15" font-weight="bold">\(work.title)</text>
      <text class="quiet" x="\(Self.plot.left)" y="40">\(work.unit.rawValue)</text>
      \(grid(columns, x, y))
      \(lines.enumerated().map { draw($1, index: $0, x, y) }.joined(separator: "\n"))
      \(legend())
      </svg>

      """
  }

  private func grid(_ columns: [Double], _ x: Axis, _ y: Axis) -> String {
    let (left, bottom) = (Self.plot.left, Self.plot.top + Self.plot.height)
    let horizontal = y.steps().map { value in
      """
      <line class="grid" x1="\(left)" x2="\(left + Self.plot.width)" y1="\(y[value])" y2="\(y[value])"/>
      <text class="quiet" x="\(left - 8)" y="\(y[value] + 4)" text-anchor="end">\(Axis.label(value))</text>
      """
    }
    let vertical = columns.map { value in
      """
      <line class="grid" x1="\(x[value])" x2="\(x[value])" y1="\(Self.plot.top)" y2="\(bottom)"/>
      <text class="quiet" x="\(x[value])" y="\(bottom + 18)" text-anchor="middle">\(Int(value).grouped)</text>
      """
    }
    let name = """
      <text x="\(left + Self.plot.width / 2)" y="\(bottom + 40)" text-anchor="middle">\(work.axis)</text>
      """
    return (horizontal + vertical + [name]).joined(separator: "\n")
  }

  private func draw(_ line: Line, index: Int, _ x: Axis, _ y: Axis) -> String {
    let places = line.points.sorted { $0.x < $1.x }.map { (x: x[$0.x], y: y[$0.y]) }
    let path = places.map { "\($0.x) \($0.y)" }.joined(separator: " L")
    return (["<path class=\"c\(Self.color(index))\" d=\"M\(path)\"/>"] + places.map { Self.mark(index, $0.x, $0.y) })
      .joined(separator: "\n")
  }

  /// Beside the plot, in the order of the line ends.
  private func legend() -> String {
    let order = lines.indices.sorted { (lines[$0].points.last?.y ?? 0) > (lines[$1].points.last?.y ?? 0) }
    return order.enumerated().map { place, index in
      let y = Self.plot.top + 10 + Double(place) * 22
      let x = Self.plot.left + Self.plot.width + 24
      return """
        <path class="c\(Self.color(index))" d="M\(x - 10) \(y) L\(x + 10) \(y)"/>
        \(Self.mark(index, x, y))
        <text x="\(x + 18)" y="\(y + 4)">\(lines[index].name)</text>
        """
    }.joined(separator: "\n")
  }

  private static func color(_ index: Int) -> Int { index % 6 }

  /// Not everyone can distinguish the lines by colour alone.
  private static func mark(_ index: Int, _ x: Double, _ y: Double) -> String {
    let (start, r) = ("class=\"mark c\(color(index))\"", 4.0)
    return switch index % 3 {
    case 0: "<circle \(start) cx=\"\(x)\" cy=\"\(y)\" r=\"\(r)\"/>"
    case 1: "<rect \(start) x=\"\(x - r)\" y=\"\(y - r)\" width=\"\(2 * r)\" height=\"\(2 * r)\"/>"
    default: "<polygon \(start) points=\"\(x),\(y - r - 1) \(x + r + 1),\(y + r) \(x - r - 1),\(y + r)\"/>"
    }
  }
}
