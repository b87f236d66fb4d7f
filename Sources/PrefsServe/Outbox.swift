import Dispatch
import PrefsCommands
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// What waits to be written to a client: its answer, and a bounded number of notices.
///
/// A client that does not read makes its own requests wait, and nothing else.
final class Outbox: Sendable {
  private enum Entry {
    /// With what to signal once it is written.
    case answer([UInt8], DispatchSemaphore)
    case notice([UInt8])
    /// Makes the lines when they are written.
    case lines(@Sendable () -> [String])
  }

  private struct State {
    var entries: [Entry] = []
    var noticeCount = 0
    var noticeByteCount = 0
    /// Whether notices were dropped, and the lines that stand for them wait.
    var hasDropped = false
    var isWriting = false
    var isClosed = false
    /// Why it was closed, if the client did not do it.
    var failure: Failure?
  }

  /// How many notices, and how many bytes of them, wait for a client.
  private static let (countLimit, byteLimit) = (1000, 4 << 20)

  private let descriptor: Int32
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "prefs-serve.output")

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Adds a notice; never waits.
  ///
  /// - Parameter everything: Makes what is written instead of all notices that wait, if there are too many.
  func notify(_ line: String, else everything: @escaping @Sendable () -> [String]) {
    let bytes = Self.bytes(line)
    enqueue { state in
      if state.hasDropped { return }
      let isTooMuch =
        state.noticeCount >= Self.countLimit
        || state.noticeCount > 0 && state.noticeByteCount + bytes.count > Self.byteLimit
      guard isTooMuch else {
        state.entries.append(.notice(bytes))
        state.noticeCount += 1
        state.noticeByteCount += bytes.count
        return
      }
      let isNotice = { (entry: Entry) in if case .notice = entry { true } else { false } }
      // An answer that waits comes after the notices that came before it, or what stands for them.
      let place = state.entries.firstIndex(where: isNotice) ?? state.entries.endIndex
      state.entries.removeAll(where: isNotice)
      (state.noticeCount, state.noticeByteCount, state.hasDropped) = (0, 0, true)
      state.entries.insert(.lines(everything), at: place)
    }
  }

  /// Adds lines that are made when they are written, and not dropped; never waits.
  func add(_ make: @escaping @Sendable () -> [String]) { enqueue { $0.entries.append(.lines(make)) } }

  private func enqueue(_ change: (inout State) -> Void) {
    if mustWrite(after: change) == true { queue.async { self.write() } }
  }

  /// Changes what waits.
  ///
  /// - Returns: Whether the caller has to write, as no other thread does; nil if nothing is written any more.
  private func mustWrite(after change: (inout State) -> Void) -> Bool? {
    state.withLock { state in
      if state.isClosed { return nil }
      change(&state)
      if state.isWriting || state.entries.isEmpty { return false }
      state.isWriting = true
      return true
    }
  }

  /// Called by what makes the lines that stand for dropped notices: later ones are queued again.
  func endDropping() { state.withLock { $0.hasDropped = false } }

  /// Writes an answer, after all that waits.
  ///
  /// - Returns: Whether the client can still be written to.
  func answer(_ line: String) -> Bool {
    let (bytes, written) = (Self.bytes(line), DispatchSemaphore(value: 0))
    guard let mustWrite = mustWrite(after: { $0.entries.append(.answer(bytes, written)) }) else { return false }
    if mustWrite { write() }
    written.wait()
    return !isClosed
  }

  /// Whether nothing is written any more.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Why nothing is written any more, if the client has not closed its end.
  var failure: Failure? { state.withLock { $0.failure } }

  /// Whether an answer waits; for tests.
  var hasAnswer: Bool {
    state.withLock { state in state.entries.contains { if case .answer = $0 { true } else { false } } }
  }

  /// Writes nothing any more; returns once nothing is being written.
  func close() {
    state.withLock { $0.isClosed = true }
    queue.sync {}
  }

  private static func bytes(_ line: String) -> [UInt8] { Array(line.utf8) + [UInt8(ascii: "\n")] }

  /// Writes what waits, by one thread at a time.
  private func write() {
    while let entry = next() {
      switch entry {
      case .notice(let bytes): send(bytes)
      case .lines(let make): for line in make() { send(Self.bytes(line)) }
      case .answer(let bytes, let written):
        send(bytes)
        written.signal()
      }
    }
  }

  private func next() -> Entry? {
    state.withLock { state in
      guard !state.entries.isEmpty else {
        state.isWriting = false
        return nil
      }
      let entry = state.entries.removeFirst()
      if case .notice(let bytes) = entry {
        state.noticeCount -= 1
        state.noticeByteCount -= bytes.count
      }
      return entry
    }
  }

  private func send(_ bytes: [UInt8]) {
    guard !state.withLock({ $0.isClosed }) else { return }
    do {
      try FileDescriptor.writeAll(bytes, to: descriptor, named: "the client")
    } catch {
      state.withLock { ($0.isClosed, $0.failure) = (true, error as? Failure) }
    }
  }
}
