internal import COpenSSL

/// One named argument of an OpenSSL algorithm: an `OSSL_PARAM` with a managed lifetime.
///
/// OpenSSL's own builder, `OSSL_PARAM_BLD`, copies values into memory that it does not wipe; this only points at
/// them.
struct OpenSSLParameter {
  /// The value of an argument.
  enum Value {
    case number(UInt64)
    case name(StaticString)
    /// The bytes must stay where they are until the list has been used.
    case bytes(UnsafeRawBufferPointer)
  }

  let key: StaticString
  let value: Value

  init(_ key: StaticString, _ value: Value) {
    self.key = key
    self.value = value
  }

  /// Calls `body` with `parameters` as the terminated array that OpenSSL takes.
  static func withList<R>(_ parameters: [OpenSSLParameter], _ body: (UnsafePointer<OSSL_PARAM>) -> R) -> R {
    var numbers = parameters.map { parameter in
      if case .number(let number) = parameter.value { number } else { UInt64(0) }
    }
    return numbers.withUnsafeMutableBufferPointer { numbers in
      var list: [OSSL_PARAM] = []
      list.reserveCapacity(parameters.count + 1)
      for (index, parameter) in parameters.enumerated() {
        let key = cString(parameter.key)
        switch parameter.value {
        case .number:
          // Parameters of 32 bits accept 64 where the value fits (`OSSL_PARAM_int(3)`).
          list.append(OSSL_PARAM_construct_uint64(key, &numbers[index]))
        case .name(let name):
          // Parameters passed in are only read; the C type is not const because the same struct also returns values.
          let text = UnsafeMutablePointer(mutating: cString(name))
          list.append(OSSL_PARAM_construct_utf8_string(key, text, name.utf8CodeUnitCount))
        case .bytes(let bytes):
          let start = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
          list.append(OSSL_PARAM_construct_octet_string(key, start, bytes.count))
        }
      }
      list.append(OSSL_PARAM_construct_end())
      return body(list)
    }
  }

  /// The text of a literal, which lives as long as the program and ends in a zero byte.
  private static func cString(_ literal: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(literal.utf8Start).assumingMemoryBound(to: CChar.self)
  }
}
