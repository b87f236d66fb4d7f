import CofferCrypto

/// A request and what comes back, handed from libcurl's thread to a task.
///
/// One task reads it, with ``next()``. A reader that is slow stops the server, through TCP.
final class HTTPTransfer: Sendable {
  let request: HTTPRequest
  private let loop: HTTPLoop
  private let state = Lock(State())

  private struct State {
    var received: [UInt8] = []
    var sentCount = 0
    var status = 0
    var isPaused = false
    var end: Result<Void, HTTPFailure>?
    var waiter: CheckedContinuation<Void, Never>?
  }

  /// As much as waits for the reader before the server has to.
  private static let bufferLimit = 1 << 20

  init(_ request: HTTPRequest, on loop: HTTPLoop) {
    (self.request, self.loop) = (request, loop)
    loop.start(self)
  }

  // MARK: - For the reader

  /// The status, from the first bytes on.
  var status: Int { state.withLock { $0.status } }

  /// The next bytes; nil at the end.
  ///
  /// - Throws: `HTTPFailure`; `.cancelled` when the task was cancelled, and then the transfer ends.
  func next() async throws(HTTPFailure) -> [UInt8]? {
    while true {
      if Task.isCancelled { cancel() }
      let (bytes, end, isPaused) = state.withLock { state in
        let part = (state.received, state.end, state.isPaused)
        (state.received, state.isPaused) = ([], false)
        return part
      }
      if isPaused { loop.resume(self) }
      if case .failure(let failure)? = end, bytes.isEmpty || Task.isCancelled { throw failure }
      if !bytes.isEmpty { return bytes }
      if end != nil { return nil }
      await waitForMore()
    }
  }

  /// The next bytes; ends the transfer where none come for so long.
  func next(within limit: Duration) async throws(HTTPFailure) -> [UInt8]? {
    let timer = Task {
      guard (try? await Task.sleep(for: limit)) != nil else { return }
      self.end(.failure(.silent(for: limit)))
    }
    defer { timer.cancel() }
    return try await next()
  }

  /// Ends the transfer, if it has not ended.
  func cancel() { end(.failure(.cancelled)) }

  private func end(_ end: Result<Void, HTTPFailure>) {
    finish(end)
    loop.cancel(self)
  }

  private func waitForMore() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isDue = state.withLock { state in
          if state.end != nil || !state.received.isEmpty { return true }
          state.waiter = continuation
          return false
        }
        if isDue { continuation.resume() }
      }
    } onCancel: {
      cancel()
    }
  }

  // MARK: - For libcurl's thread

  /// Takes over bytes.
  ///
  /// - Returns: Whether there was room; else they come again when the reader has made some.
  func receive(_ bytes: UnsafeRawBufferPointer, status: Int) -> Bool {
    let (waiter, isTaken) = state.withLock { state -> (CheckedContinuation<Void, Never>?, Bool) in
      guard state.received.isEmpty || state.received.count + bytes.count <= Self.bufferLimit else {
        state.isPaused = true
        return (nil, false)
      }
      state.status = status
      state.received.append(contentsOf: bytes)
      defer { state.waiter = nil }
      return (state.waiter, true)
    }
    waiter?.resume()
    return isTaken
  }

  /// Copies the next part of the request's body.
  func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    request.body.withUnsafeBytes { body in
      state.withLock { state in
        let count = min(buffer.count, body.count - state.sentCount)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: body[state.sentCount..<state.sentCount + count]))
        state.sentCount += count
        return count
      }
    }
  }

  /// The transfer has ended; what is said first counts.
  func finish(_ end: Result<Void, HTTPFailure>, status: Int? = nil) {
    let waiter = state.withLock { state in
      if state.end == nil { state.end = end }
      if let status { state.status = status }
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }
}
