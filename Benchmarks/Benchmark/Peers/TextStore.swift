/// A store of texts on a disk, open, for one thread: what every contender is measured as that keeps a file.
///
/// The loops stand in the stores, so that a call through this protocol is paid for once in many operations.
protocol TextStore {
  /// The text of a key, nil when there is none.
  func text(_ key: String) throws -> String?
  /// The text of a key as somebody else finds it who opens the store now.
  func committedText(_ key: String) throws -> String?
  /// Reads the text of each key, one after another, and adds up their lengths in bytes.
  func sum(ofLengthsFor keys: [String]) throws -> Int
  /// The same in one transaction, where there is something like it.
  func sum(ofLengthsAtOnceFor keys: [String]) throws -> Int
  /// Reads every key and its text, and adds up their lengths in bytes.
  func scan() throws -> Int

  /// Sets the texts of the keys in one transaction, or hands them over to be flushed.
  func set(_ texts: [String], for keys: [String]) throws
  /// Writes what was handed over, and waits until that is done.
  func flush() throws
  /// How durable commits are from now on.
  func setSynchronization(_ synchronization: Synchronization) throws
  /// Sets one text, and returns when it is committed.
  func commit(_ text: String, for key: String) throws

  func close() throws
}

/// How durable a commit is, in the words of SQLite.
enum Synchronization: String, CaseIterable {
  /// It survives a power cut.
  case full = "FULL"
  /// It survives the end of the process; a power cut may take the latest ones, and damages nothing.
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
