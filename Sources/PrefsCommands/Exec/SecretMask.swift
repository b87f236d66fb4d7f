/// Secrets, and a text with ``placeholder`` in their place.
struct SecretMask: Sendable {
  /// What stands for a secret.
  static let placeholder = Array("<secret>".utf8)

  /// Shorter values are in too much that is no secret: "1" in every number.
  static let shortest = 4

  /// By their first byte; of those that share it, the longest first.
  private var secrets: [[[UInt8]]] = Array(repeating: [], count: 256)

  /// Adds a secret, and each of its lines, as a program may print it line by line.
  ///
  /// - Returns: Whether all of it is replaced from now on.
  @discardableResult mutating func add(_ secret: [UInt8]) -> Bool {
    let lines = secret.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }.map(Array.init)
    for part in lines + [secret] where part.count >= Self.shortest { insert(part) }
    return lines.allSatisfy { $0.count >= Self.shortest }
  }

  private mutating func insert(_ secret: [UInt8]) {
    let first = Int(secret[0])
    guard !secrets[first].contains(secret) else { return }
    secrets[first].append(secret)
    secrets[first].sort { $0.count > $1.count }
  }

  /// A piece of a text with its secrets replaced.
  ///
  /// - Parameters:
  ///   - bytes: What was held back before, and the next piece.
  ///   - isEnd: Whether nothing follows.
  /// - Returns: `held` may be the beginning of a secret whose rest is in the next piece.
  func masking(_ bytes: [UInt8], isEnd: Bool) -> (shown: [UInt8], held: [UInt8]) {
    var shown: [UInt8] = []
    shown.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      // Most bytes begin no secret.
      let start = index
      while index < bytes.count, secrets[Int(bytes[index])].isEmpty { index += 1 }
      shown += bytes[start..<index]
      guard index < bytes.count else { break }
      let candidates = secrets[Int(bytes[index])]
      let rest = bytes[index...]
      if !isEnd, candidates.contains(where: { $0.count > rest.count && $0.starts(with: rest) }) {
        return (shown, Array(rest))
      }
      if let secret = candidates.first(where: { rest.starts(with: $0) }) {
        shown += Self.placeholder
        index += secret.count
      } else {
        shown.append(bytes[index])
        index += 1
      }
    }
    return (shown, [])
  }
}
