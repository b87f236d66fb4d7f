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

/// Prints commits as they come, until the reader closes the output.
///
/// A slow reader delays later commits until the store's change log no longer contains them; `everything` is then
/// printed instead. Nothing is queued in memory meanwhile.
final class ChangePrinter: Sendable {
  private struct State {
    /// The last commit that was printed, of which generation of the store.
    var last: CommitNumber = 0
    var generation = 0
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
      guard state.failure == nil, commit.generation != state.generation || commit.number > state.last else { return }
      do {
        try write(filter.changes(in: commit))
        (state.generation, state.last) = (commit.generation, commit.number)
      } catch {
        state.failure = error
        end.signal()
      }
    }
  }

  /// Ends printing, for this reason.
  func fail(_ error: any Error) {
    state.withLock { $0.failure = $0.failure ?? error }
    end.signal()
  }

  /// Prints earlier commits, while later ones wait.
  ///
  /// - Parameter read: Returns the commits, or nil if the change log no longer contains them, or never did, and the place
  ///   of the last commit.
  func replay(_ read: () throws -> (commits: [Commit]?, last: CommitPosition)) throws {
    try state.withLock { state in
      let (commits, last) = try read()
      if let commits {
        for commit in commits { try write(filter.changes(in: commit)) }
      } else {
        try write([KeyChange(commit: last.number, position: last, what: "everything", collection: nil, key: nil)])
      }
      state.last = last.number
    }
  }

  /// One write per commit, so that a reader never sees half of one.
  private func write(_ changes: [KeyChange]) throws {
    guard !changes.isEmpty else { return }
    var output = StandardOutput()
    for change in changes { output.write(text.line(change, try values?.value(for: change))) }
    try output.finish()
  }

  // MARK: - The end

  /// Waits until printing fails, or the reader closes standard output.
  ///
  /// Signals end the process in the default way: it only reads, and has nothing to clean up.
  func waitForEnd() -> any Error {
    DispatchQueue.global().async {
      Self.waitUntilOutputCloses()
      self.end.signal()
    }
    end.wait()
    return state.withLock { $0.failure } ?? ClosedPipe()
  }

  private static func waitUntilOutputCloses() {
    // Without requested events, poll reports only errors: here, that the other end is closed.
    var output = pollfd(fd: 1, events: 0, revents: 0)
    while poll(&output, 1, -1) <= 0 {}
  }
}
