import Dispatch
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The signals that ask a process to end cleanly; a process has one holder.
///
/// Their handler writes to a pipe. On Linux libdispatch's source of signals loses one in thirty in a program with an asynchronous
/// `main`: the main thread, which has none of them blocked, takes it.
package final class EndingSignals: @unchecked Sendable {
  // Unchecked: the source is created once and never changed.
  private static let writer = Atomic<Int32>(-1)

  private let stream: AsyncStream<Void>
  private let source: any DispatchSourceRead

  /// - Parameters:
  ///   - numbers: The signals.
  ///   - received: Is called with each, on a queue of its own.
  /// - Throws: ``Failure`` if no pipe can be created.
  package init(
    _ numbers: [Int32] = [SIGTERM, SIGINT], received: @escaping @Sendable () -> Void = {}
  ) throws {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.stream = stream
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Failure(.inputOutput, "cannot create a pipe.") }
    for end in ends {
      FileDescriptor.closeOnExecution(end)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    source = DispatchSource.makeReadSource(fileDescriptor: ends[0], queue: DispatchQueue(label: "prefs.signals"))
    source.setEventHandler { [reader = ends[0]] in
      // The pipe's contents have been read by then.
      var bytes = (UInt64(0), UInt64(0))
      if read(reader, &bytes, MemoryLayout.size(ofValue: bytes)) > 0 {
        continuation.yield()
        received()
      }
    }
    source.resume()
    Self.writer.store(ends[1], ordering: .relaxed)
    for number in numbers {
      signal(number) { _ in
        let code = errno
        var byte: UInt8 = 0
        _ = write(EndingSignals.writer.load(ordering: .relaxed), &byte, 1)
        errno = code
      }
    }
  }

  /// Returns when the first one has arrived, or the task is cancelled.
  package func first() async {
    for await _ in stream { return }
  }
}
