import Foundation

/// Foundation's `UserDefaults`, one suite for integers and one for texts.
///
/// On Linux their files are below the folder that `$HOME` names, and go with it, see `ProxyBenchmark`; on Apple systems a
/// daemon has them, so the suites are removed at the end.
final class DefaultsPeer: Peer, @unchecked Sendable {
  // Unchecked: `UserDefaults` says of itself that threads may share it.
  let name = "UserDefaults"
  private let integers: UserDefaults
  private let texts: UserDefaults
  private let suites: [String]

  /// Makes two empty suites, or one that holds the texts of the first `count` keys.
  init(filledWith count: Int = 0) throws {
    suites = (0..<2).map { _ in "coffer-benchmark-\(UUID().uuidString)" }
    #if os(Linux)
      if count > 0 { try Self.writeFile(of: suites[1], count) }
    #endif
    guard let integers = UserDefaults(suiteName: suites[0]), let texts = UserDefaults(suiteName: suites[1]) else {
      throw Failure(reason: "UserDefaults refused a suite")
    }
    self.integers = integers
    self.texts = texts
    #if !os(Linux)
      for number in 0..<count { texts.set(Samples.text(number, version: 0), forKey: Samples.key(number)) }
    #endif
    guard count > 0 else { return }
    let last = try text(Samples.key(count - 1))
    try require(last != nil, "UserDefaults does not read its file")
  }

  #if os(Linux)
    /// Setting one by one takes a time that grows with the square of their number.
    private static func writeFile(of suite: String, _ count: Int) throws {
      let texts = (0..<count).map { (Samples.key($0), Samples.text($0, version: 0)) }
      // `NSHomeDirectory()` asks the user database instead.
      guard let home = ProcessInfo.processInfo.environment["HOME"] else { throw Failure(reason: "there is no $HOME") }
      let folder = home + "/.config"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try PropertyListSerialization.data(
        fromPropertyList: Dictionary(uniqueKeysWithValues: texts), format: .binary, options: 0
      ).write(to: URL(fileURLWithPath: "\(folder)/\(suite).plist"))
    }
  #endif

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

  func synchronize() {
    integers.synchronize()
    texts.synchronize()
  }
}
