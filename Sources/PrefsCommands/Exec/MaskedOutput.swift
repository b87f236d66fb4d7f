import Dispatch
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Forwards the output of programs to this process's own, with secrets replaced.
final class MaskedOutput: Sendable {
  /// A pipe, and the standard descriptors that go through it.
  private struct Route {
    let pipe: PipePair
    let descriptors: [Int32]
  }

  private let routes: [Route]
  private let mask = Mutex(SecretMask())
  private let readers = DispatchGroup()
  private let loss = Mutex(false)

  /// Whether some of the output could not be written, for another reason than that its reader has closed it.
  var isLost: Bool { loss.withLock { $0 } }

  init() throws {
    // One pipe if both are the same file, to keep the order of the output.
    let targets: [[Int32]] = Self.isSameFile(1, 2) ? [[1, 2]] : [[1], [2]]
    routes = try targets.map { Route(pipe: try PipePair(), descriptors: $0) }
    for route in routes {
      DispatchQueue.global().async(group: readers) { self.forward(route.pipe.reading, to: route.descriptors[0]) }
    }
  }

  private static func isSameFile(_ one: Int32, _ other: Int32) -> Bool {
    var (first, second) = (stat(), stat())
    guard fstat(one, &first) == 0, fstat(other, &second) == 0 else { return false }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  /// Replaces a secret from now on.
  ///
  /// - Returns: Whether all of it is replaced; very short secrets are not.
  func add(_ secret: [UInt8]) -> Bool { mask.withLock { $0.add(secret) } }

  /// Where a program's output leads: a pipe, and the program's descriptor for it.
  var redirections: [(from: Int32, to: Int32)] {
    routes.flatMap { route in route.descriptors.map { (route.pipe.writing, $0) } }
  }

  /// Waits until all writers have exited, or a signal comes: a program may leave child processes behind.
  func finish(_ signals: HeldSignals) {
    for route in routes { route.pipe.closeWriting() }
    readers.notify(queue: .global()) { HeldSignals.awaken() }
    while readers.wait(timeout: .now()) == .timedOut {
      if let signal = signals.next(milliseconds: -1), HeldSignals.ending.contains(signal) { return }
    }
  }

  private func forward(_ source: Int32, to target: Int32) {
    Self.blockBrokenPipe()
    // Closing the pipe gives writers the same SIGPIPE that they would get without masking.
    defer { close(source) }
    var held: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = read(source, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      let next = mask.withLock { $0.masking(held + chunk[..<max(0, count)], isEnd: count <= 0) }
      held = next.held
      do {
        try FileDescriptor.writeAll(next.shown, to: target, named: target == 1 ? "standard output" : "standard error")
      } catch {
        if !(error is ClosedPipe) {
          loss.withLock { $0 = true }
          Message.error("\(error)")
        }
        return
      }
      if count <= 0 { return }
    }
  }

  /// For this thread alone: programs started later do not inherit it.
  private static func blockBrokenPipe() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
