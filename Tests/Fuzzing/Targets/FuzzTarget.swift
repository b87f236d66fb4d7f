import CofferCrypto

@testable import Coffer
@testable import CofferStorage
@testable import PrefsCommands

/// Something that reads bytes which a file or a user gave, and must take any.
///
/// `make fuzz` lets libFuzzer search for bytes that break one of them; the tests replay its findings.
struct FuzzTarget: Sendable {
  let name: String
  /// Reads the bytes; refuses them by one of the errors that `isRefusal(_:)` knows.
  private let read: @Sendable ([UInt8]) throws -> Void

  init(_ name: String, _ read: @escaping @Sendable ([UInt8]) throws -> Void) {
    self.name = name
    self.read = read
  }

  /// Reads the bytes.
  ///
  /// - Throws: What is neither success nor a refusal: a broken promise, or an unexpected error.
  func check(_ bytes: [UInt8]) throws {
    do {
      try read(bytes)
    } catch  where Self.isRefusal(error) {
    }
  }

  private static func isRefusal(_ error: any Error) -> Bool {
    switch error {
    case is CofferError, is StorageError, is EnvelopeError, is CryptoError, is ValueCodingError, is Failure,
      is FormatProblem, is JSONReader.Problem, is PropertyListReader.Problem:
      true
    default: false
    }
  }

  /// Something read does not round-trip through writing and reading.
  struct BrokenPromise: Error {
    let what: String
  }

  static func promise(_ isKept: Bool, _ what: @autoclosure () -> String) throws {
    if !isKept { throw BrokenPromise(what: what()) }
  }

  static let all = storage + values + tool
}
