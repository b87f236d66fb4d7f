/// A bar on standard error that grows in place.
struct ProgressBar {
  let isShown: Bool
  private static let width = 30

  /// Shows a bar while `body` works, and takes it away.
  static func during<R>(_ task: String, _ options: CommonOptions, _ body: ((Double) -> Void) throws -> R) rethrows -> R
  {
    let bar = ProgressBar(isShown: !options.quiet && Terminal.isTerminal(2))
    defer { bar.finish() }
    return try body { bar.show($0, of: task) }
  }

  /// Draws the bar at `fraction` of its length.
  func show(_ fraction: Double, of task: String) {
    guard isShown else { return }
    let clamped = fraction.isFinite ? min(1, max(0, fraction)) : 0
    let filled = Int(clamped * Double(Self.width))
    let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: Self.width - filled)
    Message.write("\r\(task) [\(bar)] \(Int(clamped * 100)) %")
  }

  /// Takes the bar away.
  func finish() {
    if isShown { Message.write("\r\u{1b}[K") }
  }
}
