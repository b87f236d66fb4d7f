import Foundation

/// Foundation's `UserDefaults`, one suite for integers and one for texts.
///
/// On Linux their files are below the folder that `$HOME` names, and go with it, see `Benchmark.homeFolder`; on Apple systems a
/// daemon has them, so the suites are removed at the end.
final class DefaultsPeer: Peer, TextStore, @unchecked Sendable {
  // Unchecked: `UserDefaults` is documented as thread-safe.
  let name = "UserDefaults"
  private let integers: UserDefaults
  private let texts: UserDefaults
  private let suites: [String]

  /// Opens a suite of texts, and one of integers.
  init(suite: String = "coffer-benchmark-\(UUID().uuidString)") throws {
    suites = [suite + "-integers", suite]
    guard let integers = UserDefaults(suiteName: suites[0]), let texts = UserDefaults(suiteName: suites[1]) else {
      throw Failure(reason: "UserDefaults refused a suite")
    }
    self.integers = integers
    self.texts = texts
  }

  /// Writes the file of a suite: setting keys one by one takes quadratic time.
  static func fill(_ suite: String, _ count: Int, byteCount: Int) throws {
    let texts = (0..<count).map { (Samples.key($0), Samples.text($0, version: 0, byteCount: byteCount)) }
    // `NSHomeDirectory()` asks the user database instead.
    guard let home = ProcessInfo.processInfo.environment["HOME"] else { throw Failure(reason: "there is no $HOME") }
    let folder = home + "/.config"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try PropertyListSerialization.data(
      fromPropertyList: Dictionary(uniqueKeysWithValues: texts), format: .binary, options: 0
    ).write(to: URL(fileURLWithPath: "\(folder)/\(suite).plist"))
  }

  #if !os(Linux)
    deinit {
      integers.removePersistentDomain(forName: suites[0])
      texts.removePersistentDomain(forName: suites[1])
    }
  #endif

  func sum(ofIntegersFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys { sum &+= integers.object(forKey: key) as? Int ?? 0 }
    return sum
  }

  func sum(ofLengthsFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys { sum &+= texts.string(forKey: key)?.utf8.count ?? 0 }
    return sum
  }

  func text(_ key: String) throws -> String? { texts.string(forKey: key) }

  func set(integersFor keys: [String], from first: Int) throws {
    var value = first
    for key in keys {
      integers.set(value, forKey: key)
      value += 1
    }
  }

  func set(_ newTexts: [String], for keys: [String]) throws {
    for (key, text) in zip(keys, newTexts) { texts.set(text, forKey: key) }
  }

  func scan() throws -> Int {
    texts.dictionaryRepresentation().reduce(0) { $0 + $1.key.utf8.count + (($1.value as? String)?.utf8.count ?? 0) }
  }

  func flush() {
    integers.synchronize()
    texts.synchronize()
  }

  /// It has only one durability.
  func setSynchronization(_ synchronization: Synchronization) {}

  func commit(_ text: String, for key: String) throws {
    texts.set(text, forKey: key)
    texts.synchronize()
  }

  func close() throws {}
}
