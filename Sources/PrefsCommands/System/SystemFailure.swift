import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The reader of standard output has closed it.
package struct ClosedPipe: Error {}

extension Failure {
  /// The failure for the `errno` of a call on `subject`.
  package static func system(_ subject: String, errno code: Int32) -> Failure {
    Failure(.inputOutput, "\(subject): \(systemMessage(code)).")
  }

  /// The system's message for an `errno`.
  package static func systemMessage(_ code: Int32) -> String {
    guard let text = strerror(code) else { return "error \(code)" }
    return String(cString: text)
  }
}
