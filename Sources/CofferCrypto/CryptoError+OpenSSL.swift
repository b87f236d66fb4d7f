internal import COpenSSL

extension CryptoError {
  /// Makes an error of what OpenSSL last reported on this thread, and empties its queue.
  ///
  /// The queue may hold older entries of other libraries in the process, so the newest one is taken. Reasons are constant
  /// strings inside OpenSSL; `ERR_get_error_all` could also return data made from input, and is not asked.
  static func failure(of function: StaticString) -> CryptoError {
    let code = ERR_peek_last_error()
    ERR_clear_error()
    return .openSSL(function: function.description, reason: reason(of: code))
  }

  /// OpenSSL's words for an error, or how to find them: a program can choose not to load them.
  static func reason(of code: UInt) -> String {
    if code == 0 { return "no reason given" }
    if let words = ERR_reason_error_string(code) { return String(cString: words) }
    let number = String(code, radix: 16, uppercase: true)
    return "error \(number), which `openssl errstr \(number)` puts into words"
  }
}
