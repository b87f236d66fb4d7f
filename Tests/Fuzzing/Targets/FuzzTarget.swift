import CofferCrypto

@testable import Coffer
@testable import CofferStorage
@testable import PrefsCommands

/// Something that reads bytes which a file or a user gave, and must take any.
///
/// `make fuzz` lets libFuzzer look for bytes that one of them cannot take; the tests replay those that were found.
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
  /// - Throws: What is neither success nor a refusal: a broken promise, or an error that nobody has thought of.
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

  /// Of what was read, something does not come back when it is written and read again.
  struct BrokenPromise: Error {
    let what: String
  }

  static func promise(_ isKept: Bool, _ what: @autoclosure () -> String) throws {
    if !isKept { throw BrokenPromise(what: what()) }
  }

  static let all = storage + values + tool
}
