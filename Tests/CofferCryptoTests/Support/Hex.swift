import CofferCrypto

/// Reads pairs of hexadecimal digits; anything else is a mistake in the test.
func bytes(hex: String) -> [UInt8] {
  let digits = hex.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
  precondition(digits.count == hex.utf8.count && digits.count.isMultiple(of: 2), "not hexadecimal: \(hex)")
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

func hex(_ bytes: some Sequence<UInt8>) -> String {
  bytes.map { byte in
    let digits = String(byte, radix: 16)
    return byte < 16 ? "0" + digits : digits
  }.joined()
}

extension SecretBytes {
  convenience init(_ bytes: [UInt8]) {
    self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
  }

  convenience init(hex text: String) {
    self.init(bytes(hex: text))
  }

  /// The bytes, for comparing; only tests may have them.
  var exposed: [UInt8] {
    withUnsafeBytes { Array($0) }
  }
}
