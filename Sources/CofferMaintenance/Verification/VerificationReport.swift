import Coffer
import CofferStorage

/// The result of a verification.
public struct VerificationReport: Sendable {
  /// The number of pages read and authenticated.
  public let pageCount: Int
  /// The number of items decoded.
  public let itemCount: Int
  /// The number of earlier values decoded.
  public let historicItemCount: Int
  /// The problems found.
  public let problems: [VerificationProblem]
  /// What the change log holds, and what vouches for it; nil if it was not read.
  public let changeLog: ChangeLogReport?
  /// The Shannon entropy of the file's bytes: close to 8 for ciphertext, below 6 for unencrypted settings.
  package let entropyBitsPerByte: Double
  /// The entropy of the page where it is lowest: above 7.9 for ciphertext.
  package let leastPageEntropyBitsPerByte: Double

  init(
    _ pages: PageVerification, _ itemCount: Int, _ historicItemCount: Int, _ problems: [VerificationProblem],
    changeLog: ChangeLogReport? = nil
  ) {
    self.changeLog = changeLog
    pageCount = pages.count
    self.itemCount = itemCount
    self.historicItemCount = historicItemCount
    self.problems = problems
    entropyBitsPerByte = pages.entropy
    leastPageEntropyBitsPerByte = pages.leastPageEntropy
  }
}

extension PageVerification {
  /// The problems with the pages, one sentence per run of consecutive pages.
  func problems(opensWithoutKey: Bool) -> [VerificationProblem] {
    var problems = Self.ranges(damaged).map { range in
      VerificationProblem(
        .damagedPages(range),
        range.count == 1
          ? "Page \(range.lowerBound) does not authenticate."
          : "Pages \(range.lowerBound) to \(range.upperBound) do not authenticate.")
    }
    if let first = missing.first {
      let last = missing.upperBound - 1
      problems.append(
        .init(.missingPages(first...last), "The file is truncated: pages \(first) to \(last) are missing."))
    }
    problems += headerProblem.map { [VerificationProblem(.tables, $0)] } ?? []
    problems += Self.ranges(clear).map { range in
      .init(
        .unencryptedPages(range),
        "Pages \(range.lowerBound) to \(range.upperBound) do not look random, as encrypted pages do.")
    }
    problems += Self.problems(tailByteCount: tailByteCount).map { .init(.trailingBytes(tailByteCount), $0) }
    if opensWithoutKey {
      problems.append(.init(.unencryptedFile, "SQLite opens the file without a key: it is not encrypted."))
    }
    return problems
  }

  /// Bytes after the last page, as a sentence.
  static func problems(tailByteCount: Int) -> [String] {
    tailByteCount == 0
      ? []
      : ["The file has \(tailByteCount) bytes after the last page. Coffer writes none there, and ignores them."]
  }

  private static func ranges(_ numbers: [Int]) -> [ClosedRange<Int>] {
    numbers.reduce(into: []) { ranges, number in
      if let last = ranges.last, last.upperBound + 1 == number {
        ranges[ranges.count - 1] = last.lowerBound...number
      } else {
        ranges.append(number...number)
      }
    }
  }
}
