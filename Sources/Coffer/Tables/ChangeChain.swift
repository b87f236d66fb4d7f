import CofferCrypto
import CofferStorage

/// The chain of the change log: each row has a digest of itself and the previous one.
///
/// It has no key, because anyone who writes rows has the key of the store. Rows that were removed, changed or
/// inserted are detected, unless the whole chain was rebuilt; then the link recorded outside of the store differs.
final class ChangeChain {
  /// The size of a link: half a SHA-256, so that a commit of a few keys is hashed in two blocks.
  static let byteCount = 16
  /// The link before the very first row.
  static let origin = [UInt8](repeating: 0, count: byteCount)

  private static let rewriteLabel = Array("coffer/1 rewrite".utf8)

  /// Created for the first row that is written or checked.
  private var hasher: SHA256.Hasher?

  /// A row of the change log, without its link.
  struct Row {
    let sequence: Int64
    let noise: [UInt8]
    let time: Int64
    let writer: Int64
    let author: String?
    let total: Int64
  }

  /// The link of a row that follows one with the link `previous`.
  func link(_ row: Row, _ keys: [UInt8], after previous: [UInt8]) throws -> [UInt8] {
    var author = row.author ?? ""
    return try author.withUTF8 { author in
      let count = previous.count + 4 * 8 + row.noise.count + 4 + author.count + keys.count
      return try withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { message in
        var end = 0
        func append(_ bytes: UnsafeRawBufferPointer) {
          UnsafeMutableRawBufferPointer(rebasing: message[end...]).copyMemory(from: bytes)
          end += bytes.count
        }
        previous.withUnsafeBytes(append)
        for number in [row.sequence, row.time, row.writer, row.total] {
          withUnsafeBytes(of: number.bigEndian, append)
        }
        row.noise.withUnsafeBytes(append)
        // No text is this long.
        let authorCount = row.author == nil ? UInt32.max : UInt32(truncatingIfNeeded: author.count)
        withUnsafeBytes(of: authorCount.bigEndian, append)
        append(UnsafeRawBufferPointer(author))
        keys.withUnsafeBytes(append)
        return try digest(UnsafeRawBufferPointer(message))
      }
    }
  }

  /// Authenticates rewritten keys of a row; its link stays, for the following rows.
  func rewritten(_ keys: [UInt8], link: [UInt8]) throws -> [UInt8] {
    try (Self.rewriteLabel + link + keys).withUnsafeBytes(digest)
  }

  private func digest(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8] {
    let hasher = try self.hasher ?? SHA256.Hasher()
    self.hasher = hasher
    return try hasher.digest(bytes, count: Self.byteCount)
  }
}

/// The result of verifying the chain of the change log.
package struct ChangeLogCheck {
  /// The number of commits in the log.
  package private(set) var count = 0
  /// The first and the last of them; nil for an empty log.
  package private(set) var commits: ClosedRange<Int64>?
  /// Whether there is a chain; a store of a previous version gets it with its next commit.
  package let isChained: Bool
  /// The problems, as sentences.
  package private(set) var problems: [String] = []

  init(isChained: Bool) { self.isChained = isChained }

  /// Checks the next row.
  mutating func add(
    _ row: ChangeChain.Row, _ keys: [UInt8], link: [UInt8], rewritten: [UInt8]?, after previous: ChangeLog.End,
    by chain: ChangeChain
  ) throws {
    count += 1
    let isFirst = commits == nil
    let first = commits?.lowerBound ?? row.sequence
    commits = first...max(first, row.sequence)
    // Salvage starts a log after all versions that it found.
    let isNext = row.sequence == previous.sequence &+ 1 || isFirst && previous.sequence < 0
    guard isNext else {
      let (first, last) = (previous.sequence &+ 1, row.sequence &- 1)
      problems.append(
        first == last
          ? "Commit \(first) is missing from the change log."
          : "Commits \(first) to \(last) are missing from the change log.")
      return
    }
    guard isChained else { return }
    let isWhole =
      if let rewritten {
        try ConstantTime.isEqual(chain.rewritten(keys, link: link), rewritten)
      } else {
        try ConstantTime.isEqual(chain.link(row, keys, after: previous.link), link)
      }
    if !isWhole {
      problems.append("Commit \(row.sequence) in the change log, or one before it, was changed.")
    }
  }

  /// Checks whether the removed rows were old enough.
  ///
  /// - Parameter start: The last dropped row, if any.
  mutating func checkStart(_ start: ChangeLog.End, _ end: ChangeLog.End) {
    guard let first = commits?.lowerBound else { return problems.append("The change log is empty.") }
    guard start.sequence >= 0, first == start.sequence &+ 1 else { return }
    // Rows are dropped only beyond these bounds.
    let isBeyondCount = end.sequence &- start.sequence >= ChangeLog.maximumRowCount
    if !isBeyondCount, end.total &- start.total <= ChangeLog.maximumByteCount {
      problems.append("The commits up to \(start.sequence) were removed from the change log too early.")
    }
  }
}
