import CofferCrypto
import CofferStorage

/// The bytes of a stored value; those of a secret are never in an array, whose copies cannot be wiped.
package enum StoredBytes: Sendable {
  case array([UInt8])
  case secret(SecretBytes)

  package init(copying bytes: UnsafeRawBufferPointer, isSecret: Bool) {
    self = isSecret ? .secret(SecretBytes(copying: bytes)) : .array(Array(bytes))
  }

  var count: Int {
    switch self {
    case .array(let bytes): bytes.count
    case .secret(let bytes): bytes.count
    }
  }

  /// Lends the bytes to `body`.
  @inline(__always)
  package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    switch self {
    case .array(let bytes): try bytes.withUnsafeBytes(body)
    case .secret(let bytes): try bytes.withUnsafeBytes(body)
    }
  }
}

extension StoredBytes: Equatable {
  package static func == (a: Self, b: Self) -> Bool {
    if case .array(let a) = a, case .array(let b) = b { return a == b }
    return a.withUnsafeBytes { a in b.withUnsafeBytes { b in ConstantTime.isEqual(a, b) } }
  }
}

extension StoredBytes: StatementValue {
  package func bind(to statement: Statement, at index: Int32) {
    switch self {
    case .array(let bytes): bytes.bind(to: statement, at: index)
    case .secret(let bytes): bytes.bind(to: statement, at: index)
    }
  }
}
