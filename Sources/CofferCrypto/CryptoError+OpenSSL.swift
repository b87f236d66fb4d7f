internal import COpenSSL

extension CryptoError {
  /// Makes an error of what OpenSSL last reported on this thread, and empties its queue.
  ///
  /// The queue may hold older entries of other libraries in the process, so the newest one is taken. Reasons are constant
  /// strings inside OpenSSL; `ERR_get_error_all` could also return data made from input, and is not asked.
  static func failure(of function: StaticString) -> CryptoError {
    let code = ERR_peek_last_error()
    let reason = code == 0 ? nil : ERR_reason_error_string(code)
    ERR_clear_error()
    return .openSSL(
      function: function.description,
      reason: reason.map { String(cString: $0) } ?? "no reason given (code \(code))")
  }
}
