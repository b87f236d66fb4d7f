import CofferCrypto
import CofferStorage

/// What chains the rows of the change log: each has a digest of itself and of the one before.
///
/// It has no key, as anyone who writes rows has the key of the store. Rows that were taken out, changed or put
/// between show, unless somebody made the whole chain anew; then the link that is remembered outside of the store differs.
final class ChangeChain {
  private static let rewriteLabel = Array("coffer/1 rewrite".utf8)

  /// Made with the first row that is written or checked.
  private var hasher: SHA256.Hasher?

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
  func link(_ row: Row, _ keys: [UInt8], after previous: ChangeLink) throws -> ChangeLink {
    try (row.author ?? "").withUTF8Bytes { author in
      let count = ChangeLink.byteCount + 4 * 8 + row.noise.count + 4 + author.count + keys.count
      return try withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { message in
        guard let start = message.baseAddress else { return .origin }
        var parts = Parts(end: start)
        previous.withUnsafeBytes { parts.append($0) }
        parts.append(row.sequence)
        parts.append(row.time)
        parts.append(row.writer)
        parts.append(row.total)
        row.noise.withUnsafeBytes { parts.append($0) }
        // No text is so long.
        parts.append(row.author == nil ? UInt32.max : UInt32(truncatingIfNeeded: author.count))
        parts.append(UnsafeRawBufferPointer(author))
        keys.withUnsafeBytes { parts.append($0) }
        return try digest(UnsafeRawBufferPointer(message))
      }
    }
  }

  /// Puts the parts of a message one behind another, in memory that has room for all of them.
  private struct Parts {
    var end: UnsafeMutableRawPointer

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
      guard let start = bytes.baseAddress else { return }
      end.copyMemory(from: start, byteCount: bytes.count)
      end += bytes.count
    }

    mutating func append<Number: FixedWidthInteger>(_ number: Number) {
      end.storeBytes(of: number.bigEndian, as: Number.self)
      end += MemoryLayout<Number>.size
    }
  }

  /// What tells that the keys of a row were rewritten in good order; its link stays, for those behind it.
  func rewritten(_ keys: [UInt8], link: ChangeLink) throws -> [UInt8] {
    try (Self.rewriteLabel + link.bytes + keys).withUnsafeBytes(digest).bytes
  }

  private func digest(_ bytes: UnsafeRawBufferPointer) throws -> ChangeLink {
    let hasher = try self.hasher ?? SHA256.Hasher()
    self.hasher = hasher
    return try hasher.withDigest(of: bytes) { digest in
      // A digest is longer.
      ChangeLink(UnsafeRawBufferPointer(rebasing: digest[..<ChangeLink.byteCount])) ?? .origin
    }
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
    _ row: ChangeChain.Row, _ keys: [UInt8], link: ChangeLink?, rewritten: [UInt8]?, after previous: ChangeLog.End,
    by chain: ChangeChain
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
      if let link, let rewritten {
        try chain.rewritten(keys, link: link) == rewritten
      } else {
        try chain.link(row, keys, after: previous.link) == link
      }
    if !isWhole {
      problems.append("Commit \(row.sequence) in the change log was changed, or what was before it.")
    }
  }

  /// Looks whether the rows that are gone were old enough to be dropped.
  ///
  /// - Parameter start: The last row that was dropped, if any was.
  mutating func checkStart(_ start: ChangeLog.End, _ end: ChangeLog.End) {
    guard let first = commits?.lowerBound else { return problems.append("The change log is empty.") }
    guard start.sequence >= 0, first == start.sequence &+ 1 else { return }
    // Rows are dropped only beyond these bounds.
    let isBeyondCount = end.sequence &- start.sequence >= ChangeLog.maximumRowCount
    if !isBeyondCount, end.total &- start.total <= ChangeLog.maximumByteCount {
      problems.append("The commits up to \(start.sequence) were taken out of the change log before their time.")
    }
  }
}
