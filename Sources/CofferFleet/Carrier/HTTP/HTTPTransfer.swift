import CofferCrypto

/// A request and its response, passed from libcurl's thread to a task.
///
/// One task reads it, with ``next()``. A slow reader makes the server wait, through TCP's flow control.
final class HTTPTransfer: Sendable {
  let request: HTTPRequest
  private let loop: HTTPLoop
  private let state = Lock(State())

  private struct State {
    var received: [UInt8] = []
    var sentCount = 0
    var status = 0
    var headers = HTTPHeaders()
    var isPaused = false
    var end: Result<Void, HTTPFailure>?
    var waiter: CheckedContinuation<Void, Never>?
  }

  /// The number of buffered bytes at which the server has to wait.
  private static let bufferLimit = 1 << 20

  init(_ request: HTTPRequest, on loop: HTTPLoop) {
    (self.request, self.loop) = (request, loop)
    loop.start(self)
  }

  // MARK: - For the reader

  /// The status, known from the first bytes on.
  var status: Int { state.withLock { $0.status } }

  /// The headers, complete from the first bytes on.
  var headers: HTTPHeaders { state.withLock { $0.headers } }

  /// The next bytes; nil at the end.
  ///
  /// - Throws: `HTTPFailure`; `.cancelled` if the task was cancelled, which ends the transfer.
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

  /// The next bytes; ends the transfer if none come in this time.
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

  /// Stores received bytes.
  ///
  /// - Returns: Whether there was room; otherwise libcurl delivers them again once the reader has made some.
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

  /// Stores a line of the response's headers.
  func receive(headerLine line: UnsafeRawBufferPointer) { state.withLock { $0.headers.add(line: line) } }

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

  /// Ends the transfer; the first result counts.
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
