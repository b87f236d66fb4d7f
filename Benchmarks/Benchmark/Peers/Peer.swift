/// A store of settings by string key.
///
/// The loops are in the peers, so that a call through this protocol is paid once per thousand operations.
protocol Peer {
  var name: String { get }

  /// Reads the integer of each key, one after another, and adds them up.
  func sum(ofIntegersFor keys: [String]) throws -> Int
  /// Reads the text of each key, one after another, and adds up their lengths in bytes.
  func sum(ofLengthsFor keys: [String]) throws -> Int
  /// The text of a key, nil if there is none.
  func text(_ key: String) throws -> String?

  /// Sets the integers of the keys, one after another: `first` and those that follow it.
  func set(integersFor keys: [String], from first: Int) throws
  /// Sets the texts of the keys, one after another.
  func set(_ texts: [String], for keys: [String]) throws
}

extension Peer {
  /// Throws unless each key has its text.
  func check(_ texts: [String], for keys: [String]) throws {
    for (key, text) in zip(keys, texts) {
      let found = try self.text(key)
      try require(found == text, "\(name) has another value for \(key)")
    }
  }

  /// Throws unless the integers of the keys are `first` and those that follow it.
  func check(integersFor keys: [String], from first: Int) throws {
    let sum = try sum(ofIntegersFor: keys)
    try require(sum == Self.sum(of: keys.count, from: first), "\(name) has another sum")
  }

  static func sum(of count: Int, from first: Int) -> Int { count * (2 * first + count - 1) / 2 }
}
