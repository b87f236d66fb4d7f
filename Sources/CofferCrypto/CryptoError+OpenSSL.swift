internal import COpenSSL

extension CryptoError {
  /// Makes an error from OpenSSL's last error on this thread, and empties the error queue.
  ///
  /// The queue may hold older entries of other libraries in the process, so the newest one is used. Reasons are
  /// constant strings in OpenSSL; `ERR_get_error_all` could also return data derived from input, so it is not used.
  static func failure(of function: StaticString) -> CryptoError {
    let code = ERR_peek_last_error()
    ERR_clear_error()
    return .openSSL(function: function.description, reason: reason(of: code))
  }

  /// OpenSSL's message for an error, or its number if the program chose not to load the messages.
  static func reason(of code: UInt) -> String {
    if code == 0 { return "no reason given" }
    if let words = ERR_reason_error_string(code) { return String(cString: words) }
    let number = String(code, radix: 16, uppercase: true)
    return "error \(number), which `openssl errstr \(number)` explains"
  }
}
