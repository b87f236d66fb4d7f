#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A bar on standard error that grows in place.
final class ProgressBar {
  private let isShown: Bool
  private let clock = ContinuousClock()
  private var lastDrawn: ContinuousClock.Instant?

  private static let width = 30
  /// Drawing more often would only flicker and slow the work down.
  private static let interval = Duration.milliseconds(100)

  /// Shown only on a terminal, unless `--quiet`.
  init(_ options: some Talking) {
    isShown = !options.quiet && Terminal.isTerminal(2)
  }

  /// Shows a bar during `body`, and clears it afterwards.
  static func during<R>(_ task: String, _ options: some Talking, _ body: ((Double) -> Void) throws -> R) rethrows -> R {
    let bar = ProgressBar(options)
    defer { bar.finish() }
    return try body { bar.show($0, of: task) }
  }

  /// Draws the bar at `fraction`, unless it was drawn a moment ago.
  func show(_ fraction: Double, of task: String) {
    guard isShown else { return }
    let now = clock.now
    if let lastDrawn, now - lastDrawn < Self.interval { return }
    lastDrawn = now
    // Queried each time, because the window may be resized.
    Message.write("\r" + Self.line(fraction, of: task, columns: Terminal.size(of: 2)?.columns ?? 80) + "\u{1b}[K")
  }

  /// The bar in at most `columns` characters: a wrapped line could not be overwritten.
  static func line(_ fraction: Double, of task: String, columns: Int) -> String {
    let clamped = fraction.isFinite ? min(1, max(0, fraction)) : 0
    let percent = "\(Int(clamped * 100)) %"
    // One column stays free: some terminals wrap as soon as the last one is filled.
    let room = columns - 1 - task.count - percent.count - "  []".count
    guard room >= 5 else { return String("\(task) \(percent)".prefix(max(0, columns - 1))) }
    let width = min(room, Self.width)
    let filled = Int(clamped * Double(width))
    let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: width - filled)
    return "\(task) [\(bar)] \(percent)"
  }

  /// Clears the bar.
  func finish() {
    if lastDrawn != nil { Message.write("\r\u{1b}[K") }
    lastDrawn = nil
  }
}
