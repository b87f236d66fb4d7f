import CofferCrypto
import CofferStorage

/// What chains the rows of the change log: each has a digest of itself and of the one before.
///
/// It has no key of its own, as whoever writes rows has the key of the store. Rows that were taken out, changed or put
/// between show, unless somebody made the whole chain anew; then the link that is remembered outside of the store differs.
enum ChangeChain {
  /// What the first row of all goes on from.
  static let origin = [UInt8](repeating: 0, count: SHA256.byteCount)

  private static let linkLabel = Array("coffer/1 changes".utf8)
  private static let rewriteLabel = Array("coffer/1 rewrite".utf8)

  /// A row of the change log, but for what chains it.
  struct Row {
    let sequence: Int64
    let noise: [UInt8]
    let time: Int64
    let writer: Int64
    let author: String?
    let total: Int64
  }

  /// The link of a row behind one with the link `previous`.
  static func link(_ row: Row, _ keys: [UInt8], after previous: [UInt8]) throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(128 + (row.author?.utf8.count ?? 0) + keys.count)
    bytes += linkLabel
    bytes += previous
    for number in [row.sequence, row.time, row.writer, row.total] {
      bytes.append(bigEndian: UInt64(bitPattern: number))
    }
    bytes += row.noise
    // No text is so long.
    bytes.append(bigEndian: row.author.map { UInt64($0.utf8.count) } ?? .max)
    if let author = row.author { bytes += author.utf8 }
    bytes += keys
    return try bytes.withUnsafeBytes(SHA256.digest)
  }

  /// What tells that the keys of a row were rewritten in good order; its link stays, for those behind it.
  static func rewritten(_ keys: [UInt8], link: [UInt8]) throws -> [UInt8] {
    try (rewriteLabel + link + keys).withUnsafeBytes(SHA256.digest)
  }
}

/// What a look at the chain of the change log found.
package struct ChangeLogCheck {
  /// How many commits the log holds.
  package private(set) var count = 0
  /// The first and the last of them; nil for an empty log.
  package private(set) var commits: ClosedRange<Int64>?
  /// Whether there is a chain; a store of a former version gets it with its next commit.
  package let isChained: Bool
  /// What is wrong, in sentences.
  package private(set) var problems: [String] = []

  init(isChained: Bool) { self.isChained = isChained }

  /// Looks at the next row.
  mutating func add(
    _ row: ChangeChain.Row, _ keys: [UInt8], link: [UInt8], rewritten: [UInt8]?, after previous: ChangeLog.End
  ) throws {
    count += 1
    let isFirst = commits == nil
    let first = commits?.lowerBound ?? row.sequence
    commits = first...max(first, row.sequence)
    // Salvage begins a log behind all versions that it found.
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
        try ConstantTime.isEqual(ChangeChain.rewritten(keys, link: link), rewritten)
      } else {
        try ConstantTime.isEqual(ChangeChain.link(row, keys, after: previous.link), link)
      }
    if !isWhole {
      problems.append("Commit \(row.sequence) in the change log was changed, or what was before it.")
    }
  }

  /// Looks whether the rows that are gone were old enough to be dropped.
  ///
  /// - Parameter start: The last row that was dropped, if any was.
  mutating func checkStart(_ start: ChangeLog.End, _ end: ChangeLog.End) {
    guard let first = commits?.lowerBound, start.sequence >= 0, first == start.sequence &+ 1 else { return }
    // Rows are dropped only beyond these bounds.
    let isBeyondCount = end.sequence &- start.sequence >= ChangeLog.maximumRowCount
    if !isBeyondCount, end.total &- start.total <= ChangeLog.maximumByteCount {
      problems.append("The commits up to \(start.sequence) were taken out of the change log before their time.")
    }
  }
}
