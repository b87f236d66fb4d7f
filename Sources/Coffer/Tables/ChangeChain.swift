import CofferCrypto
import CofferStorage

/// The chain of the change log: each row has a digest of itself and the previous one.
///
/// It has no key, because anyone who writes rows has the key of the store. Rows that were removed, changed or
/// inserted are detected, unless the whole chain was rebuilt; then the link recorded outside of the store differs.
final class ChangeChain {
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
        // No text is this long.
        parts.append(row.author == nil ? UInt32.max : UInt32(truncatingIfNeeded: author.count))
        parts.append(UnsafeRawBufferPointer(author))
        keys.withUnsafeBytes { parts.append($0) }
        return try digest(UnsafeRawBufferPointer(message))
      }
    }
  }

  /// Writes the parts of a message one after another, into memory with room for all of them.
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

  /// Authenticates rewritten keys of a row; its link stays, for the following rows.
  func rewritten(_ keys: [UInt8], link: ChangeLink) throws -> [UInt8] {
    try (Self.rewriteLabel + link.bytes + keys).withUnsafeBytes(digest).bytes
  }

  private func digest(_ bytes: UnsafeRawBufferPointer) throws -> ChangeLink {
    let hasher = try self.hasher ?? SHA256.Hasher()
    self.hasher = hasher
    return ChangeLink(digest: try hasher.digest(bytes))
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
    _ row: ChangeChain.Row, _ keys: [UInt8], link: ChangeLink?, rewritten: [UInt8]?, after previous: ChangeLog.End,
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
      if let link, let rewritten {
        try chain.rewritten(keys, link: link) == rewritten
      } else {
        try chain.link(row, keys, after: previous.link) == link
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
