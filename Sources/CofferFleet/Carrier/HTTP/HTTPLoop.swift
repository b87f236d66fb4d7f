internal import CCurl
import CofferCrypto
import Dispatch

/// The library that makes the transfers.
package enum HTTPLibrary {
  /// Its version, and those of the libraries that it uses, as it names them: curl_version(3).
  package static var version: String { String(cString: curl_version()) }
}

/// The thread on which libcurl makes all transfers of the process.
///
/// One thread for all of them: a thousand streams that wait for a server cost sockets, not threads. It waits without using the
/// processor.
final class HTTPLoop: Sendable {
  static let shared = HTTPLoop()

  private enum Command {
    case start(HTTPTransfer)
    case cancel(HTTPTransfer)
    case resume(HTTPTransfer)
  }

  private let commands = Lock<[Command]>([])
  // Not checked by the compiler: any thread may call curl_multi_wakeup(3); everything else is the loop's thread's.
  // Nil if libcurl was out of memory.
  private nonisolated(unsafe) let multi: UnsafeMutableRawPointer?
  private let makeHandle: @Sendable () -> UnsafeMutableRawPointer?

  /// - Parameter makeHandle: Makes a libcurl handle for each transfer; nil when out of memory.
  init(makeHandle: @escaping @Sendable () -> UnsafeMutableRawPointer? = { curl_easy_init() }) {
    self.makeHandle = makeHandle
    curl_global_init(Int(CURL_GLOBAL_DEFAULT))
    multi = curl_multi_init()
    guard multi != nil else { return }
    // It never returns, so it has its own thread.
    DispatchQueue(label: "coffer.carrier.http").async { self.run() }
  }

  /// Sends a request and receives the whole response.
  ///
  /// - Parameter limit: The maximum size of the response's body, in bytes.
  func response(to request: HTTPRequest, limit: Int) async throws(HTTPFailure) -> HTTPResponse {
    let transfer = HTTPTransfer(request, on: self)
    var body: [UInt8] = []
    while let bytes = try await transfer.next() {
      body += bytes
      guard body.count <= limit else {
        transfer.cancel()
        throw .tooLong
      }
    }
    return HTTPResponse(status: transfer.status, headers: transfer.headers, body: body)
  }

  func start(_ transfer: HTTPTransfer) {
    guard multi != nil else { return transfer.finish(.failure(.noMemory)) }
    tell(.start(transfer))
  }
  func cancel(_ transfer: HTTPTransfer) { tell(.cancel(transfer)) }
  func resume(_ transfer: HTTPTransfer) { tell(.resume(transfer)) }

  private func tell(_ command: Command) {
    commands.withLock { $0.append(command) }
    curl_multi_wakeup(multi)
  }

  // MARK: - On the loop's thread

  private func run() {
    var running: [ObjectIdentifier: RunningTransfer] = [:]
    while true {
      for command in commands.withLock({ exchange(&$0) }) { carry(out: command, in: &running) }
      var count: Int32 = 0
      curl_multi_perform(multi, &count)
      while let message = curl_multi_info_read(multi, &count) {
        let handle = message.pointee.easy_handle
        guard message.pointee.msg == CURLMSG_DONE,
          let (id, ended) = running.first(where: { $0.value.handle == handle })
        else { continue }
        let result = coffer_curl_result(message)
        curl_multi_remove_handle(multi, handle)
        running[id] = nil
        ended.finish(result)
      }
      // Returns at once if there are new commands.
      curl_multi_poll(multi, nil, 0, 60_000, nil)
    }
  }

  private func carry(out command: Command, in running: inout [ObjectIdentifier: RunningTransfer]) {
    switch command {
    case .start(let transfer):
      do throws(HTTPFailure) {
        let started = try RunningTransfer(transfer, makeHandle())
        guard curl_multi_add_handle(multi, started.handle) == CURLM_OK else { throw .noMemory }
        running[ObjectIdentifier(transfer)] = started
      } catch {
        transfer.finish(.failure(error))
      }
    case .cancel(let transfer):
      guard let ended = running.removeValue(forKey: ObjectIdentifier(transfer)) else { return }
      curl_multi_remove_handle(multi, ended.handle)
    case .resume(let transfer):
      guard let paused = running[ObjectIdentifier(transfer)] else { return }
      curl_easy_pause(paused.handle, CURLPAUSE_CONT)
    }
  }

  private func exchange(_ commands: inout [Command]) -> [Command] {
    defer { commands = [] }
    return commands
  }
}
