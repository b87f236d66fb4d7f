import Dispatch
import Foundation

/// How long `body` took.
func seconds(_ body: () throws -> Void) rethrows -> Double {
  let start = DispatchTime.now().uptimeNanoseconds
  try body()
  return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
}

func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  let middle = sorted.count / 2
  return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
}

/// Times by work and competitor, in the order of their first appearance.
struct Measurements {
  private var works: [String] = []
  private var times: [String: [String: [Double]]] = [:]

  mutating func add(_ time: Double, to work: String, of competitor: String) {
    if times[work] == nil { works.append(work) }
    times[work, default: [:]][competitor, default: []].append(time)
  }

  /// The ratio is the median of the ratios of each round.
  func printTable(_ competitors: [String]) {
    print("| work | \(competitors.joined(separator: " | ")) | ratio |")
    print("| --- | \(competitors.map { _ in "---" }.joined(separator: " | ")) | --- |")
    for work in works.sorted() {
      let columns = competitors.map { times[work]?[$0] ?? [] }
      let cells = columns.map { "\(text(median($0))) (\(text($0.min() ?? 0))–\(text($0.max() ?? 0)))" }
      let ratios = zip(columns[1], columns[0]).map { $0 / $1 }
      print("| \(work) | \(cells.joined(separator: " | ")) | \(text(median(ratios))) |")
    }
  }

  private func text(_ value: Double) -> String { String(format: value < 10 ? "%.2f" : "%.0f", value) }
}
