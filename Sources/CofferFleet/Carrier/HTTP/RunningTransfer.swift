internal import CCurl

/// A transfer with its libcurl handle; used by the loop's thread only.
final class RunningTransfer {
  let transfer: HTTPTransfer
  let handle: UnsafeMutableRawPointer
  private var headers: UnsafeMutablePointer<curl_slist>?
  private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  /// The error of the first option that could not be set.
  private var failure = CURLE_OK

  /// - Parameter handle: A new one; nil if libcurl was out of memory.
  /// - Throws: A failure if the request would be sent otherwise than intended, such as without a header or with other authorities.
  init(_ transfer: HTTPTransfer, _ handle: UnsafeMutableRawPointer?) throws(HTTPFailure) {
    guard let handle else {
      errorText.deallocate()
      throw .noMemory
    }
    (self.transfer, self.handle) = (transfer, handle)
    errorText.pointee = 0
    let request = transfer.request
    setConnection(request)
    setSecurity(request.tls)
    setHeaders(request)
    setBody(request)
    if failure == CURLE_OUT_OF_MEMORY { throw .noMemory }
    if failure != CURLE_OK { throw .notStarted(String(cString: curl_easy_strerror(failure))) }
  }

  deinit {
    curl_easy_cleanup(handle)
    curl_slist_free_all(headers)
    errorText.deallocate()
  }

  private func setConnection(_ request: HTTPRequest) {
    set(CURLOPT_URL, request.url)
    // Variables, ~/.netrc and the server cannot redirect it.
    note(coffer_curl_allow_http_only(handle))
    set(CURLOPT_PROXY, "")
    set(CURLOPT_NOPROXY, "*")
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.milliseconds)
    if let timeout = request.timeout { set(CURLOPT_TIMEOUT_MS, timeout.milliseconds) }
    // A server that vanishes silently is noticed after half a minute, even if nothing is sent: it is probed after 15 seconds of
    // silence, and given up 5 seconds after the third unanswered probe.
    note(coffer_curl_keep_alive(handle, 15, 5, 3))
    note(coffer_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, errorText))
  }

  private func setSecurity(_ tls: HTTPTLS) {
    set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    if let path = tls.authorities { set(CURLOPT_CAINFO, path) }
    if let path = tls.certificate { set(CURLOPT_SSLCERT, path) }
    if let path = tls.key { set(CURLOPT_SSLKEY, path) }
  }

  private func setHeaders(_ request: HTTPRequest) {
    // Large bodies are sent without asking first.
    for header in request.headers + ["Expect:"] {
      guard let longer = curl_slist_append(headers, header) else { return note(CURLE_OUT_OF_MEMORY) }
      headers = longer
    }
    note(coffer_curl_set_pointer(handle, CURLOPT_HTTPHEADER, headers))
    note(coffer_curl_set_pointer(handle, CURLOPT_HEADERDATA, Unmanaged.passUnretained(self).toOpaque()))
    note(
      coffer_curl_set_transfer(handle, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
        let running = Unmanaged<RunningTransfer>.fromOpaque(context!).takeUnretainedValue()
        running.transfer.receive(headerLine: UnsafeRawBufferPointer(start: bytes, count: size * count))
        return size * count
      })
  }

  private func setBody(_ request: HTTPRequest) {
    let byteCount = curl_off_t(request.body.withUnsafeBytes(\.count))
    switch request.method {
    case .get: set(CURLOPT_HTTPGET, 1)
    case .delete: set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
    case .put:
      set(CURLOPT_UPLOAD, 1)
      note(coffer_curl_set_size(handle, CURLOPT_INFILESIZE_LARGE, byteCount))
    case .post:
      set(CURLOPT_POST, 1)
      note(coffer_curl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, byteCount))
    }
    let context = Unmanaged.passUnretained(self).toOpaque()
    // Without a way to rewind the body, libcurl does not repeat a request whose connection ended before the answer: it may
    // have been carried out.
    note(coffer_curl_set_pointer(handle, CURLOPT_READDATA, context))
    note(
      coffer_curl_set_transfer(handle, CURLOPT_READFUNCTION) { bytes, size, count, context in
        let running = Unmanaged<RunningTransfer>.fromOpaque(context!).takeUnretainedValue()
        return running.transfer.send(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
      })
    note(coffer_curl_set_pointer(handle, CURLOPT_WRITEDATA, context))
    note(
      coffer_curl_set_transfer(handle, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        let running = Unmanaged<RunningTransfer>.fromOpaque(context!).takeUnretainedValue()
        let part = UnsafeRawBufferPointer(start: bytes, count: size * count)
        let isTaken = running.transfer.receive(part, status: running.number(CURLINFO_RESPONSE_CODE))
        return isTaken ? size * count : Int(CURL_WRITEFUNC_PAUSE)
      })
  }

  // MARK: - The end

  func finish(_ result: CURLcode) {
    guard result != CURLE_OK else { return transfer.finish(.success(()), status: number(CURLINFO_RESPONSE_CODE)) }
    let reason = reason(result)
    // No part of a request is sent before TLS is established.
    transfer.finish(
      .failure(.connection(problem(result, reason), reason: reason, wasSent: number(CURLINFO_REQUEST_SIZE) > 0)))
  }

  private func reason(_ result: CURLcode) -> String {
    // libcurl's message is about the second attempt, which it may not make.
    if result == CURLE_SEND_FAIL_REWIND { return "The connection ended before the answer." }
    let text = String(cString: errorText)
    return text.isEmpty ? String(cString: curl_easy_strerror(result)) : text
  }

  private func problem(_ result: CURLcode, _ reason: String) -> HTTPProblem {
    switch result {
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR:
      .refused
    // A TLS alert: the server does not accept the certificate.
    case CURLE_RECV_ERROR where reason.contains("alert"), CURLE_SEND_ERROR where reason.contains("alert"),
      CURLE_SSL_CONNECT_ERROR where reason.contains("alert"):
      .refused
    case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP2, CURLE_BAD_CONTENT_ENCODING: .garbled
    default: .unreachable
    }
  }

  // MARK: - Options

  private func set(_ option: CURLoption, _ value: Int) { note(coffer_curl_set_number(handle, option, value)) }
  private func set(_ option: CURLoption, _ value: String) { note(coffer_curl_set_text(handle, option, value)) }

  private func note(_ result: CURLcode) { if failure == CURLE_OK { failure = result } }

  private func number(_ info: CURLINFO) -> Int {
    var value = 0
    coffer_curl_get_number(handle, info, &value)
    return value
  }
}

extension Duration {
  fileprivate var milliseconds: Int {
    Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000)
  }
}

extension HTTPHeaders {
  /// The server's time, in seconds since 1970.
  var date: Int64? {
    let seconds = self["date"].map { Int64(curl_getdate($0, nil)) } ?? -1
    return seconds < 0 ? nil : seconds
  }
}
