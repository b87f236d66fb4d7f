import Synchronization

/// What the observers of a script heard, in order.
final class Journal: Sendable {
  private let contents = Mutex<[String]>([])

  func note(_ line: String) {
    contents.withLock { $0.append(line) }
  }

  var lines: [String] { contents.withLock { $0 } }
}
