import Coffer
import Dispatch
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Prints commits as they come, until nobody reads them any more.
///
/// A reader that is slow holds the next commits up, and at last those fall out of what the store remembers: then
/// `everything` stands for them. Nothing gathers in memory meanwhile.
final class ChangePrinter: Sendable {
  private struct State {
    /// The last commit that was printed.
    var last: UInt64 = 0
    var failure: (any Error)?
  }

  private let filter: ChangeFilter
  private let text: ChangeText
  private let values: ShownValues?
  private let state = Mutex(State())
  private let end = DispatchSemaphore(value: 0)

  init(filter: ChangeFilter, text: ChangeText, values: ShownValues?) {
    self.filter = filter
    self.text = text
    self.values = values
  }

  /// Prints a commit, unless it was printed before.
  func print(_ commit: Commit) {
    state.withLock { state in
      guard state.failure == nil, commit.snapshot > state.last else { return }
      do {
        try write(filter.changes(in: commit))
        state.last = commit.snapshot
      } catch {
        state.failure = error
        end.signal()
      }
    }
  }

  /// Prints earlier commits, while later ones wait.
  ///
  /// - Parameter read: What was committed, nil when that is not known any more, and the number of the last commit.
  func replay(_ read: () throws -> (commits: [Commit]?, last: UInt64)) throws {
    try state.withLock { state in
      let (commits, last) = try read()
      if let commits {
        for commit in commits { try write(filter.changes(in: commit)) }
      } else {
        try write([KeyChange(commit: last, what: "everything", collection: nil, key: nil)])
      }
      state.last = last
    }
  }

  /// One write for each commit, so that nobody reads half of one.
  private func write(_ changes: [KeyChange]) throws {
    guard !changes.isEmpty else { return }
    var output = StandardOutput()
    for change in changes { output.write(text.line(change, try values?.value(for: change))) }
    try output.finish()
  }

  // MARK: - The end

  /// Waits until printing fails, or the reader of standard output goes away.
  ///
  /// A signal ends the process as it does by itself: it only reads, and leaves nothing behind.
  func waitForEnd() -> any Error {
    DispatchQueue.global().async {
      Self.waitUntilOutputCloses()
      self.end.signal()
    }
    end.wait()
    return state.withLock { $0.failure } ?? ClosedPipe()
  }

  private static func waitUntilOutputCloses() {
    // Without events to wait for, only errors are told: here, that the other end is closed.
    var output = pollfd(fd: 1, events: 0, revents: 0)
    while poll(&output, 1, -1) <= 0 {}
  }
}
