/// A problem that a verification found.
///
/// ```swift
/// for problem in try database.verify().problems {
///   if case .damagedPages(let pages) = problem.kind { print("lost: \(pages.count) pages") } else { print(problem) }
/// }
/// ```
public struct VerificationProblem: Hashable, Sendable, CustomStringConvertible {
  /// What is wrong.
  public enum Kind: Hashable, Sendable {
    /// These pages do not authenticate.
    case damagedPages(ClosedRange<Int>)
    /// The file is truncated: these pages are missing.
    case missingPages(ClosedRange<Int>)
    /// The bytes of these pages do not look random, as encrypted pages do.
    case unencryptedPages(ClosedRange<Int>)
    /// SQLite opens the file without a key.
    case unencryptedFile
    /// This many bytes stand behind the last page.
    case trailingBytes(Int)
    /// Others may read or replace a file.
    case permissions
    /// The write-ahead log, or a part of it, cannot be read.
    case log
    /// The change log misses commits, or has others than were made.
    case changeLog
    /// A row or a table holds what Coffer never writes.
    case tables
  }

  /// What is wrong.
  public let kind: Kind
  /// The problem as a sentence.
  public let description: String

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
