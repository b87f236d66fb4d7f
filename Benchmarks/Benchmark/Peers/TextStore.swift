/// An open store of texts on disk, for one thread: the interface to every contender with a file.
///
/// The loops are in the stores, so that a call through this protocol is paid once for many operations.
protocol TextStore {
  /// The text of a key, nil if there is none.
  func text(_ key: String) throws -> String?
  /// The text of a key as read by another connection that opens the store now.
  func committedText(_ key: String) throws -> String?
  /// Reads the text of each key, one after another, and adds up their lengths in bytes.
  func sum(ofLengthsFor keys: [String]) throws -> Int
  /// The same in one transaction, if supported.
  func sum(ofLengthsAtOnceFor keys: [String]) throws -> Int
  /// Reads every key and its text, and adds up their lengths in bytes.
  func scan() throws -> Int

  /// Sets the texts of the keys in one transaction, or hands them over to be flushed.
  func set(_ texts: [String], for keys: [String]) throws
  /// Writes pending texts, and waits for that.
  func flush() throws
  /// The durability of later commits.
  func setSynchronization(_ synchronization: Synchronization) throws
  /// Sets one text, and returns when it is committed.
  func commit(_ text: String, for key: String) throws

  func close() throws
}

/// The durability of a commit, in SQLite's terms.
enum Synchronization: String, CaseIterable {
  /// It survives a power cut.
  case full = "FULL"
  /// It survives the end of the process; a power cut may lose the latest ones, and damages nothing.
  case normal = "NORMAL"
}

extension TextStore {
  func committedText(_ key: String) throws -> String? { try text(key) }

  func sum(ofLengthsAtOnceFor keys: [String]) throws -> Int { try sum(ofLengthsFor: keys) }

  func flush() throws {}

  func commit(_ text: String, for key: String) throws { try set([text], for: [key]) }

  /// Sets the texts of the first `count` keys.
  func fill(_ count: Int, byteCount: Int) throws {
    let batch = 10_000
    for start in stride(from: 0, to: count, by: batch) {
      let numbers = start..<min(start + batch, count)
      try set(numbers.map { Samples.text($0, version: 0, byteCount: byteCount) }, for: numbers.map(Samples.key))
      try flush()
    }
  }
}
