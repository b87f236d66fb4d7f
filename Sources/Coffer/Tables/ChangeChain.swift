import CofferCrypto
import CofferStorage

/// The chain of the change log: each row has a digest of itself and the previous one.
///
/// It has no key, because anyone who writes rows has the key of the store. Rows that were removed, changed or
/// inserted are detected, unless the whole chain was rebuilt; then the link recorded outside of the store differs.
///
/// Lists of keys are digested on their own, one for each collection, and the digests are chained: so the keys of an
/// erased collection can go, and nothing else of the row can change.
final class ChangeChain {
  static let noiseByteCount = 16

  /// Created for the first row that is written or checked.
  private var hasher: SHA256.Hasher?

  /// A row of the change log, without its keys and its link.
  struct Row {
    let number: CommitNumber
    let noise: [UInt8]
    let time: Int64
    let writer: Int64
    let author: String?
    let action: String?
    let total: Int64

    /// What the row adds to `total`.
    static func byteCount(keys: [UInt8], author: String?, action: String?) -> Int64 {
      Int64(keys.count + (author?.utf8.count ?? 0) + (action?.utf8.count ?? 0))
    }

    /// Whether `total` is that of the previous row plus what this one adds: old rows are dropped because of it.
    ///
    /// - Parameter isWhole: Whether the keys are those that were committed; otherwise they were more.
    func hasTrueTotal(_ keys: [UInt8], after previous: ChangeLog.End, isWhole: Bool) -> Bool {
      let (added, isOverflow) = total.subtractingReportingOverflow(previous.total)
      let count = Self.byteCount(keys: keys, author: author, action: action)
      return !isOverflow && (isWhole ? added == count : added >= count)
    }
  }

  /// A row's digests, one for each list, and its link.
  struct Seal: Equatable {
    let digests: [UInt8]
    let link: ChangeLink
  }

  /// The digest of a list, as in the link of its row.
  private struct ChainedDigest {
    let digest: ChangeLink
    /// Whether the list was emptied since.
    var isEmptied = false
  }

  /// The seal of a row that follows `previous`.
  func seal(_ row: Row, _ keys: [UInt8], after previous: ChangeLog.End) throws -> Seal {
    var digests: [UInt8] = []
    let link = try keys.withUnsafeBytes { keys in
      try self.link(row, keys, after: previous) { _, digest -> ChainedDigest? in
        digest.withUnsafeBytes { digests.append(contentsOf: $0) }
        return ChainedDigest(digest: digest)
      }
    }
    guard let link else { throw StorageError.damaged(part: "change log", reason: "a packed list does not parse") }
    return Seal(digests: digests, link: link)
  }

  /// Compares a row with its seal.
  ///
  /// - Returns: The IDs of the collections whose lists were emptied since; nil if anything else was changed.
  func check(_ row: Row, _ keys: [UInt8], _ seal: Seal, after previous: ChangeLog.End) throws -> [UInt64]? {
    guard row.noise.count == Self.noiseByteCount else { return nil }
    var emptied: [UInt64] = []
    var rest = seal.digests[...]
    let link = try keys.withUnsafeBytes { keys in
      try self.link(row, keys, after: previous) { part, digest -> ChainedDigest? in
        let committed = rest.prefix(ChangeLink.byteCount).withUnsafeBytes { ChangeLink($0) }
        guard let committed else { return nil }
        rest = rest.dropFirst(ChangeLink.byteCount)
        guard committed != digest else { return ChainedDigest(digest: digest) }
        guard part.isEmptied else { return nil }
        emptied.append(part.id)
        return ChainedDigest(digest: committed, isEmptied: true)
      }
    }
    return link == seal.link && rest.isEmpty ? emptied : nil
  }

  /// - Parameter digest: Receives each collection's part and the digest of its list; returns the digest to chain, or nil
  ///   to stop.
  /// - Returns: nil if the keys do not parse, or `digest` stopped.
  private func link(
    _ row: Row, _ keys: UnsafeRawBufferPointer, after previous: ChangeLog.End,
    _ digest: (PackedChanges.Part, ChangeLink) -> ChainedDigest?
  ) throws -> ChangeLink? {
    guard var changes = PackedChanges(keys) else { return nil }
    var message = Message(
      byteCount: ChangeLink.byteCount + 5 * 8 + row.noise.count + 4 + (row.author?.utf8.count ?? 0) + 4
        + (row.action?.utf8.count ?? 0) + 1 + Message.partByteCount)
    previous.link.withUnsafeBytes { message.append($0) }
    message.append(previous.total)
    message.append(row.number)
    message.append(row.time)
    message.append(row.writer)
    message.append(row.total)
    row.noise.withUnsafeBytes { message.append($0) }
    message.append(row.author)
    message.append(row.action)
    message.append(changes.flags)
    while !changes.isAtEnd {
      guard let part = changes.next(),
        let chained = digest(part, try self.digest(part.list, row.noise))
      else { return nil }
      message.append(part.id)
      message.append(part.form(isEmptied: chained.isEmptied))
      chained.digest.withUnsafeBytes { message.append($0) }
    }
    return try message.bytes.withUnsafeBytes(self.digest)
  }

  /// What a digest is made of.
  private struct Message {
    /// The ID of a collection, the form of its part, and a digest.
    static let partByteCount = 8 + 1 + ChangeLink.byteCount

    private(set) var bytes: [UInt8] = []

    init(byteCount: Int) { bytes.reserveCapacity(byteCount) }

    mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

    mutating func append<Number: FixedWidthInteger>(_ number: Number) {
      Swift.withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func append(_ text: String?) {
      // No text is this long.
      guard let text else { return append(UInt32.max) }
      text.withUTF8Bytes { text in
        append(UInt32(truncatingIfNeeded: text.count))
        append(UnsafeRawBufferPointer(text))
      }
    }
  }

  /// The digest of a list of keys, with the noise of its row: equal lists have different digests.
  private func digest(_ list: UnsafeRawBufferPointer, _ noise: [UInt8]) throws -> ChangeLink {
    try withUnsafeTemporaryAllocation(byteCount: noise.count + list.count, alignment: 1) { message in
      noise.withUnsafeBytes { message.copyMemory(from: $0) }
      UnsafeMutableRawBufferPointer(rebasing: message[noise.count...]).copyMemory(from: list)
      return try digest(UnsafeRawBufferPointer(message))
    }
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
  package private(set) var commits: ClosedRange<CommitNumber>?
  /// How many of them had keys of a collection that was erased later.
  package private(set) var emptiedCount = 0
  /// The commits that erased collections.
  package private(set) var erasures: [CommitNumber] = []
  /// The last commit for which a record outside of the store vouches, with all before it; nil if there is none.
  package internal(set) var recordedCommit: CommitNumber?
  /// The commit of a record that vouches for nothing in the log, because its commit is no longer there.
  package internal(set) var passedCommit: CommitNumber?
  /// The problems, as sentences.
  package internal(set) var problems: [String] = []

  /// The last commit after which old rows were dropped.
  private var lastSweep: ChangeLog.End?
  /// The first commits with emptied lists of each collection that no later commit erased so far.
  private var unexplained: [UInt64: CommitNumber] = [:]

  /// Checks the next row.
  mutating func add(
    _ row: ChangeChain.Row, _ keys: [UInt8], _ seal: ChangeChain.Seal?, after previous: ChangeLog.End,
    by chain: ChangeChain
  ) throws {
    count += 1
    let isFirst = commits == nil
    let first = commits?.lowerBound ?? row.number
    commits = first...max(first, row.number)
    if row.number % ChangeLog.sweepInterval == 0, let seal {
      lastSweep = ChangeLog.End(number: row.number, total: row.total, link: seal.link)
    }
    // Salvage starts a log after all versions that it found.
    let isNext = row.number == previous.number &+ 1 || isFirst && previous.number < 0
    guard isNext else {
      let (first, last) = (previous.number &+ 1, row.number &- 1)
      problems.append(
        first == last
          ? "Commit \(first) is missing from the change log."
          : "Commits \(first) to \(last) are missing from the change log.")
      return
    }
    guard let seal, let emptied = try chain.check(row, keys, seal, after: previous) else {
      problems.append("Commit \(row.number) in the change log, or one before it, was changed.")
      return
    }
    guard row.hasTrueTotal(keys, after: previous, isWhole: emptied.isEmpty) else {
      problems.append("Commit \(row.number) in the change log says that it is larger or smaller than it is.")
      return
    }
    explain(by: row.number, keys)
    if !emptied.isEmpty { emptiedCount += 1 }
    for id in emptied where unexplained[id] == nil { unexplained[id] = row.number }
  }

  /// Takes note of what a commit erased.
  private mutating func explain(by number: CommitNumber, _ keys: [UInt8]) {
    keys.withUnsafeBytes { keys in
      guard var changes = PackedChanges(keys) else { return }
      var isErasure = changes.isAllErased
      if isErasure { unexplained = [:] }
      while !changes.isAtEnd, let part = changes.next() {
        guard part.isErased else { continue }
        isErasure = true
        unexplained[part.id] = nil
      }
      if isErasure { erasures.append(number) }
    }
  }

  /// Checks whether the dropped rows were old enough, and the emptied lists were erased by commits that follow.
  ///
  /// - Parameter start: The last dropped row, if any.
  mutating func finish(_ start: ChangeLog.End) {
    for (id, number) in unexplained.sorted(by: { $0.value < $1.value }) {
      problems.append(
        "Keys were taken out of commit \(number) in the change log, and no later commit erased collection \(id).")
    }
    guard let first = commits?.lowerBound else { return problems.append("The change log is empty.") }
    guard start.number >= 0, first == start.number &+ 1 else { return }
    // Rows are dropped only by such a commit, and only beyond these bounds.
    let isOld = lastSweep.map { sweep in
      start.number <= sweep.number &- ChangeLog.maximumRowCount
        || start.total < sweep.total &- ChangeLog.maximumByteCount
    }
    if isOld != true {
      problems.append("The commits up to \(start.number) were removed from the change log too early.")
    }
  }
}
